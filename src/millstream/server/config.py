"""What a server is started with: options, settings and a configuration file.

The file is TOML:

    data-dir = "/var/lib/millstream"
    listen = ["kafka=0.0.0.0:9092"]

    [settings]
    "log.retention.ms" = 86400000
    durability = "fsync"

Options override the file.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from millstream.broker.errors import InvalidConfig
from millstream.broker.settings import BrokerSettings
from millstream.server.errors import BadSetting
from millstream.server.tls import TlsFiles

__all__ = ["DEFAULT_DATA_DIR", "LISTENER_NAMES", "Address", "ServerConfig", "parse_listen"]

DEFAULT_DATA_DIR: Final = "millstream-data"
LISTENER_NAMES: Final[Mapping[str, int | None]] = {
    "kafka": 9092,
    "kafka07": 9070,
    "pulsar": 6650,
    "iggy": 8090,
    "http": 8080,
    "any": None,
}
"""The listeners, each with the port on which it listens unless told otherwise; None for only if told."""
_FILE_KEYS: Final = {"data-dir", "listen", "settings"}
_SECRET_BYTES_MIN: Final = 32
_SECRET_BYTES_MAX: Final = 4096
_USERS_BYTES_MAX: Final = 1024 * 1024
"""Characters of the file of users: some ten thousand of them, which are held in memory."""
_PORT_MAX: Final = 65535
_PORT_DIGITS: Final = 5


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """What a server is started with.

    Args:
        data_dir: the data directory.
        listeners: where to listen, by the listener's name.
        settings: the broker's settings, checked.
        advertised: where clients are told to connect, by the listener's name, if that is not where it listens.
        token_secret: what the tokens of Pulsar clients are signed with; None lets everyone in.
        pinned: the listeners that take their own protocol only, by name.
        tls: where the certificate is; None to refuse TLS.
        passwords: of the users that Kafka clients may show to be, by name.
    """

    data_dir: str = DEFAULT_DATA_DIR
    listeners: Mapping[str, Address] = field(
        default_factory=lambda: {name: Address("127.0.0.1", port) for name, port in LISTENER_NAMES.items() if port}
    )
    settings: BrokerSettings = field(default_factory=lambda: BrokerSettings({}))
    advertised: Mapping[str, Address] = field(default_factory=dict)
    token_secret: bytes | None = None
    pinned: frozenset[str] = frozenset()
    tls: TlsFiles | None = None
    passwords: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        *,
        data_dir: str | None = None,
        listen: Sequence[str] = (),
        settings: Sequence[str] = (),
        config_file: str | None = None,
    ) -> "ServerConfig":
        """The configuration that follows from a command line.

        Args:
            data_dir: the data directory.
            listen: NAME=HOST:PORT, each.
            settings: KEY=VALUE, each.
            config_file: path of a TOML file, see above.

        Raises:
            BadSetting: the first thing that makes no sense, by name.
        """
        file = _read_file(config_file) if config_file is not None else {}
        values = {name: _text(value) for name, value in file.get("settings", {}).items()}
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals:
                raise BadSetting(f"--set takes KEY=VALUE, not {setting!r}")
            values[key.strip()] = value.strip()
        try:
            broker = BrokerSettings(values)
        except InvalidConfig as error:
            raise BadSetting(f"{error}; docs/configuration.md lists all settings") from None
        listeners: dict[str, Address] = {}
        for name, address in map(parse_listen, listen or file.get("listen", ())):
            if name in listeners:
                raise BadSetting(f"the listener {name!r} is given twice")
            listeners[name] = address
        return cls(
            # Whole, because clients are told it too (DescribeLogDirs), and they run elsewhere.
            data_dir=os.path.abspath(data_dir or str(file.get("data-dir", DEFAULT_DATA_DIR))),
            listeners=listeners or cls().listeners,
            settings=broker,
            advertised=dict(parse_listen(text.strip()) for text in broker.advertised_listeners),
            token_secret=_read_secret(broker.text("pulsar.token.secret.file")),
            # What Kafka's clients must show and may do holds for none of the others, who are not to come in there.
            pinned=_pinned(broker.text("listener.pinned"))
            | ({"kafka"} if broker.sasl_mechanisms or broker.authorizer else set()),
            tls=_tls_files(broker),
            passwords=_read_users(broker.text("sasl.users.file")),
        )


def parse_listen(text: str) -> tuple[str, Address]:
    """Read NAME=HOST:PORT.

    Raises:
        BadSetting: it is something else.
    """
    name, equals, address = text.partition("=")
    host, colon, port = address.rpartition(":")
    if not (equals and colon):
        raise BadSetting(f"--listen takes NAME=HOST:PORT, such as kafka=127.0.0.1:9092, not {text!r}")
    if name not in LISTENER_NAMES:
        known = ", ".join(LISTENER_NAMES)
        raise BadSetting(f"the listener {name!r} does not exist; there are {known}")
    if not port.isdecimal() or len(port) > _PORT_DIGITS or int(port) > _PORT_MAX:
        raise BadSetting(f"a port is a number up to {_PORT_MAX}, not {port!r}")
    return name, Address(host.strip("[]") or "127.0.0.1", int(port))


def _pinned(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    known = [name for name, port in LISTENER_NAMES.items() if port]
    for name in sorted(names.difference(known)):
        raise BadSetting(f"listener.pinned is a list of {', '.join(known)}, and {name!r} is none of them")
    return names


def _tls_files(settings: BrokerSettings) -> TlsFiles | None:
    certificate, key = settings.text("tls.certificate.file"), settings.text("tls.key.file")
    client_ca = settings.text("tls.client.ca.file")
    if certificate:
        return TlsFiles(certificate, key, client_ca)
    if key or client_ca or settings.tls_required:
        raise BadSetting("TLS wants a certificate: set tls.certificate.file")
    return None


def _read_file(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise BadSetting(f"the configuration file {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"the configuration file {path} is not TOML: {error}") from None
    unknown = content.keys() - _FILE_KEYS
    if unknown:
        known = ", ".join(sorted(_FILE_KEYS))
        raise BadSetting(f"{path} has the unknown key {sorted(unknown)[0]!r}; there are {known}")
    listen = content.get("listen", [])
    if not isinstance(content.get("settings", {}), dict):
        raise BadSetting(f"{path}: 'settings' is a table of settings")
    if not isinstance(listen, list) or not all(isinstance(one, str) for one in listen):
        raise BadSetting(f"{path}: 'listen' is a list of NAME=HOST:PORT")
    if not isinstance(content.get("data-dir", ""), str):
        raise BadSetting(f"{path}: 'data-dir' is text")
    return content


def _read_secret(path: str) -> bytes | None:
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            secret = file.read(_SECRET_BYTES_MAX).strip()
    except OSError as error:
        raise BadSetting(f"pulsar.token.secret.file {path} cannot be read: {error.strerror}") from None
    if len(secret) < _SECRET_BYTES_MIN:
        raise BadSetting(f"the secret in {path} has {len(secret)} bytes; HS256 wants {_SECRET_BYTES_MIN} at least")
    return secret


def _read_users(path: str) -> dict[str, str]:
    """The users of a file, a line NAME:PASSWORD each; empty lines and those that begin with # count for nothing."""
    if not path:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read(_USERS_BYTES_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadSetting(f"sasl.users.file {path} cannot be read: {reason}") from None
    if len(lines) > _USERS_BYTES_MAX:
        raise BadSetting(f"sasl.users.file {path} is larger than {_USERS_BYTES_MAX} characters")
    users: dict[str, str] = {}
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        if not (name and colon and password) or name in users:
            raise BadSetting(f"sasl.users.file {path}, line {number}: a line is NAME:PASSWORD, each name once")
        users[name] = password
    return users


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
