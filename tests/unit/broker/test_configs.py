"""The tables of settings, and the typed settings that follow from them."""

import pytest

from millstream.broker.configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigKey, Kind, check_configs, parse_value
from millstream.broker.errors import InvalidConfig
from millstream.broker.settings import BrokerSettings, TopicSettings

ALL = [*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()]
NUMBERS = [key for key in ALL if key.kind in {Kind.INT, Kind.LONG}]
NAMES = [f"{key.name}-{index}" for index, key in enumerate(ALL)]


@pytest.mark.parametrize("key", ALL, ids=NAMES)
def test_every_default_is_a_value_of_its_kind(key: ConfigKey) -> None:
    value = parse_value(key, key.default)
    expected = {Kind.BOOLEAN: bool, Kind.INT: int, Kind.LONG: int, Kind.DOUBLE: float, Kind.LIST: tuple}
    assert type(value) is expected.get(key.kind, str)
    assert key.doc.endswith(".")


@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: key.name)
def test_every_number_keeps_to_its_bounds(key: ConfigKey) -> None:
    assert parse_value(key, str(key.low)) == key.low
    assert parse_value(key, f" {key.high} ") == key.high
    for text in (str(key.low - 1), str(key.high + 1)):
        with pytest.raises(InvalidConfig, match=f"{key.name} lies between {key.low} and {key.high}"):
            parse_value(key, text)
    for text in ("", "x", "1.5", "0x10", "1e3"):
        with pytest.raises(InvalidConfig, match=f"{key.name} is a number"):
            parse_value(key, text)


@pytest.mark.parametrize("key", [key for key in ALL if key.kind is Kind.INT], ids=lambda key: key.name)
def test_an_int_fits_32_bits(key: ConfigKey) -> None:
    assert -(2**31) <= key.low <= key.high <= 2**31 - 1


@pytest.mark.parametrize("text", ["nan", "inf", "-0.1", "1.1", ""])
def test_a_share_lies_between_0_and_1(text: str) -> None:
    key = TOPIC_CONFIGS["min.cleanable.dirty.ratio"]
    assert parse_value(key, "0.25") == 0.25
    with pytest.raises(InvalidConfig, match=key.name):
        parse_value(key, text)


def test_words() -> None:
    assert parse_value(BROKER_CONFIGS["auto.create.topics.enable"], " TRUE ") is True
    assert parse_value(TOPIC_CONFIGS["cleanup.policy"], "compact, delete") == ("compact", "delete")
    for key, text in (
        (BROKER_CONFIGS["auto.create.topics.enable"], "yes"),
        (BROKER_CONFIGS["durability"], "FSYNC"),
        (TOPIC_CONFIGS["cleanup.policy"], "delete,keep"),
        (TOPIC_CONFIGS["cleanup.policy"], " , "),
        (TOPIC_CONFIGS["message.timestamp.type"], ""),
    ):
        with pytest.raises(InvalidConfig, match=key.name):
            parse_value(key, text)


def test_unknown_keys_and_missing_values_are_named() -> None:
    with pytest.raises(InvalidConfig, match=r"there is no setting retention\.m$"):
        check_configs(TOPIC_CONFIGS, {"retention.ms": "1", "retention.m": "1"})
    with pytest.raises(InvalidConfig, match=r"retention\.ms has no value"):
        check_configs(TOPIC_CONFIGS, {"retention.ms": None})
    with pytest.raises(InvalidConfig, match=r"log\.retention\.hours"):
        BrokerSettings({"log.retention.hours": "1"})


def test_every_setting_of_a_topic_has_its_default_in_the_server() -> None:
    for key in TOPIC_CONFIGS.values():
        assert key.server_name is not None
        server = BROKER_CONFIGS[key.server_name]
        assert (server.kind, server.default, server.low, server.high, server.choices, server.obeyed) == (
            key.kind,
            key.default,
            key.low,
            key.high,
            key.choices,
            key.obeyed,
        )


def test_the_defaults_of_the_server() -> None:
    settings = BrokerSettings({})
    assert settings.auto_create_topics is True
    assert settings.fsync is True
    assert settings.partitions == 1
    assert settings.advertised_listeners == []
    assert (settings.session_timeout_min_ms, settings.session_timeout_max_ms) == (6000, 1_800_000)
    assert settings.offsets_retention_ms == 7 * 24 * 3600 * 1000
    assert settings.request_bytes_max == 100 * 1024 * 1024
    assert settings.text("durability") == "fsync"


def test_what_is_set_is_in_force() -> None:
    settings = BrokerSettings({"durability": "os", "advertised.listeners": "kafka=a:1, kafka=b:2,"})
    assert settings.fsync is False
    assert settings.advertised_listeners == ["kafka=a:1", " kafka=b:2"]
    assert settings.text("durability") == "os"


def test_a_topic_falls_back_to_the_server_and_then_to_the_default() -> None:
    server = BrokerSettings({"log.retention.ms": "5", "log.segment.bytes": "100"})
    settings = TopicSettings.of({"segment.bytes": "200"}, server)
    assert settings.log.retention_ms == 5
    assert settings.log.segment_bytes == 200
    assert settings.log.segment_ms == 7 * 24 * 3600 * 1000
    assert (settings.append_time, settings.compacted, settings.min_insync_replicas) == (False, False, 1)


@pytest.mark.parametrize(
    ("policy", "retention_ms", "compacted"),
    [("delete", 5, False), ("compact", -1, True), ("compact,delete", 5, True)],
)
def test_only_the_delete_policy_deletes(policy: str, retention_ms: int, compacted: bool) -> None:
    configs = {"cleanup.policy": policy, "retention.ms": "5", "retention.bytes": "5"}
    settings = TopicSettings.of(configs, BrokerSettings({}))
    assert (settings.log.retention_ms, settings.log.retention_bytes) == (retention_ms, retention_ms)
    assert settings.compacted is compacted


def test_iggy_deduplication() -> None:
    assert BrokerSettings({}).iggy_deduplication is None
    assert BrokerSettings({"iggy.deduplication.enable": "true"}).iggy_deduplication == (10_000, 60_000)
    chosen = {"enable": "true", "entries.max": "7", "ms": "8"}
    settings = BrokerSettings({f"iggy.deduplication.{name}": value for name, value in chosen.items()})
    assert settings.iggy_deduplication == (7, 8)
