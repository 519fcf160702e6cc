"""The schema registry: versions, what lasts, what is refused, and several clients at the same time."""

from pathlib import Path
from uuid import UUID

import pytest

from millstream.broker.schemas import (
    IncompatibleSchema,
    InvalidSchema,
    Schema,
    SchemaCompatibility,
    SchemaRegistry,
    SchemaType,
    UnknownSchema,
    registry,
)
from millstream.broker.topics import Topic
from millstream.model.pending import Pending
from millstream.storage.metadata import MetadataFailed
from tests.unit.broker.simulated_broker import SimulatedBroker

FULL, BACKWARD = SchemaCompatibility.FULL, SchemaCompatibility.BACKWARD
TEXT = Schema(SchemaType.STRING, properties={"a": "b"})


def user(*fields: str, space: str = "") -> Schema:
    """A record of ints; those that end with a question mark have a default."""
    parts = (
        f'{{"name":{space}"{name.rstrip("?")}","type":"int"{", " if name.endswith("?") else ""}'
        f"{chr(34) + 'default' + chr(34) + ': 0' if name.endswith('?') else ''}}}"
        for name in fields
    )
    return Schema(SchemaType.AVRO, f'{{"type":"record","name":"User","fields":[{",".join(parts)}]}}'.encode())


class Bed:
    """A broker with a topic, and its registry."""

    def __init__(self, database: Path) -> None:
        self.sim = SimulatedBroker(str(database))
        self.topic: Topic = self.sim.create()
        self.open()

    def open(self) -> None:
        self.schemas = SchemaRegistry(
            self.sim.runtime, self.sim.broker.documents, {topic.id for topic in self.sim.broker.topics}
        )

    @property
    def id(self) -> UUID:
        return self.topic.id

    def begin(self, schema: Schema, rule: SchemaCompatibility = FULL, *, may_update: bool = True) -> Pending[int]:
        return self.schemas.register(self.id, schema, rule, may_update=may_update)

    def register(self, schema: Schema, rule: SchemaCompatibility = FULL, *, may_update: bool = True) -> int:
        return self.sim.wait(self.begin(schema, rule, may_update=may_update))

    def kill(self) -> None:
        self.sim.kill()
        self.sim.start()
        self.open()


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path / "metadata.sqlite")


def test_versions_are_counted_and_last(bed: Bed) -> None:
    first, second = user("a"), user("a", "b?")
    assert (bed.schemas.latest(bed.id), bed.schemas.versions(bed.id)) == (None, [])
    assert (bed.register(first), bed.register(second)) == (0, 1)
    for _ in range(2):
        latest = bed.schemas.latest(bed.id)
        assert latest is not None
        assert (latest.version, latest.schema) == (1, second)
        assert latest.created_ms > 0
        found = bed.schemas.find(bed.id, 0)
        assert found is not None
        assert found.schema == first
        assert bed.schemas.find(bed.id, 2) is None
        assert [one.version for one in bed.schemas.versions(bed.id)] == [0, 1]
        bed.kill()


def test_what_is_there_already_is_found_at_once(bed: Bed) -> None:
    bed.register(user("a"))
    bed.register(user("a", "b?"))
    again = bed.begin(user("a"))
    assert again.done
    assert again.result() == 0
    assert bed.register(user("a", space="  ")) == 0
    assert len(bed.schemas.versions(bed.id)) == 2


def test_properties_last(bed: Bed) -> None:
    assert bed.register(TEXT) == 0
    bed.kill()
    latest = bed.schemas.latest(bed.id)
    assert latest is not None
    assert latest.schema == TEXT


def test_what_does_not_follow_is_refused(bed: Bed) -> None:
    bed.register(user("a"))
    with pytest.raises(IncompatibleSchema, match="reader_field_missing_default_value"):
        bed.register(user("a", "b"))
    with pytest.raises(IncompatibleSchema, match="exists schema type AVRO, new schema type STRING"):
        bed.register(TEXT)
    with pytest.raises(InvalidSchema):
        bed.register(Schema(SchemaType.AVRO, b"{"))
    assert bed.register(TEXT, SchemaCompatibility.ALWAYS_COMPATIBLE) == 1


def test_producers_may_be_kept_from_updating(bed: Bed) -> None:
    with pytest.raises(IncompatibleSchema, match="not updated"):
        bed.register(user("a"), may_update=False)
    bed.register(user("a"))
    assert bed.register(user("a"), may_update=False) == 0
    assert bed.register(user("a", space=" "), may_update=False) == 0


def test_a_version_is_there_only_once_it_lasts(bed: Bed) -> None:
    bed.sim.store.failing = True
    with pytest.raises(MetadataFailed):
        bed.register(user("a"))
    assert bed.schemas.latest(bed.id) is None
    bed.sim.store.failing = False
    assert bed.register(user("a")) == 0


def test_clients_at_the_same_time_are_served_one_after_the_other(bed: Bed) -> None:
    same = [bed.begin(user("a")), bed.begin(user("a")), bed.begin(user("a", space=" "))]
    other, wrong, last = bed.begin(user("a", "b?")), bed.begin(user("b")), bed.begin(user("a", "b?", "c?"))
    bed.sim.runtime.run()
    assert [pending.result() for pending in same] == [0, 0, 0]
    assert (other.result(), last.result()) == (1, 2)
    with pytest.raises(IncompatibleSchema):
        wrong.result()


def test_topics_do_not_wait_for_each_other(bed: Bed) -> None:
    other = bed.sim.create("other")
    bed.begin(user("a"))
    assert bed.sim.wait(bed.schemas.register(other.id, TEXT, FULL)) == 0
    assert [one.schema for one in bed.schemas.versions(bed.id)] == [user("a")]


def test_a_deletion_takes_up_a_version(bed: Bed) -> None:
    with pytest.raises(UnknownSchema):
        bed.sim.wait(bed.schemas.delete(bed.id))
    bed.register(user("a"))
    assert bed.sim.wait(bed.schemas.delete(bed.id)) == 1
    for _ in range(2):
        assert (bed.schemas.latest(bed.id), bed.schemas.versions(bed.id)) == (None, [])
        old = bed.schemas.find(bed.id, 0)
        assert old is not None
        assert old.schema == user("a")
        bed.kill()
    with pytest.raises(UnknownSchema):
        bed.sim.wait(bed.schemas.delete(bed.id))
    assert bed.register(TEXT) == 2
    bed.kill()
    assert [one.version for one in bed.schemas.versions(bed.id)] == [2]


def test_schemas_go_with_their_topic(bed: Bed) -> None:
    bed.register(user("a"))
    bed.schemas.forget_topic(bed.id)
    bed.sim.runtime.run()
    assert bed.schemas.latest(bed.id) is None
    assert bed.sim.broker.documents.of_kind("schema") == {}


def test_schemas_of_a_topic_that_is_gone_are_dropped_at_the_next_start(bed: Bed) -> None:
    bed.register(user("a"))
    bed.sim.wait(bed.sim.broker.topics.delete(bed.topic))
    bed.kill()
    bed.sim.runtime.run()
    assert bed.sim.broker.documents.of_kind("schema") == {}


def test_the_version_of_a_definition(bed: Bed) -> None:
    bed.register(user("a"))
    bed.register(user("a", "b?"))
    assert bed.sim.wait(bed.schemas.version_of(bed.id, user("a"))) == 0
    assert bed.sim.wait(bed.schemas.version_of(bed.id, user("a", space=" "))) == 0
    assert bed.sim.wait(bed.schemas.version_of(bed.id, user("z"))) is None
    with pytest.raises(InvalidSchema):
        bed.sim.wait(bed.schemas.version_of(bed.id, Schema(SchemaType.AVRO)))


def test_a_producer_can_ask_first(bed: Bed) -> None:
    bed.sim.wait(bed.schemas.check(bed.id, user("z"), FULL))
    bed.register(user("a"))
    bed.sim.wait(bed.schemas.check(bed.id, user("a", space=" "), SchemaCompatibility.ALWAYS_INCOMPATIBLE))
    bed.sim.wait(bed.schemas.check(bed.id, user("a", "b?"), FULL))
    with pytest.raises(IncompatibleSchema):
        bed.sim.wait(bed.schemas.check(bed.id, user("a", "b"), FULL))
    assert len(bed.schemas.versions(bed.id)) == 1


def test_a_consumer_must_read_the_latest(bed: Bed) -> None:
    def check(schema: Schema, rule: SchemaCompatibility) -> None:
        bed.sim.wait(bed.schemas.check_consumer(bed.id, schema, rule))

    with pytest.raises(UnknownSchema):
        check(user("a"), FULL)
    check(TEXT, SchemaCompatibility.ALWAYS_COMPATIBLE)
    bed.register(user("a"))
    bed.register(user("a", "b"), SchemaCompatibility.FORWARD)
    check(user("a", "b"), SchemaCompatibility.ALWAYS_INCOMPATIBLE)
    for rule in (BACKWARD, FULL, SchemaCompatibility.FORWARD, SchemaCompatibility.FORWARD_TRANSITIVE):
        check(user("b"), rule)
        with pytest.raises(IncompatibleSchema):
            check(user("c"), rule)
    with pytest.raises(IncompatibleSchema):
        check(user("b"), SchemaCompatibility.BACKWARD_TRANSITIVE)
    check(user("a"), SchemaCompatibility.BACKWARD_TRANSITIVE)


def test_definitions_are_bounded(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    large = Schema(SchemaType.AVRO, bytes(registry.DEFINITION_BYTES_MAX + 1))
    for pending in (bed.begin(large), bed.schemas.check(bed.id, large, FULL), bed.schemas.version_of(bed.id, large)):
        bed.sim.runtime.run()
        with pytest.raises(InvalidSchema, match="at most"):
            pending.result()
    monkeypatch.setattr(registry, "VERSIONS_MAX", 1)
    bed.register(user("a"))
    with pytest.raises(IncompatibleSchema, match="at most 1 versions"):
        bed.register(user("a", "b?"))
