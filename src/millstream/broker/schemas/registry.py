"""The schema registry: the versions of each topic's schema, in memory and in the metadata store."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Collection
from typing import Final, TypeVar
from uuid import UUID

from millstream.broker.documents import Document, Documents
from millstream.broker.schemas.compatibility import check_follows, check_valid, find_identical
from millstream.broker.schemas.definition import Schema, SchemaType, SchemaVersion
from millstream.broker.schemas.errors import IncompatibleSchema, InvalidSchema, UnknownSchema
from millstream.broker.schemas.strategy import SchemaCompatibility
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime

__all__ = ["DEFINITION_BYTES_MAX", "VERSIONS_MAX", "SchemaRegistry"]

T = TypeVar("T")
SCHEMAS_LANE: Final = "schemas"
"""Definitions are parsed and compared here: a large one takes longer than the loop may stand still."""
DEFINITION_BYTES_MAX: Final = 1024 * 1024
"""Bytes of a definition and its properties: they are kept in memory, all versions of them."""
VERSIONS_MAX: Final = 10_000
"""Versions of one topic's schema; a client that makes up a new one for each connection is stopped there."""
_KIND: Final = "schema"


class _History:
    """What one topic has had: every version, since old messages still need theirs, and those that are in force."""

    def __init__(self) -> None:
        self.versions: dict[int, SchemaVersion] = {}
        self.next_version = 0
        self.in_force_from = 0

    @property
    def in_force(self) -> list[SchemaVersion]:
        """The versions since the last deletion, oldest first."""
        return [one for number, one in self.versions.items() if number >= self.in_force_from]

    def note(self, version: SchemaVersion) -> None:
        """Enter a version, the next one."""
        self.versions[version.version] = version
        self.next_version = version.version + 1

    def note_deletion(self, number: int) -> None:
        """Put all versions so far out of force; the deletion takes up a number."""
        self.in_force_from = self.next_version = number + 1


class SchemaRegistry:
    """The schemas of all topics, by the topic's id. Partitions of a topic share one.

    What is asked with `strategy` is asked under the rule of the topic's namespace.

    Args:
        runtime: time, and the lane in which definitions are read.
        documents: where schemas last.
        topic_ids: schemas of other topics, whose deletion was interrupted, are dropped.
    """

    def __init__(self, runtime: Runtime, documents: Documents, topic_ids: Collection[UUID]) -> None:
        self._runtime = runtime
        self._documents = documents
        self._histories: dict[UUID, _History] = {}
        self._turns: dict[UUID, Pending[object]] = {}
        stored = [(key.partition("/"), document) for key, document in documents.of_kind(_KIND).items()]
        for (topic, _, number), document in sorted(stored, key=lambda one: int(one[0][2])):
            topic_id = UUID(topic)
            if topic_id not in topic_ids:
                documents.delete(_KIND, f"{topic}/{number}")
                continue
            history = self._histories.setdefault(topic_id, _History())
            if document.get("deleted"):
                history.note_deletion(int(number))
            else:
                history.note(_version(int(number), document))

    # Finding

    def latest(self, topic_id: UUID) -> SchemaVersion | None:
        """The schema of a topic; None if it has none."""
        history = self._histories.get(topic_id)
        if history is None or history.next_version == history.in_force_from:
            return None
        return history.versions[history.next_version - 1]

    def find(self, topic_id: UUID, version: int) -> SchemaVersion | None:
        """A version of a topic's schema, even of one that was deleted: there may be messages written with it."""
        history = self._histories.get(topic_id)
        return None if history is None else history.versions.get(version)

    def versions(self, topic_id: UUID) -> list[SchemaVersion]:
        """All versions of a topic's schema, oldest first; none if it was deleted."""
        history = self._histories.get(topic_id)
        return [] if history is None else history.in_force

    def version_of(self, topic_id: UUID, schema: Schema) -> Pending[int | None]:
        """The version whose definition is the same, however it is laid out; None if there is none.

        Fails with InvalidSchema.
        """
        known = self._known(topic_id, schema)
        if known is not None:
            return settled(known)

        def work() -> int | None:
            check_valid(schema)
            return find_identical(in_force, schema)

        in_force = self.versions(topic_id)
        return self._read(schema, work)

    def _known(self, topic_id: UUID, schema: Schema) -> int | None:
        """The version that a schema is byte for byte: that of nearly every client that comes back."""
        for one in reversed(self.versions(topic_id)):
            if one.schema.type is schema.type and one.schema.data == schema.data:
                return one.version
        return None

    def _read(self, schema: Schema, work: Callable[[], T]) -> Pending[T]:
        size = len(schema.data) + sum(len(name) + len(value) for name, value in schema.properties.items())
        if size > DEFINITION_BYTES_MAX:
            return Pending.attempt(lambda: _refuse(f"a definition has at most {DEFINITION_BYTES_MAX} bytes"))
        return self._runtime.run_blocking(SCHEMAS_LANE, work)

    # Changing

    def register(
        self, topic_id: UUID, schema: Schema, strategy: SchemaCompatibility, *, may_update: bool = True
    ) -> Pending[int]:
        """Give a topic a schema, or find the version that it is.

        Args:
            topic_id: whose.
            schema: what a producer writes by.
            strategy: what it must keep of those before it.
            may_update: whether it may be new; the namespace's `schema_auto_update`.

        Returns:
            Resolves with the version once it lasts; fails with InvalidSchema, IncompatibleSchema, MetadataFailed.
        """
        known = self._known(topic_id, schema)
        if known is not None:
            return settled(known)
        return self._in_turn(topic_id, lambda: self._register(topic_id, schema, strategy, may_update=may_update))

    def _register(
        self, topic_id: UUID, schema: Schema, strategy: SchemaCompatibility, *, may_update: bool
    ) -> Pending[int]:
        in_force = self.versions(topic_id)

        def work() -> int | None:
            check_valid(schema)
            identical = find_identical(in_force, schema)
            if identical is not None:
                return identical
            if not may_update:
                raise IncompatibleSchema("schemas are not updated by producers in this namespace")
            if len(in_force) >= VERSIONS_MAX:
                raise IncompatibleSchema(f"a schema has at most {VERSIONS_MAX} versions")
            check_follows(in_force, schema, strategy)
            return None

        def store(identical: int | None) -> Pending[int]:
            return self._store(topic_id, schema) if identical is None else settled(identical)

        return self._read(schema, work).chain(store)

    def _store(self, topic_id: UUID, schema: Schema) -> Pending[int]:
        history = self._histories.setdefault(topic_id, _History())
        version = SchemaVersion(history.next_version, schema, self._runtime.now_ms())

        def enter(_: None) -> int:
            if self._histories.get(topic_id) is history:
                history.note(version)
            return version.version

        return self._documents.put(_KIND, f"{topic_id}/{version.version}", _document(version)).then(enter)

    def check(self, topic_id: UUID, schema: Schema, strategy: SchemaCompatibility) -> Pending[None]:
        """Tell whether a producer could register a schema, without doing it.

        Returns:
            Fails with InvalidSchema, IncompatibleSchema.
        """
        in_force = self.versions(topic_id)

        def work() -> None:
            check_valid(schema)
            if find_identical(in_force, schema) is None:
                check_follows(in_force, schema, strategy)

        return self._read(schema, work)

    def check_consumer(self, topic_id: UUID, schema: Schema, strategy: SchemaCompatibility) -> Pending[None]:
        """Tell whether a consumer can read a topic by a schema.

        It must read the latest version, or under BACKWARD_TRANSITIVE and FULL_TRANSITIVE keep that rule with all of
        them. Source: Pulsar's broker.

        Returns:
            Fails with UnknownSchema if the topic has none, InvalidSchema, IncompatibleSchema.
        """
        latest = self.latest(topic_id)
        if strategy is SchemaCompatibility.ALWAYS_COMPATIBLE:
            return settled(None)
        if latest is None:
            return Pending.attempt(lambda: _unknown("the topic has no schema"))
        if latest.schema.type is schema.type and latest.schema.data == schema.data:
            return settled(None)
        strict = {
            SchemaCompatibility.BACKWARD_TRANSITIVE,
            SchemaCompatibility.FULL_TRANSITIVE,
            SchemaCompatibility.ALWAYS_INCOMPATIBLE,
        }
        rule = strategy if strategy in strict else SchemaCompatibility.BACKWARD
        in_force = self.versions(topic_id)

        def work() -> None:
            check_valid(schema)
            check_follows(in_force, schema, rule)

        return self._read(schema, work)

    def delete(self, topic_id: UUID) -> Pending[int]:
        """Take a topic's schema out of force, all versions of it; the next one may be anything.

        Returns:
            Resolves with the version number that the deletion took up; fails with UnknownSchema, MetadataFailed.
        """
        return self._in_turn(topic_id, lambda: self._delete(topic_id))

    def _delete(self, topic_id: UUID) -> Pending[int]:
        history = self._histories.get(topic_id)
        if history is None or self.latest(topic_id) is None:
            raise UnknownSchema("the topic has no schema")
        number = history.next_version

        def enter(_: None) -> int:
            history.note_deletion(number)
            return number

        return self._documents.put(_KIND, f"{topic_id}/{number}", {"deleted": True}).then(enter)

    def forget_topic(self, topic_id: UUID) -> None:
        """Drop what a topic had, since it is gone."""
        history = self._histories.pop(topic_id, None)
        if history is not None:
            for number in range(history.next_version):
                self._documents.delete(_KIND, f"{topic_id}/{number}")

    def _in_turn(self, topic_id: UUID, begin: Callable[[], Pending[int]]) -> Pending[int]:
        """Begin something once what was begun before for the same topic has ended, whether well or not."""
        before = self._turns.get(topic_id)
        work = Pending.attempt(begin) if before is None else before.always(lambda: None).chain(lambda _: begin())
        if work.done:
            return work
        turn: Pending[object] = work.always(lambda: None)
        self._turns[topic_id] = turn

        def end(_: object) -> None:
            if self._turns.get(topic_id) is turn:
                del self._turns[topic_id]

        turn.when_done(end)
        return work


def _refuse(reason: str) -> Pending[T]:
    raise InvalidSchema(reason)


def _unknown(reason: str) -> Pending[T]:
    raise UnknownSchema(reason)


def _document(version: SchemaVersion) -> Document:
    schema = version.schema
    return {
        "type": schema.type.value,
        "data": b64encode(schema.data).decode(),
        "properties": dict(schema.properties),
        "created_ms": version.created_ms,
    }


def _version(number: int, document: Document) -> SchemaVersion:
    schema = Schema(SchemaType(document["type"]), b64decode(document["data"]), document["properties"])
    return SchemaVersion(number, schema, document["created_ms"])
