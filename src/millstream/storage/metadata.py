"""The metadata store: everything durable that is not a batch.

SQLAlchemy Core on embedded SQLite, or on another database by URL. Readers never ask it: the broker loads all of it
at the start and keeps it in memory. Writers hand in changes; whatever has gathered while a transaction ran goes
into the next one, off the loop's thread, and is answered when that has been committed.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import SQLAlchemyError

from millstream.model.pending import Pending
from millstream.model.runtime import Runtime
from millstream.storage.errors import StorageError

__all__ = [
    "Change",
    "CommittedOffset",
    "DeleteDocument",
    "DeleteOffsets",
    "DeletePartitionOffsets",
    "DeleteTopic",
    "ForgetTopic",
    "MetadataFailed",
    "MetadataStore",
    "PutDocument",
    "PutOffset",
    "PutTopic",
    "PutValue",
    "Snapshot",
    "StoredTopic",
]

_log = logging.getLogger(__name__)
METADATA_LANE: Final = "metadata"

_tables = MetaData()
_values = Table("cluster_values", _tables, Column("name", String, primary_key=True), Column("value", Text))
_topics = Table(
    "topics",
    _tables,
    Column("id", String(36), primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("partitions", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)
_configs = Table(
    "topic_configs",
    _tables,
    Column("topic_id", String(36), primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Text, nullable=False),
)
_dropped = Table("dropped_topics", _tables, Column("id", String(36), primary_key=True))
_offsets = Table(
    "group_offsets",
    _tables,
    Column("group_id", String, primary_key=True),
    Column("topic_id", String(36), primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("offset", BigInteger, nullable=False),
    Column("leader_epoch", Integer, nullable=False),
    Column("note", Text, nullable=False),
    Column("committed_ms", BigInteger, nullable=False),
    Column("acknowledged", LargeBinary),
    Column("subscription", Boolean),
    Column("kept", Boolean),
)
_documents = Table(
    "documents",
    _tables,
    Column("kind", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Text, nullable=False),
)
_DELETE_OFFSET: Final = delete(_offsets).where(
    _offsets.c.group_id == bindparam("key_group"),
    _offsets.c.topic_id == bindparam("key_topic"),
    _offsets.c.partition == bindparam("key_partition"),
)
_DELETE_DOCUMENT: Final = delete(_documents).where(
    _documents.c.kind == bindparam("of_kind"), _documents.c.key == bindparam("with_key")
)


class MetadataFailed(StorageError):
    """The metadata store could not commit. Nothing of the change was kept."""


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic as the store keeps it."""

    id: UUID
    tenant: str
    namespace: str
    name: str
    partitions: int
    created_ms: int
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """How far a group has come in one partition.

    Args:
        offset: of the next record it wants.
        leader_epoch: as the client gave it, -1 for none.
        note: text the client keeps with it.
        committed_ms: when it was committed.
        acknowledged: records behind the offset that are done with all the same; the encoding is the broker's.
        subscription: whether it stands for a subscription, which lasts until it is ended, however long it rests.
        kept: whether it lasts as long without being one.
    """

    offset: int
    leader_epoch: int
    note: str
    committed_ms: int
    acknowledged: bytes = b""
    subscription: bool = False
    kept: bool = False


@dataclass(frozen=True, slots=True)
class PutValue:
    """Set one of the cluster's own values."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class PutTopic:
    """Create a topic, or replace what is stored of it."""

    topic: StoredTopic


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete a topic, its configs and all offsets committed in it. Its files are remembered as dropped."""

    topic_id: UUID


@dataclass(frozen=True, slots=True)
class ForgetTopic:
    """Forget a dropped topic, whose files are gone."""

    topic_id: UUID


@dataclass(frozen=True, slots=True)
class PutOffset:
    """Commit an offset."""

    group_id: str
    topic_id: UUID
    partition: int
    committed: CommittedOffset


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    """Delete the offsets of a group: of one partition, or all if no topic is given."""

    group_id: str
    topic_id: UUID | None = None
    partition: int = -1


@dataclass(frozen=True, slots=True)
class DeletePartitionOffsets:
    """Delete the offsets that any group has in the partitions of a topic from one on."""

    topic_id: UUID
    first: int


@dataclass(frozen=True, slots=True)
class PutDocument:
    """Set a document: what is durable of one noun (a namespace, a schema, a user) that needs no table of its own.

    Args:
        kind: the noun.
        key: which one, unique in its kind.
        value: JSON.
    """

    kind: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class DeleteDocument:
    """Delete a document, if it is there."""

    kind: str
    key: str


Change = (
    PutValue
    | PutTopic
    | DeleteTopic
    | ForgetTopic
    | PutOffset
    | DeleteOffsets
    | DeletePartitionOffsets
    | PutDocument
    | DeleteDocument
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All of the store at the start.

    Offsets by (group, topic id, partition), documents by (kind, key); dropped topics still may have files.
    """

    values: dict[str, str]
    topics: list[StoredTopic]
    dropped: list[UUID]
    offsets: dict[tuple[str, UUID, int], CommittedOffset]
    documents: dict[tuple[str, str], str] = field(default_factory=dict)


class MetadataStore:
    """The store. Everything but `submit` runs off the loop's thread or before there is a loop.

    Args:
        runtime: the lane for its transactions.
        url: an SQLAlchemy URL.
        durable: whether a commit is on the disk when it returns.
    """

    def __init__(self, runtime: Runtime, url: str, *, durable: bool) -> None:
        self._runtime = runtime
        self._engine = _engine(url, durable=durable)
        self._queue: list[tuple[Sequence[Change], Pending[None]]] = []
        self._running = False

    def load(self) -> Snapshot:
        """Make the tables if need be, and read everything.

        Raises:
            MetadataFailed: the database cannot be opened or read.
        """
        try:
            _tables.create_all(self._engine)
            _add_columns(self._engine)
            with self._engine.connect() as connection:
                return _load(connection)
        except SQLAlchemyError as error:
            raise MetadataFailed(f"the metadata store cannot be read: {_reason(error)}") from None

    def submit(self, changes: Sequence[Change]) -> Pending[None]:
        """Make changes, all or none of them.

        Returns:
            Resolves once they are committed; fails with MetadataFailed.
        """
        pending: Pending[None] = Pending()
        self._queue.append((changes, pending))
        if not self._running:
            self._running = True
            self._runtime.call_soon(self._start)
        return pending

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _start(self) -> None:
        queue, self._queue = self._queue, []
        done = self._runtime.run_blocking(METADATA_LANE, lambda: self._commit([changes for changes, _ in queue]))

        def finish(outcome: Pending[list[str | None]]) -> None:
            for (_, pending), reason in zip(queue, outcome.result(), strict=True):
                if reason is None:
                    pending.resolve(None)
                else:
                    pending.fail(MetadataFailed(f"the metadata store could not commit: {reason}"))
            if self._queue:
                self._start()
            else:
                self._running = False

        done.when_done(finish)

    def _commit(self, groups: list[Sequence[Change]]) -> list[str | None]:
        """Commit all in one transaction, or each on its own if that fails; returns why each failed, None if not."""
        reason = self._transact(groups)
        if reason is None or len(groups) == 1:
            return [reason] * len(groups)
        return [self._transact([changes]) for changes in groups]

    def _transact(self, groups: list[Sequence[Change]]) -> str | None:
        try:
            with self._engine.begin() as connection:
                for many, changes in groupby(chain.from_iterable(groups), key=lambda c: _MANY.get(type(c))):
                    if many is not None:
                        many(connection, changes)
                        continue
                    for change in changes:
                        _apply(connection, change)
        except SQLAlchemyError as error:
            return _reason(error)
        except (OverflowError, ValueError) as error:
            # Drivers refuse numbers and text that the database cannot hold with errors of their own.
            return str(error)
        except Exception as error:  # noqa: BLE001 - ours, and loud, but those who wait must not wait for ever
            _log.exception("internal error in the metadata store")
            return repr(error)
        return None


def _engine(url: str, *, durable: bool) -> Engine:
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def tune(connection: object, _: object) -> None:
            cursor = connection.cursor()  # type: ignore[attr-defined]  # the driver's own type is not known here
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            cursor.close()

    return engine


def _add_columns(engine: Engine) -> None:
    """Give tables that an earlier version made the columns they lack; such columns allow nulls."""
    inspector = inspect(engine)
    for table in _tables.sorted_tables:
        present = {column["name"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in present:
                type_ = column.type.compile(engine.dialect)
                with engine.begin() as connection:
                    connection.execute(text(f'ALTER TABLE {table.name} ADD COLUMN "{column.name}" {type_}'))


def _reason(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]


def _load(connection: Connection) -> Snapshot:
    values = {row.name: row.value for row in connection.execute(select(_values))}
    configs: dict[str, dict[str, str]] = {}
    for row in connection.execute(select(_configs)):
        configs.setdefault(row.topic_id, {})[row.key] = row.value
    topics = [
        StoredTopic(
            UUID(row.id),
            row.tenant,
            row.namespace,
            row.name,
            row.partitions,
            row.created_ms,
            configs.get(row.id, {}),
        )
        for row in connection.execute(select(_topics))
    ]
    offsets = {
        (row.group_id, UUID(row.topic_id), row.partition): CommittedOffset(
            row.offset,
            row.leader_epoch,
            row.note,
            row.committed_ms,
            row.acknowledged or b"",
            bool(row.subscription),
            bool(row.kept),
        )
        for row in connection.execute(select(_offsets))
    }
    dropped = [UUID(row.id) for row in connection.execute(select(_dropped))]
    documents = {(row.kind, row.key): row.value for row in connection.execute(select(_documents))}
    return Snapshot(values, topics, dropped, offsets, documents)


def _apply(connection: Connection, change: Change) -> None:
    match change:
        case PutValue(name, value):
            connection.execute(delete(_values).where(_values.c.name == name))
            connection.execute(insert(_values).values(name=name, value=value))
        case PutTopic(topic):
            _delete_topic(connection, topic.id)
            connection.execute(
                insert(_topics).values(
                    id=str(topic.id),
                    tenant=topic.tenant,
                    namespace=topic.namespace,
                    name=topic.name,
                    partitions=topic.partitions,
                    created_ms=topic.created_ms,
                )
            )
            for key, value in topic.configs.items():
                connection.execute(insert(_configs).values(topic_id=str(topic.id), key=key, value=value))
        case DeleteTopic(topic_id):
            _delete_topic(connection, topic_id)
            connection.execute(delete(_offsets).where(_offsets.c.topic_id == str(topic_id)))
            connection.execute(insert(_dropped).values(id=str(topic_id)))
        case ForgetTopic(topic_id):
            connection.execute(delete(_dropped).where(_dropped.c.id == str(topic_id)))
        case DeleteOffsets(group_id, None, _):
            connection.execute(delete(_offsets).where(_offsets.c.group_id == group_id))
        case DeleteOffsets(group_id, UUID() as topic_id, partition):
            connection.execute(_DELETE_OFFSET, _offset_key(group_id, topic_id, partition))
        case DeletePartitionOffsets(topic_id, first):
            gone = (_offsets.c.topic_id == str(topic_id), _offsets.c.partition >= first)
            connection.execute(delete(_offsets).where(*gone))
        case PutOffset():
            _put_offsets(connection, [change])
        case PutDocument() | DeleteDocument():
            _put_documents(connection, [change])


def _offset_key(group_id: str, topic_id: UUID, partition: int) -> dict[str, object]:
    return {"key_group": group_id, "key_topic": str(topic_id), "key_partition": partition}


def _put_offsets(connection: Connection, changes: Iterable[Change]) -> None:
    """Commit offsets, all with two statements: a consumer of a thousand partitions commits as many at a time."""
    latest = {(c.group_id, c.topic_id, c.partition): c.committed for c in changes if isinstance(c, PutOffset)}
    connection.execute(_DELETE_OFFSET, [_offset_key(*key) for key in latest])
    connection.execute(
        insert(_offsets),
        [
            {
                "group_id": group_id,
                "topic_id": str(topic_id),
                "partition": partition,
                "offset": committed.offset,
                "leader_epoch": committed.leader_epoch,
                "note": committed.note,
                "committed_ms": committed.committed_ms,
                "acknowledged": committed.acknowledged,
                "subscription": committed.subscription,
                "kept": committed.kept,
            }
            for (group_id, topic_id, partition), committed in latest.items()
        ],
    )


def _delete_topic(connection: Connection, topic_id: UUID) -> None:
    connection.execute(delete(_topics).where(_topics.c.id == str(topic_id)))
    connection.execute(delete(_configs).where(_configs.c.topic_id == str(topic_id)))


def _put_documents(connection: Connection, changes: Iterable[Change]) -> None:
    """Set and delete documents, all with two statements: what many clients ask for at a time comes together."""
    latest: dict[tuple[str, str], str | None] = {}
    for change in changes:
        match change:
            case PutDocument(kind, key, value):
                latest[kind, key] = value
            case DeleteDocument(kind, key):
                latest[kind, key] = None
    connection.execute(_DELETE_DOCUMENT, [{"of_kind": kind, "with_key": key} for kind, key in latest])
    rows = [{"kind": kind, "key": key, "value": value} for (kind, key), value in latest.items() if value is not None]
    if rows:
        connection.execute(insert(_documents), rows)


_MANY: Final[Mapping[type, Callable[[Connection, Iterable[Change]], None]]] = {
    PutOffset: _put_offsets,
    PutDocument: _put_documents,
    DeleteDocument: _put_documents,
}
"""What makes changes of a kind together, in the order in which they came."""
