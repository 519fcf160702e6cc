"""What can be set on a topic: the options of dialect D, which are fields of the requests before it.

Expiry and size become the topic's own retention settings, so that they hold for it in every protocol, and what
another protocol has set is told here. In both, 0 stands for the server's default and 2^64-1 for no bound.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from millstream.broker.settings import BrokerSettings
from millstream.broker.topics import Topic
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import HeaderKind, UserHeader
from millstream.wire.iggy.messages.topics import CreateTopic, UpdateTopic

__all__ = [
    "NO_BOUND",
    "TOPIC_OPTIONS",
    "TopicOption",
    "TopicOptions",
    "derived_options",
    "encoded_value",
    "expiry_us_of",
    "max_size_bytes_of",
    "read_options",
    "requested",
    "topic_configs",
]

NO_BOUND: Final = 2**64 - 1
_DEFAULT: Final = 0
_COMPRESSIONS: Final = {"none": 1, "gzip": 2}
_US_PER_MS: Final = 1000
_US_PER_S: Final = 1_000_000
_MS_MAX: Final = 2**63 - 1
_DURABILITIES: Final = ("replicated", "persisted")
_NUMBER_BYTES: Final = {HeaderKind.UINT8: 1, HeaderKind.UINT16: 2, HeaderKind.UINT32: 4, HeaderKind.UINT64: 8}


@dataclass(frozen=True, slots=True)
class TopicOption:
    """An option of a topic.

    Args:
        key: its name.
        kind: of its value; text is taken for every kind.
        default: as clients are told it.
        doc: one sentence.
        read: makes the value of the text or the number, or raises ValueError.
        in_updates: whether it can be changed later.
    """

    key: str
    kind: HeaderKind
    default: str
    doc: str
    read: Callable[[str], int | str]
    in_updates: bool = False


def _amount(*words: str) -> Callable[[str], int]:
    """Reads a number; words stand for the default and for no bound."""

    def read(text: str) -> int:
        if text in words:
            return _DEFAULT if text == words[0] else NO_BOUND
        value = int(text)
        if not 0 <= value <= NO_BOUND:
            raise ValueError(text)
        return value

    return read


def _choice(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return read


TOPIC_OPTIONS: Final[Mapping[str, TopicOption]] = {
    option.key: option
    for option in (
        TopicOption(
            "compression_algorithm",
            HeaderKind.STRING,
            "none",
            "Kept and told; messages are stored as they were sent.",
            _choice(*_COMPRESSIONS),
            True,
        ),
        TopicOption(
            "message_expiry",
            HeaderKind.UINT64,
            "0",
            "Microseconds after which messages are deleted, in whole segments.",
            _amount("server_default", "never_expire", "never"),
            True,
        ),
        TopicOption(
            "max_topic_size",
            HeaderKind.UINT64,
            "0",
            "Bytes of the topic beyond which its oldest segments are deleted.",
            _amount("server_default", "unlimited"),
            True,
        ),
        TopicOption(
            "segment_size",
            HeaderKind.UINT64,
            "0",
            "Bytes at which a partition begins a new file.",
            _amount("server_default"),
        ),
        TopicOption(
            "durability",
            HeaderKind.STRING,
            "persisted",
            "A send is always answered when the messages are on the disk.",
            _choice(*_DURABILITIES),
        ),
        TopicOption(
            "consumer_offset_durability",
            HeaderKind.STRING,
            "persisted",
            "A stored offset is always answered when it is on the disk.",
            _choice(*_DURABILITIES),
        ),
        TopicOption(
            "enforce_fsync",
            HeaderKind.BOOL,
            "true",
            "Kept and told; see durability.",
            _choice("true", "false"),
        ),
        TopicOption(
            "messages_required_to_save",
            HeaderKind.UINT32,
            "1",
            "Kept and told; nothing is gathered before it is written.",
            _amount(),
        ),
        TopicOption(
            "size_of_messages_required_to_save",
            HeaderKind.UINT64,
            "1",
            "Kept and told; nothing is gathered before it is written.",
            _amount(),
        ),
        TopicOption(
            "preallocate_segments",
            HeaderKind.BOOL,
            "false",
            "Kept and told; files grow as they are written.",
            _choice("true", "false"),
        ),
    )
}


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """What a request sets; None for what it leaves alone."""

    compression: int | None = None
    expiry_us: int | None = None
    max_size_bytes: int | None = None
    segment_bytes: int | None = None
    replication: int | None = None


def read_options(options: Sequence[UserHeader], *, update: bool) -> TopicOptions:
    """Read the options of dialect D.

    Raises:
        Refused: UNSUPPORTED_OPTION_KEY, INVALID_OPTION_VALUE.
    """
    values: dict[str, Any] = {}
    for one in options:
        key = str(one.key, "utf-8", "replace")
        option = TOPIC_OPTIONS.get(key)
        if option is None or (update and not option.in_updates):
            raise Refused(ErrorCode.UNSUPPORTED_OPTION_KEY, f"there is no option {key!r} to be set here")
        try:
            values[key] = option.read(_text(one))
        except ValueError:
            raise Refused(ErrorCode.INVALID_OPTION_VALUE, f"the option {key} does not take its value") from None
    compression = values.get("compression_algorithm")
    return TopicOptions(
        None if compression is None else _COMPRESSIONS[compression],
        values.get("message_expiry"),
        values.get("max_topic_size"),
        values.get("segment_size"),
    )


def _text(option: UserHeader) -> str:
    """The value of an option as text. Raises ValueError."""
    if option.kind == HeaderKind.STRING:
        return str(option.value, "utf-8")
    if option.kind == HeaderKind.BOOL:
        return "true" if any(option.value) else "false"
    if _NUMBER_BYTES.get(HeaderKind(option.kind)) == len(option.value):
        return str(int.from_bytes(option.value, "little"))
    raise ValueError(option.kind)


def requested(request: CreateTopic | UpdateTopic, dialect: Dialect) -> TopicOptions:
    """What a request to make or change a topic sets, in whatever dialect. Raises Refused."""
    if dialect >= Dialect.D:
        return read_options(request.options, update=isinstance(request, UpdateTopic))
    in_seconds = dialect < Dialect.B2
    expiry_us = (request.expiry_s * _US_PER_S or NO_BOUND) if in_seconds else request.expiry_us
    if request.compression not in _COMPRESSIONS.values():
        raise Refused(ErrorCode.INVALID_COMMAND, f"there is no compression {request.compression}")
    if dialect is Dialect.A:
        return TopicOptions(expiry_us=expiry_us)
    return TopicOptions(request.compression, expiry_us, request.max_size_bytes, None, request.replication or 1)


def topic_configs(
    options: TopicOptions, partitions: int, present: Mapping[str, str], settings: BrokerSettings
) -> dict[str, str]:
    """The settings of a topic that follow.

    Args:
        options: what is set.
        partitions: of the topic, which share its size.
        present: its settings so far.
        settings: the server's.

    Raises:
        Refused: the topic would be smaller than one segment.
    """
    configs = dict(present)
    if options.segment_bytes is not None:
        _set(configs, "segment.bytes", options.segment_bytes or None)
    if options.expiry_us is not None:
        if options.expiry_us == NO_BOUND:
            _set(configs, "retention.ms", -1)
        else:
            _set(configs, "retention.ms", min(-(-options.expiry_us // _US_PER_MS), _MS_MAX) or None)
    if options.max_size_bytes is not None:
        if options.max_size_bytes == NO_BOUND:
            _set(configs, "retention.bytes", -1)
        elif options.max_size_bytes:
            segment_bytes = int(configs.get("segment.bytes") or settings.text("log.segment.bytes"))
            if options.max_size_bytes < segment_bytes:
                raise Refused(
                    ErrorCode.INVALID_TOPIC_SIZE,
                    f"a topic of {options.max_size_bytes} bytes is smaller than a segment of {segment_bytes}",
                )
            _set(configs, "retention.bytes", min(options.max_size_bytes // max(partitions, 1), _MS_MAX))
        else:
            _set(configs, "retention.bytes", None)
    return configs


def _set(configs: dict[str, str], name: str, value: int | None) -> None:
    if value is None:
        configs.pop(name, None)
    else:
        configs[name] = str(value)


def _setting(topic: Topic, name: str, server_name: str, settings: BrokerSettings) -> int:
    return int(topic.configs.get(name) or settings.text(server_name))


def expiry_us_of(topic: Topic, settings: BrokerSettings) -> int:
    """Microseconds after which messages of a topic are deleted; `NO_BOUND` for never."""
    retention_ms = _setting(topic, "retention.ms", "log.retention.ms", settings)
    return NO_BOUND if retention_ms < 0 else min(retention_ms * _US_PER_MS, NO_BOUND - 1)


def max_size_bytes_of(topic: Topic, settings: BrokerSettings) -> int:
    """Bytes that a topic may have, over all its partitions; `NO_BOUND` for any number."""
    retention_bytes = _setting(topic, "retention.bytes", "log.retention.bytes", settings)
    return NO_BOUND if retention_bytes < 0 else retention_bytes * max(len(topic.partitions), 1)


def derived_options(topic: Topic, explicit: Sequence[UserHeader], settings: BrokerSettings) -> list[UserHeader]:
    """The options that are in force on a topic without having been set."""
    given = {one.key for one in explicit}
    in_force = {
        "message_expiry": expiry_us_of(topic, settings),
        "max_topic_size": max_size_bytes_of(topic, settings),
        "segment_size": _setting(topic, "segment.bytes", "log.segment.bytes", settings),
    }
    derived = []
    for option in TOPIC_OPTIONS.values():
        if option.key.encode() not in given:
            value = in_force.get(option.key, option.default)
            derived.append(UserHeader(option.key.encode(), encoded_value(option, value), option.kind))
    return derived


def encoded_value(option: TopicOption, value: int | str) -> bytes:
    """A value in the bytes of its option's kind."""
    if option.kind is HeaderKind.STRING:
        return str(value).encode()
    if option.kind is HeaderKind.BOOL:
        return bytes((value == "true",))
    return int(value).to_bytes(_NUMBER_BYTES[option.kind], "little")
