"""Answers of the Iggy protocol as JSON has them.

Times are microseconds since 1970. Sizes are text with the largest unit that tells them exactly ("1.5 KB", "2 KiB").
Options are told with their values as text, and whether somebody set them.
"""

from collections.abc import Iterable
from typing import Any, Final

from millstream.wire.iggy.headers import HeaderKind, UserHeader
from millstream.wire.iggy.messages.groups import GroupDetails, GroupInfo
from millstream.wire.iggy.messages.streams import StreamInfo
from millstream.wire.iggy.messages.topics import PartitionInfo, TopicInfo
from millstream.wire.iggy.messages.users import UserInfo

__all__ = [
    "COMPRESSIONS",
    "STATUSES",
    "group_details_form",
    "group_form",
    "partition_form",
    "size_text",
    "stream_form",
    "topic_form",
    "user_form",
]

Form = dict[str, Any]
COMPRESSIONS: Final = {1: "none", 2: "gzip"}
STATUSES: Final = {1: "active", 2: "inactive"}
_UNITS: Final = tuple(
    unit
    for power in range(6, 0, -1)
    for unit in ((f"{' KMGTPE'[power]}iB", 1024**power), (f"{' KMGTPE'[power]}B", 1000**power))
)
_SIGNED: Final = frozenset({HeaderKind.INT8, HeaderKind.INT16, HeaderKind.INT32, HeaderKind.INT64, HeaderKind.INT128})
_UNSIGNED: Final = frozenset(
    {HeaderKind.UINT8, HeaderKind.UINT16, HeaderKind.UINT32, HeaderKind.UINT64, HeaderKind.UINT128}
)


def size_text(size_bytes: int) -> str:
    """A number of bytes as text, in the largest unit of which it is so many thousandths."""
    for unit, unit_bytes in _UNITS:
        thousandths, rest = divmod(size_bytes * 1000, unit_bytes)
        if size_bytes >= unit_bytes and not rest:
            whole, part = divmod(thousandths, 1000)
            return f"{whole}.{part:03}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{size_bytes} B"


def _option_text(option: UserHeader) -> str:
    """The value of an option as text."""
    if option.kind in _UNSIGNED or option.kind in _SIGNED:
        return str(int.from_bytes(option.value, "little", signed=option.kind in _SIGNED))
    if option.kind == HeaderKind.BOOL:
        return "true" if any(option.value) else "false"
    return str(option.value, "utf-8", "replace")


def _options(explicit: Iterable[UserHeader], derived: Iterable[UserHeader] = ()) -> Form:
    told = {}
    for options, is_explicit in ((derived, False), (explicit, True)):
        for one in options:
            told[str(one.key, "utf-8", "replace")] = {"value": _option_text(one), "explicit": is_explicit}
    return dict(sorted(told.items()))


def stream_form(stream: StreamInfo, topics: Iterable[TopicInfo] | None = None) -> Form:
    """A stream, with its topics if they are given."""
    form = {
        "id": stream.id,
        "created_at": stream.created_at_us,
        "name": stream.name,
        "size": size_text(stream.size_bytes),
        "messages_count": stream.messages_count,
        "topics_count": stream.topics_count,
        "options": _options(stream.options),
    }
    if topics is not None:
        form["topics"] = [topic_form(topic) for topic in topics]
    return form


def topic_form(topic: TopicInfo, partitions: Iterable[PartitionInfo] | None = None) -> Form:
    """A topic, with its partitions if they are given."""
    form = {
        "id": topic.id,
        "created_at": topic.created_at_us,
        "name": topic.name,
        "size": size_text(topic.size_bytes),
        "message_expiry": topic.expiry_us,
        "compression_algorithm": COMPRESSIONS[topic.compression],
        "max_topic_size": topic.max_size_bytes,
        "replication_factor": topic.replication,
        "messages_count": topic.messages_count,
        "partitions_count": topic.partitions_count,
        "options": _options(topic.options, topic.derived_options),
    }
    if partitions is not None:
        form["partitions"] = [partition_form(partition) for partition in partitions]
    return form


def partition_form(partition: PartitionInfo) -> Form:
    """A partition."""
    return {
        "id": partition.id,
        "created_at": partition.created_at_us,
        "segments_count": partition.segments_count,
        "current_offset": partition.current_offset,
        "size": size_text(partition.size_bytes),
        "messages_count": partition.messages_count,
    }


def group_form(group: GroupInfo) -> Form:
    """A consumer group."""
    return {
        "id": group.id,
        "name": group.name,
        "partitions_count": group.partitions_count,
        "members_count": group.members_count,
    }


def group_details_form(details: GroupDetails) -> Form:
    """A consumer group with its members."""
    members = [
        {"id": one.id, "partitions_count": len(one.partitions), "partitions": one.partitions}
        for one in details.members
    ]
    return {**group_form(details.group), "members": members}


def user_form(user: UserInfo) -> Form:
    """A user."""
    return {
        "id": user.id,
        "created_at": user.created_at_us,
        "status": STATUSES[user.status],
        "username": user.name,
        "options": _options(user.options),
    }
