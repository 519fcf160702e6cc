"""The ledger of an application: which micro-batch it has published last, kept with the broker.

It is what the group `millstream-sink-<application id>` has committed, as a consumer without members: in the
partitions that the application writes to, the offset behind what it has written there, and in the first of them as
metadata the entry

    millstream-sink/1 <state> <batch id> <query id or -> <part>/<parts> <transactions>

    state         intent: the transactions are to be committed, and some may be already; done: all of them are
    transactions  those of an intent, packed as below, in Base64; an entry that is larger than the metadata of one
                  offset may be goes on in the groups `millstream-sink-<application id>.1`, `.2`, ...

A commit of offsets is durable and is all or nothing, so that an intent is there or is not: parts that go on elsewhere
are written before the first, and count only with it. Of several entries, in partitions that were written to at
different times, the one of the latest batch counts.

Transactions are packed as varints: their count, and for each the partition of Spark (as the difference to the one
before), the attempt, the producer id (as the difference, in zigzag), the epoch, the count of rows and the digest.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from millstream.spark.access import check_access
from millstream.spark.connections import error_name
from millstream.spark.errors import WriteRefused
from millstream.spark.write.coordinators import Coordinators, Kind
from millstream.spark.write.transactions import Slot, Transaction
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.wire.kafka.messages.offset_fetch import OFFSET_FETCH, OffsetFetchRequest, OffsetFetchRequestGroup
from millstream.wire.kafka.primitives import signed_varint, unsigned_varint

__all__ = ["Entry", "Ledger", "Part", "Place", "State", "group_of"]

_COMMIT_VERSION: Final = 8
_FETCH_VERSION: Final = 8
_FORMAT: Final = "millstream-sink/1"
_TEXT_BYTES_MAX: Final = 3000
"""Bytes of packed transactions, in Base64, beside one offset. Brokers allow 4096 for all of the metadata, unless
they are told otherwise (offset.metadata.max.bytes)."""
_NO_QUERY: Final = "-"
_MASK: Final = 0x7F

Place = tuple[str, int]
"""A topic and one of its partitions."""


class State(StrEnum):
    """How far a batch is."""

    INTENT = "intent"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Part:
    """What one task has written of a batch.

    Args:
        transaction: in which it was written.
        rows: how many rows.
        digest: of what was written, 32 bits.
    """

    transaction: Transaction
    rows: int
    digest: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What the ledger says.

    Args:
        state: of the batch.
        batch_id: the number of the batch.
        query_id: of the streaming query, which lives in its checkpoint; None for batches that are written alone.
        place: the partition beside whose offset it stands.
        offset: that offset.
        parts: of an intent, in the order of tasks; not kept for a batch that is done.
    """

    state: State
    batch_id: int
    query_id: str | None
    place: Place
    offset: int
    parts: tuple[Part, ...] = ()

    def covers(self, batch_id: int) -> bool:
        """Whether the batch, or a later one, has been published."""
        return self.batch_id > batch_id or (self.batch_id == batch_id and self.state is State.DONE)

    def intends(self, batch_id: int) -> bool:
        """Whether the publication of this very batch has begun, and is to be finished."""
        return self.batch_id == batch_id and self.state is State.INTENT

    def part_of(self, partition: int) -> Part | None:
        """What the task of a partition of Spark's has written."""
        return next((part for part in self.parts if part.transaction.slot.partition == partition), None)


def group_of(application_id: str) -> str:
    """The group that the ledger of an application stands under."""
    return f"millstream-sink-{application_id}"


class Ledger:
    """The ledger of one application.

    Args:
        coordinators: of the cluster.
        application_id: whose it is.

    Raises (every method):
        BrokerUnreachable: the broker cannot be reached for too long.
        WriteRefused: it does not take or give the ledger.
    """

    def __init__(self, coordinators: Coordinators, application_id: str) -> None:
        self._coordinators = coordinators
        self._group = group_of(application_id)

    def read(self) -> Entry | None:
        """The entry that counts; None if the application has never published anything."""
        found = [
            (text, place, offset)
            for place, (offset, text) in self._committed(self._group).items()
            if text.startswith("millstream-sink/")
        ]
        latest: tuple[int, str, Place, int] | None = None
        for text, place, offset in found:
            batch_id = self._words(text)[2]
            if latest is None or int(batch_id) > latest[0]:
                latest = int(batch_id), text, place, offset
        return None if latest is None else self._entry(*latest[1:])

    def write(self, entry: Entry, ends: Mapping[Place, int]) -> None:
        """Write an entry; it is durable when this returns.

        Args:
            entry: the entry.
            ends: the offsets behind what was written, by partition; its own place is written in any case.
        """
        packed = base64.b64encode(_packed(entry.parts)).decode() if entry.parts else ""
        texts = [packed[begin : begin + _TEXT_BYTES_MAX] for begin in range(0, len(packed), _TEXT_BYTES_MAX)] or [""]
        head = f"{_FORMAT} {entry.state} {entry.batch_id} {entry.query_id or _NO_QUERY}"
        for index in reversed(range(len(texts))):
            text = f"{head} {index + 1}/{len(texts)} {texts[index]}".rstrip()
            if index:
                self._commit(f"{self._group}.{index}", {entry.place: (entry.offset, text)})
            else:
                places = {place: (offset, "") for place, offset in ends.items()}
                self._commit(self._group, {**places, entry.place: (entry.offset, text)})

    def _words(self, text: str) -> list[str]:
        words = [*text.split(" "), ""]
        if words[0] != _FORMAT or len(words) < 6 or not words[2].isdecimal():
            raise WriteRefused(
                f"the ledger of the sink, group {self._group!r}, has an entry of another version of Millstream: "
                f"{words[0]!r}; go on with that version, or take another applicationId"
            )
        return words

    def _entry(self, text: str, place: Place, offset: int) -> Entry:
        """Read an entry, and its parts that are elsewhere."""
        words = self._words(text)
        texts = [words[5]]
        for index in range(1, int(words[4].partition("/")[2])):
            _, more = self._committed(f"{self._group}.{index}").get(place, (0, ""))
            others = [*more.split(" "), ""]
            if others[1:4] != words[1:4]:
                raise WriteRefused(f"the ledger of the sink is damaged: group {self._group}.{index} misses its part")
            texts.append(others[5])
        try:
            parts = _unpacked(base64.b64decode("".join(texts), validate=True))
        except (IndexError, binascii.Error) as error:
            raise WriteRefused(f"the ledger of the sink is damaged: group {self._group}: {error}") from None
        query_id = None if words[3] == _NO_QUERY else words[3]
        return Entry(State(words[1]), int(words[2]), query_id, place, offset, parts)

    def _committed(self, group: str) -> dict[Place, tuple[int, str]]:
        """What a group has committed: offset and metadata by partition."""
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=None)], require_stable=True
        )
        answer = self._ask(group, OFFSET_FETCH, _FETCH_VERSION, request, _fetch_codes)
        code = next((code for code in _fetch_codes(answer) if code and code not in _GONE), 0)
        check_access(code, "READ", group=group)
        if code:
            raise WriteRefused(
                f"the broker does not give the ledger of the sink, group {group!r}: {error_name(code)}"
            )
        return {
            (topic.name, part.partition_index): (part.committed_offset, part.metadata or "")
            for topic in answer.groups[0].topics
            for part in topic.partitions
            if not part.error_code and part.committed_offset >= 0
        }

    def _commit(self, group: str, offsets: Mapping[Place, tuple[int, str]]) -> None:
        by_topic: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, partition), (offset, text) in sorted(offsets.items()):
            asked = by_topic.setdefault(topic, OffsetCommitRequestTopic(name=topic))
            asked.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=text
                )
            )
        request = OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=list(by_topic.values())
        )
        answer = self._ask(group, OFFSET_COMMIT, _COMMIT_VERSION, request, _commit_codes)
        code = next((code for code in _commit_codes(answer) if code), 0)
        if code == ErrorCode.OFFSET_METADATA_TOO_LARGE:
            raise WriteRefused(
                "the broker's setting offset.metadata.max.bytes is too small for the ledger of the sink: "
                "it takes 4096, which is the default"
            )
        check_access(code, "READ", topic=", ".join(by_topic), group=group)
        if code:
            raise WriteRefused(
                f"the broker does not take the ledger of the sink, group {group!r}: {error_name(code)}; "
                "no consumer may be a member of that group"
            )

    def _ask(self, group: str, api: Any, version: int, request: object, codes: Any) -> Any:
        return self._coordinators.ask(Kind.GROUP, group, api, version, request, codes)


_GONE: Final = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND}


def _fetch_codes(answer: Any) -> Iterable[int]:
    for group in answer.groups:
        yield group.error_code
        yield from (part.error_code for topic in group.topics for part in topic.partitions)


def _commit_codes(answer: Any) -> Iterable[int]:
    return (part.error_code for topic in answer.topics for part in topic.partitions)


def _packed(parts: Sequence[Part]) -> bytes:
    data = bytearray(unsigned_varint(len(parts)))
    partition = producer_id = 0
    for part in parts:
        transaction = part.transaction
        data += unsigned_varint(transaction.slot.partition - partition)
        data += unsigned_varint(transaction.slot.attempt)
        data += signed_varint(transaction.producer_id - producer_id)
        data += unsigned_varint(transaction.epoch) + unsigned_varint(part.rows) + unsigned_varint(part.digest)
        partition, producer_id = transaction.slot.partition, transaction.producer_id
    return bytes(data)


def _unpacked(data: bytes) -> tuple[Part, ...]:
    """Raises IndexError."""
    if not data:
        return ()
    numbers = iter(_varints(data))
    parts = []
    partition = producer_id = 0
    try:
        for _ in range(next(numbers)):
            partition += next(numbers)
            attempt, zigzag = next(numbers), next(numbers)
            producer_id += (zigzag >> 1) ^ -(zigzag & 1)
            epoch, rows, digest = next(numbers), next(numbers), next(numbers)
            parts.append(Part(Transaction(Slot(partition, attempt), producer_id, epoch), rows, digest))
    except StopIteration:
        raise IndexError("it ends within a transaction") from None
    return tuple(parts)


def _varints(data: bytes) -> list[int]:
    values = []
    position = 0
    while position < len(data):
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & _MASK) << shift
            shift += 7
            if byte <= _MASK:
                break
        values.append(value)
    return values
