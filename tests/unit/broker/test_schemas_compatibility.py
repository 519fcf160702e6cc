"""Which definitions are valid, and which may follow which, under every rule: a table of cases."""

import json
from typing import Any

import pytest

from millstream.broker.schemas import IncompatibleSchema, InvalidSchema, Schema, SchemaType, SchemaVersion
from millstream.broker.schemas.avro import check_reads, parse
from millstream.broker.schemas.compatibility import check_follows, check_valid, find_identical
from millstream.broker.schemas.definition import PRIMITIVES
from millstream.broker.schemas.strategy import SchemaCompatibility as Rule


def record(*fields: Any, name: str = "User") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


ID = field("id", "int")
WIDE_ID = field("id", "long")
NAME = field("name", "string")
NAME_OR_NOT = field("name", ["null", "string"], default=None)
NAME_OR_EMPTY = field("name", "string", default="")
COLOR = {"type": "enum", "name": "Color", "symbols": ["RED"]}
COLORS = {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}
TREE = record(field("child", ["null", "Node"], default=None), name="Node")

PAIRS = [
    # older, newer, whether the newer reads the older, whether the older reads the newer
    ("the same", record(ID), record(ID), True, True),
    ("a field with a default is added", record(ID), record(ID, NAME_OR_NOT), True, True),
    ("a field without a default is added", record(ID), record(ID, NAME), False, True),
    ("a field with a default is removed", record(ID, NAME_OR_NOT), record(ID), True, True),
    ("a field without a default is removed", record(ID, NAME), record(ID), True, False),
    ("a number is widened", record(ID), record(WIDE_ID), True, False),
    ("a number is narrowed", record(WIDE_ID), record(ID), False, True),
    ("a type changes", record(ID), record(field("id", "boolean")), False, False),
    ("string and bytes stand for each other", record(NAME), record(field("name", "bytes")), True, True),
    ("a field may be missing", record(NAME), record(NAME_OR_NOT), True, False),
    ("a symbol is added", record(field("c", COLOR)), record(field("c", COLORS)), True, False),
    ("a symbol is removed", record(field("c", COLORS)), record(field("c", COLOR)), False, True),
    ("a field is renamed", record(NAME), record(field("title", "string")), False, False),
    (
        "a field is renamed, with an alias",
        record(NAME),
        record(field("title", "string", aliases=["name"])),
        True,
        False,
    ),
    ("the record is renamed", record(ID), record(ID, name="Person"), True, True),
    (
        "a nested record is renamed",
        record(field("x", record(ID, name="X"))),
        record(field("x", record(ID, name="Y"))),
        True,
        True,
    ),
    ("a schema that contains itself", TREE, TREE, True, True),
    ("items are widened", {"type": "array", "items": "int"}, {"type": "array", "items": "long"}, True, False),
    ("values are widened", {"type": "map", "values": "int"}, {"type": "map", "values": "float"}, True, False),
    (
        "the size of a fixed changes",
        {"type": "fixed", "name": "F", "size": 4},
        {"type": "fixed", "name": "F", "size": 8},
        False,
        False,
    ),
    (
        "a union gets a branch",
        record(field("x", ["null", "int"])),
        record(field("x", ["null", "int", "string"])),
        True,
        False,
    ),
]


def avro(value: Any, kind: SchemaType = SchemaType.AVRO) -> Schema:
    return Schema(kind, json.dumps(value).encode())


def versions(*schemas: Schema) -> list[SchemaVersion]:
    return [SchemaVersion(number, schema, 0) for number, schema in enumerate(schemas)]


def follows(older: list[Schema], newer: Schema, rule: Rule) -> bool:
    try:
        check_follows(versions(*older), newer, rule)
    except IncompatibleSchema:
        return False
    return True


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF])
@pytest.mark.parametrize(("what", "older", "newer", "reads_older", "read_by_older"), PAIRS)
def test_every_rule(
    kind: SchemaType, what: str, older: Any, newer: Any, reads_older: bool, read_by_older: bool
) -> None:
    before, after = avro(older, kind), avro(newer, kind)
    allowed = {
        Rule.ALWAYS_INCOMPATIBLE: False,
        Rule.ALWAYS_COMPATIBLE: True,
        Rule.BACKWARD: reads_older,
        Rule.FORWARD: read_by_older,
        Rule.FULL: reads_older and read_by_older,
        Rule.BACKWARD_TRANSITIVE: reads_older,
        Rule.FORWARD_TRANSITIVE: read_by_older,
        Rule.FULL_TRANSITIVE: reads_older and read_by_older,
    }
    assert {rule: follows([before], after, rule) for rule in Rule} == allowed, what


TRANSITIVE = [
    # Each version follows the one before it, but the third does not follow the first.
    (Rule.BACKWARD, [record(ID), record(ID, NAME_OR_EMPTY)], record(ID, NAME)),
    (Rule.FORWARD, [record(ID, NAME), record(ID, NAME_OR_EMPTY)], record(ID)),
]


@pytest.mark.parametrize(("rule", "older", "newer"), TRANSITIVE)
def test_transitive_rules_look_at_all_versions(rule: Rule, older: list[Any], newer: Any) -> None:
    before = [avro(one) for one in older]
    assert follows(before[:1], before[1], rule)
    assert follows(before, avro(newer), rule)
    assert not follows(before, avro(newer), Rule(f"{rule.value}_TRANSITIVE"))
    assert not follows(before, avro(newer), Rule.FULL_TRANSITIVE)
    assert follows(before, avro(newer), Rule.ALWAYS_COMPATIBLE)


def test_what_is_first_follows_nothing() -> None:
    assert follows([], avro(record(ID)), Rule.ALWAYS_INCOMPATIBLE)


@pytest.mark.parametrize("kind", [kind for kind in SchemaType if kind in PRIMITIVES])
def test_primitive_types_must_stay(kind: SchemaType) -> None:
    other = Schema(SchemaType.STRING if kind is not SchemaType.STRING else SchemaType.INT8)
    assert find_identical(versions(Schema(kind)), Schema(kind, b"null")) == 0
    for rule in Rule:
        assert follows([other], Schema(kind), rule) is (rule is Rule.ALWAYS_COMPATIBLE)


@pytest.mark.parametrize(("older", "newer"), [(SchemaType.AVRO, SchemaType.JSON), (SchemaType.JSON, SchemaType.AVRO)])
def test_the_type_of_a_definition_must_stay(older: SchemaType, newer: SchemaType) -> None:
    with pytest.raises(IncompatibleSchema, match=f"exists schema type {older.value}, new schema type {newer.value}"):
        check_follows(versions(avro(record(ID), older)), avro(record(ID), newer), Rule.FULL)
    assert not follows([Schema(SchemaType.STRING), avro(record(ID))], avro(record(ID, NAME)), Rule.FORWARD_TRANSITIVE)


def test_json_schemas_of_old_clients() -> None:
    old = avro({"type": "object", "id": "urn:user", "properties": {}}, SchemaType.JSON)
    other = avro({"type": "object", "id": "urn:else", "properties": {}}, SchemaType.JSON)
    changed = avro({"type": "object", "id": "urn:user", "properties": {"a": {}}}, SchemaType.JSON)
    new = avro(record(ID), SchemaType.JSON)
    for schema in (old, other, changed, new):
        check_valid(schema)
    assert follows([old], changed, Rule.FULL)
    assert not follows([old], other, Rule.FULL)
    assert follows([old], new, Rule.FULL)
    assert not follows([new], old, Rule.FULL)


def key_value(key: Schema, value: Schema) -> Schema:
    data = b"".join(len(one.data).to_bytes(4, "big") + one.data for one in (key, value))
    return Schema(
        SchemaType.KEY_VALUE, data, {"key.schema.type": key.type.value, "value.schema.type": value.type.value}
    )


def test_key_and_value_each_by_its_own_rule() -> None:
    text = Schema(SchemaType.STRING)
    older, wider = key_value(text, avro(record(ID))), key_value(text, avro(record(WIDE_ID)))
    for schema in (older, wider):
        check_valid(schema)
    assert follows([older], wider, Rule.BACKWARD)
    assert not follows([older], wider, Rule.FORWARD)
    assert not follows([older], key_value(Schema(SchemaType.INT8), avro(record(ID))), Rule.BACKWARD)


def native(message: str, descriptors: str = "AAAA") -> Schema:
    return avro({"fileDescriptorSet": descriptors, "rootMessageTypeName": message}, SchemaType.PROTOBUF_NATIVE)


def test_the_root_message_must_stay() -> None:
    check_valid(native("a.User"))
    assert follows([native("a.User")], native("a.User", "AAAB"), Rule.FULL_TRANSITIVE)
    assert not follows([native("a.User")], native("a.Person"), Rule.BACKWARD)


DEEP = "[" * 3000 + "]" * 3000
INVALID = [
    (SchemaType.AVRO, b""),
    (SchemaType.AVRO, b"null"),
    (SchemaType.AVRO, b"no json"),
    (SchemaType.AVRO, b"\xff\xfe"),
    (SchemaType.AVRO, b'{"type": "record"}'),
    (SchemaType.AVRO, b'{"type": "record", "name": "A", "fields": [{"name": "b", "type": "Unknown"}]}'),
    (SchemaType.AVRO, b'["null", "int"]'),
    (SchemaType.AVRO, b'{"type": 7}'),
    (SchemaType.AVRO, b'{"type": "record", "name": 5, "fields": 6}'),
    (SchemaType.AVRO, DEEP.encode()),
    (SchemaType.AVRO, b'{"type":"array","items":' * 2000 + b'"int"' + b"}" * 2000),
    (SchemaType.JSON, b'{"type": "thing"}'),
    (SchemaType.PROTOBUF, b'{"type": "object"}'),
    (SchemaType.STRING, b"text"),
    (SchemaType.INT32, b"{}"),
    (SchemaType.AUTO_CONSUME, b""),
    (SchemaType.AUTO_PUBLISH, b""),
    (SchemaType.PROTOBUF_NATIVE, b"{}"),
    (SchemaType.PROTOBUF_NATIVE, b"[]"),
    (SchemaType.PROTOBUF_NATIVE, b'{"fileDescriptorSet": "%%", "rootMessageTypeName": "A"}'),
    (SchemaType.KEY_VALUE, b""),
    (SchemaType.KEY_VALUE, b"\xff\xff\xff\xff"),
    (SchemaType.KEY_VALUE, bytes(9)),
]


@pytest.mark.parametrize(("kind", "data"), INVALID)
def test_what_is_no_definition(kind: SchemaType, data: bytes) -> None:
    with pytest.raises(InvalidSchema):
        check_valid(Schema(kind, data))


@pytest.mark.parametrize("word", ["KEY_VALUE", "NOTHING"])
def test_what_a_key_cannot_be(word: str) -> None:
    with pytest.raises(InvalidSchema):
        check_valid(Schema(SchemaType.KEY_VALUE, bytes(8), {"key.schema.type": word}))


def test_what_is_no_definition_for_others_is_one_here() -> None:
    check_valid(avro(record(ID, name="Outer$Inner")))
    check_valid(Schema(SchemaType.BYTES))
    check_valid(Schema(SchemaType.NONE, b"anything"))
    check_valid(Schema(SchemaType.STRING, b"null"))


def test_layout_does_not_make_another_definition() -> None:
    compact = Schema(SchemaType.AVRO, json.dumps(record(ID), separators=(",", ":")).encode())
    spacious = Schema(SchemaType.AVRO, json.dumps(record(ID), indent=4).encode())
    assert find_identical(versions(avro(record(NAME)), compact), spacious) == 1
    assert find_identical(versions(Schema(SchemaType.JSON, compact.data)), spacious) is None


def test_comparing_is_bounded() -> None:
    def unions(branches: int) -> dict[str, Any]:
        kinds = [
            {"type": "record", "name": f"R{number}", "fields": [field("a", "int")]} for number in range(branches)
        ]
        return record(field("x", kinds))

    wide = parse(json.dumps(unions(1000)).encode())
    other = parse(json.dumps(unions(1000)).replace('"int"', '"string"').encode())
    with pytest.raises(IncompatibleSchema, match="too large"):
        check_reads(reader=wide, writer=other)
