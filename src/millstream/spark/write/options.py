"""The options of the sink, named as those of Spark's own Kafka sink and of Kafka's producers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from millstream.spark.errors import BadOption
from millstream.spark.servers import SERVER_OPTIONS, Servers
from millstream.spark.write.partitioners import Partitioner
from millstream.wire.compression import Codec

__all__ = ["Delivery", "WriteOptions"]

_BATCH_BYTES: Final = 512 * 1024
_BATCH_BYTES_MAX: Final = 64 * 1024 * 1024
_TRANSACTION_TIMEOUT_MS: Final = 900_000
"""The longest that brokers allow, unless they are told otherwise: it is how long the slowest task of a batch may take
behind the first."""
_DELIVERY_TIMEOUT_MS: Final = 120_000
_INT32_MAX: Final = 2**31 - 1
_APPLICATION_ID_MAX: Final = 200
_NAMES: Final = (
    *SERVER_OPTIONS,
    "topic",
    "partitioner",
    "delivery",
    "applicationId",
    "batchId",
    "kafka.compression.type",
    "kafka.batch.size",
    "kafka.acks",
    "kafka.transaction.timeout.ms",
    "kafka.delivery.timeout.ms",
)
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname", "outputmode"})
"""Options of a query that Spark hands on to its sink."""


class Delivery(StrEnum):
    """What a table, or a micro-batch, that is written is to the readers of a topic."""

    EXACTLY_ONCE = "exactly-once"
    """It is published as a whole when all of it is written; a micro-batch that runs again is not published again."""
    AT_LEAST_ONCE = "at-least-once"
    """Rows are seen as they are written; what runs again is written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What to write and how.

    Args:
        servers: the brokers, and how to speak to them (`kafka.bootstrap.servers`, `kafka.security.protocol`, ...).
        topic: where all rows go, whatever a column says; None if the column `topic` says so.
        partitioner: chooses partitions (`partitioner`).
        delivery: what is promised (`delivery`).
        application_id: under which the ledger stands (`applicationId`); None for the id of the streaming query, and
            for no ledger if the rows are not a stream's.
        batch_id: the number of what is written by itself, for the ledger (`batchId`).
        codec: how batches are compressed (`kafka.compression.type`).
        batch_bytes: about how large batches become before compression (`kafka.batch.size`).
        transaction_timeout_ms: for how long a task's rows wait for those of all others, before the broker drops them
            (`kafka.transaction.timeout.ms`).
        patience_s: for how long a broker that does not answer is asked again (`kafka.delivery.timeout.ms`).
    """

    servers: Servers
    topic: str | None
    partitioner: Partitioner
    delivery: Delivery
    application_id: str | None
    batch_id: int | None
    codec: Codec
    batch_bytes: int
    transaction_timeout_ms: int
    patience_s: float

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "WriteOptions":
        """Read the options that were given to Spark; names count without case.

        Raises:
            BadOption: the first that is missing, unknown or makes no sense.
        """
        given = _known(options)
        servers = Servers.of(options)
        topic = given.get("topic")
        if topic is not None and not topic:
            raise BadOption("the option topic is empty: the name of a topic")
        if given.get("kafka.acks", "all") not in {"all", "-1"}:
            raise BadOption(f"kafka.acks is always all, not {given['kafka.acks']!r}")
        application_id = given.get("applicationId")
        if application_id is not None and not (
            application_id.isprintable() and 0 < len(application_id) <= _APPLICATION_ID_MAX
        ):
            raise BadOption(f"applicationId takes 1 to {_APPLICATION_ID_MAX} printable characters")
        return cls(
            servers=servers,
            topic=topic,
            partitioner=Partitioner(_one_of(given, "partitioner", list(Partitioner), Partitioner.MURMUR2_RANDOM)),
            delivery=Delivery(_one_of(given, "delivery", list(Delivery), Delivery.EXACTLY_ONCE)),
            application_id=application_id,
            batch_id=_number(given, "batchId", 0, 2**63 - 1) if "batchId" in given else None,
            codec=_CODECS[_one_of(given, "kafka.compression.type", list(_CODECS), "none")],
            batch_bytes=_number(given, "kafka.batch.size", 1, _BATCH_BYTES_MAX, _BATCH_BYTES),
            transaction_timeout_ms=_number(
                given, "kafka.transaction.timeout.ms", 1, _INT32_MAX, _TRANSACTION_TIMEOUT_MS
            ),
            patience_s=_number(given, "kafka.delivery.timeout.ms", 1, _INT32_MAX, _DELIVERY_TIMEOUT_MS) / 1000,
        )

    def for_batch(self) -> "WriteOptions":
        """Check that a table can be written with them.

        Raises:
            BadOption: half of what makes it known again is given.
        """
        if (self.application_id is None) != (self.batch_id is None):
            raise BadOption(
                "applicationId and batchId go together: what has been written under both is not written again"
            )
        if self.batch_id is not None and self.delivery is Delivery.AT_LEAST_ONCE:
            raise BadOption("batchId is for delivery=exactly-once: what is published at once is not known again")
        return self

    def for_stream(self) -> "WriteOptions":
        """Check that a stream can be written with them.

        Raises:
            BadOption: the number of a micro-batch is Spark's.
        """
        if self.batch_id is not None:
            raise BadOption("batchId is for tables that are not streams; a stream's batches have numbers")
        return self


_CODECS: Final = {codec.name.lower(): codec for codec in Codec}


def _known(options: Mapping[str, str]) -> dict[str, str]:
    known = {name.lower(): name for name in _NAMES}
    given: dict[str, str] = {}
    for key, value in options.items():
        name = known.get(key.lower())
        if name is not None:
            given[name] = value.strip()
        elif key.lower() not in _OF_SPARK:
            raise BadOption(f"there is no option {key!r} for writing; there are {', '.join(_NAMES)}")
    return given


def _one_of(given: Mapping[str, str], name: str, values: list[str], default: str) -> str:
    text = given.get(name, default).lower()
    if text not in values:
        raise BadOption(f"{name} is one of {', '.join(values)}, not {given[name]!r}")
    return text


def _number(given: Mapping[str, str], name: str, low: int, high: int, default: int = 0) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not text.isdecimal() or not low <= int(text) <= high:
        raise BadOption(f"{name} takes a whole number from {low} to {high}, not {text!r}")
    return int(text)
