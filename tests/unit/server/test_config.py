"""The configuration of a server: options, settings, the file, and what is said of those that make no sense."""

import os
from pathlib import Path

import pytest

from millstream.server.config import DEFAULT_DATA_DIR, LISTENER_NAMES, Address, ServerConfig, parse_listen
from millstream.server.errors import BadSetting


def test_the_defaults() -> None:
    config = ServerConfig.of()
    assert config.data_dir == os.path.abspath(DEFAULT_DATA_DIR)
    assert config.listeners == {name: Address("127.0.0.1", port) for name, port in LISTENER_NAMES.items() if port}
    assert config.listeners["kafka"] == Address("127.0.0.1", 9092)
    assert "any" not in config.listeners
    assert (config.settings.configs, config.advertised) == ({}, {})


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("kafka=127.0.0.1:9092", Address("127.0.0.1", 9092), "127.0.0.1:9092"),
        ("kafka=:0", Address("127.0.0.1", 0), "127.0.0.1:0"),
        ("kafka=0.0.0.0:65535", Address("0.0.0.0", 65535), "0.0.0.0:65535"),
        ("kafka=[::1]:9092", Address("::1", 9092), "[::1]:9092"),
        ("kafka=broker.example:1", Address("broker.example", 1), "broker.example:1"),
    ],
)
def test_addresses(text: str, address: Address, shown: str) -> None:
    assert parse_listen(text) == ("kafka", address)
    assert str(address) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "NAME=HOST:PORT"),
        ("kafka", "NAME=HOST:PORT"),
        ("127.0.0.1:9092", "NAME=HOST:PORT"),
        ("kafka=9092", "NAME=HOST:PORT"),
        ("smtp=127.0.0.1:25", "the listener 'smtp' does not exist; there are kafka, "),
        ("kafka=127.0.0.1:65536", "a port is a number up to 65535, not '65536'"),
        ("kafka=127.0.0.1:-1", "a port is a number"),
        ("kafka=127.0.0.1:", "a port is a number"),
        ("kafka=127.0.0.1:x", "a port is a number"),
        ("kafka=127.0.0.1:" + "9" * 5000, "a port is a number"),
    ],
)
def test_addresses_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        ServerConfig.of(listen=[text])


def test_settings_are_read() -> None:
    config = ServerConfig.of(settings=["durability=os", " log.retention.ms = 5 ", "advertised.listeners=kafka=a:1"])
    assert config.settings.fsync is False
    assert config.settings.text("log.retention.ms") == "5"
    assert config.advertised == {"kafka": Address("a", 1)}


def test_who_may_do_everything() -> None:
    users = "User:ada; User:CN=grace,O=Navy;"
    assert ServerConfig.of(settings=[f"super.users={users}"]).settings.super_users == {
        "User:ada",
        "User:CN=grace,O=Navy",
    }


def test_the_kafka_listener_takes_nobody_else_where_there_are_acls() -> None:
    authorizer = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert ServerConfig.of(settings=[authorizer]).pinned == {"kafka"}
    assert ServerConfig.of(settings=["authorizer.class.name="]).pinned == set()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("durability", "--set takes KEY=VALUE, not 'durability'"),
        ("nothing=1", "there is no setting nothing; docs/configuration.md lists all settings"),
        ("durability=maybe", "durability is one of fsync, os, not 'maybe'"),
        ("log.retention.ms=", "log.retention.ms is a number, not ''"),
        ("num.partitions=0", "num.partitions lies between 1 and"),
        (
            "authorizer.class.name=Mine",
            "is one of org.apache.kafka.metadata.authorizer.StandardAuthorizer, not 'Mine'",
        ),
        ("super.users=User:ada;grace", "super.users: a principal is TYPE:NAME, such as User:ada, not 'grace'"),
        ("advertised.listeners=kafka", "NAME=HOST:PORT"),
        ("advertised.listeners=smtp=a:1", "the listener 'smtp' does not exist"),
    ],
)
def test_settings_that_make_no_sense(setting: str, message: str) -> None:
    with pytest.raises(BadSetting) as error:
        ServerConfig.of(settings=[setting])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def written(tmp_path: Path, content: str) -> str:
    path = tmp_path / "server.toml"
    path.write_text(content)
    return str(path)


WHOLE = """
data-dir = "/var/lib/millstream"
listen = ["kafka=0.0.0.0:1234"]

[settings]
"log.retention.ms" = 86400000
"auto.create.topics.enable" = false
durability = "os"
"""


def test_a_file_is_read(tmp_path: Path) -> None:
    config = ServerConfig.of(config_file=written(tmp_path, WHOLE))
    assert config.data_dir == "/var/lib/millstream"
    assert config.listeners == {"kafka": Address("0.0.0.0", 1234)}
    assert config.settings.configs == {
        "log.retention.ms": "86400000",
        "auto.create.topics.enable": "false",
        "durability": "os",
    }
    assert config.settings.auto_create_topics is False


def test_options_override_the_file(tmp_path: Path) -> None:
    config = ServerConfig.of(
        config_file=written(tmp_path, WHOLE), data_dir="here", listen=["kafka=:1"], settings=["durability=fsync"]
    )
    assert (config.data_dir, config.listeners["kafka"].port, config.settings.fsync) == (
        os.path.abspath("here"),
        1,
        True,
    )
    assert config.settings.text("log.retention.ms") == "86400000"


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    config = ServerConfig.of(config_file=written(tmp_path, ""))
    assert (config.data_dir, config.listeners) == (os.path.abspath(DEFAULT_DATA_DIR), ServerConfig().listeners)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("data-dir", "is not TOML"),
        ("datadir = 'x'", "unknown key 'datadir'; there are data-dir, listen, settings"),
        ("[settings]\nnothing = 1", "there is no setting nothing"),
        ("[settings]\ndurability = ['os']", "durability is one of fsync, os"),
        ("settings = 'x'", "'settings' is a table"),
        ("listen = 'kafka=:1'", "'listen' is a list of NAME=HOST:PORT"),
        ("listen = [1]", "'listen' is a list of NAME=HOST:PORT"),
        ("data-dir = 5", "'data-dir' is text"),
    ],
)
def test_files_that_make_no_sense(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(BadSetting) as error:
        ServerConfig.of(config_file=written(tmp_path, content))
    assert message in str(error.value)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadSetting, match="is not TOML"):
        ServerConfig.of(config_file=str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"missing\.toml cannot be read: No such file or directory"):
        ServerConfig.of(config_file=str(tmp_path / "missing.toml"))
    with pytest.raises(BadSetting, match="cannot be read: Is a directory"):
        ServerConfig.of(config_file=str(tmp_path))
