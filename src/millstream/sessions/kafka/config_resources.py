"""What the config APIs have in common: resources, where a value comes from, and how it is described."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Final, NamedTuple

from millstream.broker import acl
from millstream.broker.configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigKey, Kind, check_configs
from millstream.broker.errors import InvalidConfig, UnknownTopic
from millstream.broker.group_config_keys import GROUP_CONFIGS
from millstream.broker.topics import Topic
from millstream.model.pending import Pending, settled
from millstream.sessions.kafka.authorization import require, require_cluster
from millstream.sessions.kafka.call import NODE_ID, Call
from millstream.sessions.kafka.errors import InvalidResource

__all__ = [
    "TYPES",
    "Changeable",
    "ConfigSource",
    "ConfigType",
    "Described",
    "ResourceType",
    "changeable",
    "describe_broker",
    "describe_group",
    "describe_topic",
    "refuse_duplicates",
    "repeated",
    "require_config",
    "required",
]


class ResourceType(IntEnum):
    """Kinds of resources that have settings, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from, by Kafka's numbers."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class ConfigType(IntEnum):
    """The type of a value, by Kafka's numbers."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


TYPES: Final = {
    Kind.BOOLEAN: ConfigType.BOOLEAN,
    Kind.STRING: ConfigType.STRING,
    Kind.INT: ConfigType.INT,
    Kind.LONG: ConfigType.LONG,
    Kind.DOUBLE: ConfigType.DOUBLE,
    Kind.LIST: ConfigType.LIST,
}


class Described(NamedTuple):
    """One setting as it is told: its value, where that comes from, and what it falls back to, nearest first."""

    key: ConfigKey
    value: str
    source: ConfigSource
    read_only: bool
    synonyms: list[tuple[str, str, ConfigSource]]


def describe_topic(call: Call, topic: Topic) -> Iterator[Described]:
    """All settings of a topic."""
    return _described(call, TOPIC_CONFIGS, topic.configs, ConfigSource.TOPIC)


def describe_group(call: Call, name: str) -> Iterator[Described]:
    """All settings of a consumer group, whether there is such a group or not."""
    return _described(call, GROUP_CONFIGS, call.broker.groups.configs.of(name), ConfigSource.GROUP)


def _described(
    call: Call, keys: Mapping[str, ConfigKey], configs: Mapping[str, str], own: ConfigSource
) -> Iterator[Described]:
    server = call.broker.settings
    for key in keys.values():
        assert key.server_name is not None
        synonyms = []
        if key.name in configs:
            synonyms.append((key.name, configs[key.name], own))
        synonyms += _server_synonyms(key.server_name, server.configs, key.default)
        _, value, source = synonyms[0]
        yield Described(key, value, source, read_only=False, synonyms=synonyms)


def describe_broker(call: Call, name: str) -> Iterator[Described]:
    """All settings of the server. Raises InvalidResource if the name is not that of this one."""
    if name not in {"", str(NODE_ID)}:
        raise InvalidResource(f"there is no broker {name}; this one is {NODE_ID}")
    server = call.broker.settings
    for key in BROKER_CONFIGS.values():
        synonyms = _server_synonyms(key.name, server.configs, key.default)
        _, value, source = synonyms[0]
        yield Described(key, value, source, read_only=True, synonyms=synonyms)


def _server_synonyms(name: str, configs: dict[str, str], default: str) -> list[tuple[str, str, ConfigSource]]:
    set_here = [(name, configs[name], ConfigSource.STATIC_BROKER)] if name in configs else []
    return [*set_here, (name, default, ConfigSource.DEFAULT)]


def require_config(call: Call, operation: acl.Operation, resource_type: int, name: str) -> None:
    """Refuse what the client may not do with the settings of a resource; those of the server are the cluster's.

    Raises:
        NotAuthorized: the class of the resource's type.
    """
    if resource_type == ResourceType.TOPIC:
        require(call, operation, acl.ResourceType.TOPIC, name)
    elif resource_type == ResourceType.GROUP:
        require(call, operation, acl.ResourceType.GROUP, name)
    else:
        require_cluster(call, operation)


@dataclass(frozen=True, slots=True)
class Changeable:
    """A resource whose settings a request may change.

    Args:
        keys: the settings that it may have.
        configs: those that are set.
        check: checks all that are to be set. Raises InvalidConfig.
        replace: sets them in place of those before; resolves once they last.
    """

    keys: Mapping[str, ConfigKey]
    configs: Mapping[str, str]
    check: Callable[[Mapping[str, str]], None]
    replace: Callable[[Mapping[str, str]], Pending[None]]

    def change(self, configs: Mapping[str, str], *, validate_only: bool) -> Pending[None]:
        """Set all settings, or only check that they could be. Raises InvalidConfig."""
        self.check(configs)
        return settled(None) if validate_only else self.replace(configs)


def changeable(call: Call, resource_type: int, name: str) -> Changeable:
    """The topic or the group whose settings a request wants to change.

    Raises:
        NotAuthorized: the client may not.
        InvalidResource: neither: the server's own settings are given at its start.
        UnknownTopic: there is no such topic.
    """
    require_config(call, acl.Operation.ALTER_CONFIGS, resource_type, name)
    if resource_type == ResourceType.GROUP:
        groups = call.broker.groups.configs
        return Changeable(GROUP_CONFIGS, groups.of(name), partial(groups.check, name), partial(groups.set, name))
    if resource_type == ResourceType.BROKER:
        raise InvalidResource("the server's settings are given at its start, with --set or in its --config file")
    if resource_type != ResourceType.TOPIC:
        raise InvalidResource(f"resources of type {resource_type} have no settings here")
    topic = call.topic(name)
    if topic is None:
        raise UnknownTopic(f"there is no topic {name}")
    check = partial(check_configs, TOPIC_CONFIGS)
    return Changeable(TOPIC_CONFIGS, topic.configs, check, partial(call.broker.topics.set_configs, topic))


def repeated(resources: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    """The resources, by type and name, that a request lists more than once."""
    return {resource for resource, times in Counter(resources).items() if times > 1}


def required(name: str, value: str | None) -> str:
    """A value that must not be null."""
    if value is None:
        raise InvalidConfig(f"{name} has no value")
    return value


def refuse_duplicates(names: Iterable[str]) -> None:
    """Refuse a request that sets a key twice. Raises InvalidConfig."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidConfig(f"{name} is given twice")
        seen.add(name)
