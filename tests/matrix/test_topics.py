"""Topics made through one protocol are configured and deleted through every other, also while they are read."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pulsar
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.matrix.conftest import Clients
from tests.matrix.http_calls import call, iggy_token
from tests.matrix.iggy import DEFAULT_STREAM, Iggy, IggyRefused
from tests.matrix.kafka import Kafka
from tests.matrix.kafka07 import Kafka07
from tests.matrix.message import Message
from tests.matrix.pulsar import Pulsar
from tests.support.server_process import ServerProcess, serving
from tests.support.waiting import eventually

Unique = Callable[[str], str]
MAKERS: Final = ("kafka", "pulsar", "iggy")
_TIMEOUT_S: Final = 20
_MINUTE_MS: Final = 60_000
_MINUTE_US: Final = 60_000_000


@pytest.fixture(scope="module")
def strict_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server where no topic comes to be unasked, and clients of several protocols may read as one group."""
    settings = ["auto.create.topics.enable=false", "group.several.protocols.enable=true"]
    with serving(str(tmp_path_factory.mktemp("strict") / "data"), "any=127.0.0.1:0", settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture(scope="module")
def there(strict_server: ServerProcess) -> Iterator[Clients]:
    """A client of every protocol at that server."""
    address = strict_server.addresses["any"]
    found = Clients(Kafka(address), Kafka07(address), Pulsar(address), Iggy(address))
    found.iggy.call("create_stream", name=DEFAULT_STREAM)
    yield found
    for one in (found.kafka07, found.pulsar, found.iggy):
        one.close()


def _pulsar_path(topic: str) -> str:
    return f"/admin/v2/persistent/public/default/{topic}"


def _make(maker: str, clients: Clients, address: str, topic: str, partitions: int = 2) -> None:
    match maker:
        case "kafka":
            clients.kafka.create(topic, partitions=partitions)
        case "pulsar":
            call(address, "PUT", f"{_pulsar_path(topic)}/partitions", partitions)
        case "iggy":
            clients.iggy.call("create_topic", stream=DEFAULT_STREAM, name=topic, partitions_count=partitions)


def _delete(deleter: str, clients: Clients, address: str, topic: str) -> None:
    match deleter:
        case "kafka":
            clients.kafka.admin.delete_topics([topic])[topic].result(_TIMEOUT_S)
        case "pulsar":
            call(address, "DELETE", f"{_pulsar_path(topic)}/partitions?force=true")
        case "iggy":
            clients.iggy.call("delete_topic", stream_id=DEFAULT_STREAM, topic_id=topic)


class Settings:
    """How long a topic keeps records, in minutes, as each protocol sets and tells it."""

    def __init__(self, clients: Clients, address: str, topic: str) -> None:
        self._admin = clients.kafka.admin
        self._address = address
        self._topic = topic
        self._token = iggy_token(address)
        self._iggy_path = f"/streams/{DEFAULT_STREAM}/topics/{topic}"

    def put(self, protocol: str, minutes: int) -> None:
        match protocol:
            case "kafka":
                entry = ConfigEntry(
                    "retention.ms", str(minutes * _MINUTE_MS), incremental_operation=AlterConfigOpType.SET
                )
                resource = ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=[entry])
                self._admin.incremental_alter_configs([resource])[resource].result(_TIMEOUT_S)
            case "pulsar":
                wanted = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": -1}
                call(self._address, "POST", f"{_pulsar_path(self._topic)}/retention", wanted)
            case "iggy":
                changed = {"name": self._topic, "message_expiry": minutes * _MINUTE_US}
                call(self._address, "PUT", self._iggy_path, changed, token=self._token)

    def told(self) -> dict[str, int]:
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        configs = self._admin.describe_configs([resource])[resource].result(_TIMEOUT_S)
        retention = call(self._address, "GET", f"{_pulsar_path(self._topic)}/retention")
        iggy = call(self._address, "GET", self._iggy_path, token=self._token)
        return {
            "kafka": int(configs["retention.ms"].value) // _MINUTE_MS,
            "pulsar": retention["retentionTimeInMinutes"],
            "iggy": iggy["message_expiry"] // _MINUTE_US,
        }


@pytest.mark.parametrize("maker", MAKERS)
def test_a_setting_is_the_same_in_all_protocols(
    there: Clients, strict_server: ServerProcess, unique: Unique, maker: str
) -> None:
    address, topic = strict_server.addresses["any"], unique("set")
    _make(maker, there, address, topic)
    settings = Settings(there, address, topic)
    for minutes, setter in enumerate(MAKERS, start=60):
        settings.put(setter, minutes)
        assert settings.told() == dict.fromkeys(MAKERS, minutes), setter


@contextlib.contextmanager
def _readers(clients: Clients, address: str, topic: str, group: str) -> Iterator[tuple[Any, Any]]:
    """Clients of all protocols with groups, which read a topic as one."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "log_level": 0,
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    subscriber = clients.pulsar.client.subscribe(topic, group, initial_position=pulsar.InitialPosition.Earliest)
    place = {"stream_id": DEFAULT_STREAM, "topic_id": topic}
    clients.iggy.call("create_consumer_group", name=group, **place)
    clients.iggy.call("join_consumer_group", group_id=group, **place)
    try:
        consumer.subscribe([topic])
        yield consumer, subscriber
    finally:
        consumer.close()
        with contextlib.suppress(pulsar.PulsarException):
            subscriber.close()


def _names(clients: Clients, address: str) -> list[set[str]]:
    """The topics that each protocol lists."""
    partitions = call(address, "GET", "/admin/v2/persistent/public/default/partitioned")
    return [
        set(clients.kafka.admin.list_topics(timeout=_TIMEOUT_S).topics),
        {name.rpartition("/")[2] for name in partitions},
        {name for (name,) in clients.iggy.call("get_topics", "name", stream_id=DEFAULT_STREAM)},
    ]


@pytest.mark.parametrize("deleter", MAKERS)
def test_a_topic_is_deleted_while_clients_of_all_protocols_read_it(
    there: Clients, strict_server: ServerProcess, unique: Unique, deleter: str
) -> None:
    address, topic, group = strict_server.addresses["any"], unique("deleted"), unique("readers")
    maker = MAKERS[MAKERS.index(deleter) - 1]
    _make(maker, there, address, topic)
    there.kafka.write(topic, [Message(value=b"first")])
    with _readers(there, address, topic, group) as (consumer, subscriber):
        message = eventually(lambda: consumer.poll(0.2), _TIMEOUT_S)
        assert (message.error(), message.value()) == (None, b"first")
        assert subscriber.receive(_TIMEOUT_S * 1000).data() == b"first"
        assert all(topic in names for names in _names(there, address))
        _delete(deleter, there, address, topic)
        assert not any(topic in names for names in _names(there, address))
    # Who reads the next topic of that name begins at its beginning, and finds nothing of the one before.
    _make(deleter, there, address, topic, partitions=1)
    there.kafka.write(topic, [Message(value=b"second")])
    assert there.iggy.consume(topic, group, 1) == [b"second"]
    reader = there.pulsar.client.subscribe(topic, f"{group}-2", initial_position=pulsar.InitialPosition.Earliest)
    assert reader.receive(_TIMEOUT_S * 1000).data() == b"second"
    reader.close()


def _shown(server: ServerProcess, *words: str) -> Any:
    command = [sys.executable, "-m", "millstream.cli.main", "group", *words, "--json"]
    result = subprocess.run(
        [*command, "--broker", server.addresses["any"]], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_several_protocols_read_as_one_group_where_the_server_is_set_to_let_them(
    there: Clients, strict_server: ServerProcess, unique: Unique
) -> None:
    address, topic, group = strict_server.addresses["any"], unique("several"), unique("together")
    _make("kafka", there, address, topic)
    there.kafka.write(topic, [Message(value=b"only")])
    with _readers(there, address, topic, group) as (consumer, subscriber):
        assert eventually(lambda: consumer.poll(0.2), _TIMEOUT_S).value() == b"only"
        assert subscriber.receive(_TIMEOUT_S * 1000).data() == b"only"
        described = _shown(strict_server, "describe", group)
        assert described["assignor"] == "range,iggy,pulsar"
        assert described["state"] == "stable"
        read = {
            one["member"].partition("-")[0]: [each["partition"] for each in one["assignment"]]
            for one in described["members"]
        }
        assert read == {"rdkafka": [0, 1], "iggy": [0, 1], "pulsar": [0, 1]}
        with pytest.raises(KafkaException) as refused:
            there.kafka.admin.delete_consumer_groups([group])[group].result(_TIMEOUT_S)
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP


def test_subscriptions_and_groups_are_listed_whoever_made_them(
    there: Clients, strict_server: ServerProcess, unique: Unique
) -> None:
    address, topic = strict_server.addresses["any"], unique("listed")
    _make("iggy", there, address, topic)
    by_iggy, by_pulsar = unique("by-iggy"), unique("by-pulsar")
    there.iggy.call("create_consumer_group", name=by_iggy, stream_id=DEFAULT_STREAM, topic_id=topic)
    subscriber = there.pulsar.client.subscribe(topic, by_pulsar)

    def listed() -> dict[str, tuple[str, int, str | None]]:
        return {one["name"]: (one["state"], one["members"], one["assignor"]) for one in _shown(strict_server, "list")}

    found = listed()
    assert found[by_iggy] == ("empty", 0, None)
    assert found[by_pulsar] == ("stable", 1, "pulsar")
    (shown, *_) = _shown(strict_server, "describe", by_pulsar)["members"]
    assert shown["member"].startswith("pulsar-")
    assert shown["host"] == "/127.0.0.1"
    subscriber.close()
    place = {"stream_id": DEFAULT_STREAM, "topic_id": topic}
    there.iggy.call("join_consumer_group", group_id=by_iggy, **place)
    found = listed()
    assert found[by_iggy] == ("stable", 1, "iggy")
    assert found[by_pulsar] == ("empty", 0, None)
    with pytest.raises(IggyRefused):
        there.iggy.call("create_consumer_group", name=by_iggy, **place)
    there.iggy.call("leave_consumer_group", group_id=by_iggy, **place)
