"""Schemas over HTTP."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.server.http.admin import Admin

Unique = Callable[[str], str]


@pytest.fixture
def schemas(admin: Admin, unique: Unique) -> str:
    name = unique("typed")
    admin.done("PUT", f"~/{name}/partitions", 2)
    return f"/admin/v2/schemas/public/default/{name}"


def avro(*fields: dict[str, Any]) -> dict[str, Any]:
    definition = {"type": "record", "name": "User", "fields": fields}
    return {"type": "AVRO", "schema": json.dumps(definition), "properties": {"by": "ada"}}


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "int", "default": 0}
C = {"name": "c", "type": "int"}


def test_versions(admin: Admin, schemas: str) -> None:
    admin.refused(404, "GET", f"{schemas}/schema")
    admin.refused(404, "DELETE", f"{schemas}/schema")
    assert admin("POST", f"{schemas}/schema", avro(A)) == {"version": {"version": 0}}
    assert admin("POST", f"{schemas}/schema", avro(A, B)) == {"version": {"version": 1}}
    assert admin("POST", f"{schemas}/schema", avro(A)) == {"version": {"version": 0}}
    latest = admin("GET", f"{schemas}/schema")
    assert (latest["version"], latest["type"], latest["properties"]) == (1, "AVRO", {"by": "ada"})
    assert latest["data"] == avro(A, B)["schema"]
    assert latest["timestamp"] > 0
    assert admin("GET", f"{schemas}/schema/0")["data"] == avro(A)["schema"]
    admin.refused(404, "GET", f"{schemas}/schema/2")
    admin.refused(400, "GET", f"{schemas}/schema/new")
    assert [one["version"] for one in admin("GET", f"{schemas}/schemas")["getSchemaResponses"]] == [0, 1]
    assert admin("GET", f"{schemas}-partition-1/schema") == latest


def test_a_schema_is_checked_without_being_registered(admin: Admin, schemas: str) -> None:
    admin("POST", f"{schemas}/schema", avro(A))
    assert admin("POST", f"{schemas}/compatibility", avro(A, B))["compatibility"]
    answer = admin("POST", f"{schemas}/compatibility", avro(A, C))
    assert answer == {"compatibility": False, "schemaCompatibilityStrategy": "FULL"}
    assert admin("POST", f"{schemas}/version", avro(A)) == {"version": 0}
    assert admin("POST", f"{schemas}/version", avro(C)) == {"version": -1}
    assert "reader_field_missing_default_value" in admin.refused(409, "POST", f"{schemas}/schema", avro(A, C))


def test_a_deleted_schema_is_still_found_by_its_version(admin: Admin, schemas: str) -> None:
    admin("POST", f"{schemas}/schema", avro(A))
    assert admin("DELETE", f"{schemas}/schema") == {"version": 1}
    admin.refused(404, "GET", f"{schemas}/schema")
    assert admin("GET", f"{schemas}/schemas") == {"getSchemaResponses": []}
    assert admin("GET", f"{schemas}/schema/0")["type"] == "AVRO"
    assert admin("POST", f"{schemas}/schema", {"type": "STRING"}) == {"version": {"version": 2}}


def test_the_rule_of_the_namespace_holds(admin: Admin, unique: Unique) -> None:
    space = unique("rules")
    admin.done("PUT", f"/admin/v2/namespaces/public/{space}")
    admin.done("PUT", f"/admin/v2/namespaces/public/{space}/schemaCompatibilityStrategy", "FORWARD")
    admin.done("PUT", f"/admin/v2/persistent/public/{space}/t")
    schemas = f"/admin/v2/schemas/public/{space}/t"
    admin("POST", f"{schemas}/schema", avro(A))
    assert admin("POST", f"{schemas}/schema", avro(A, C)) == {"version": {"version": 1}}


def test_a_schema_of_key_and_value(admin: Admin, schemas: str) -> None:
    properties = {"key.schema.type": "STRING", "value.schema.type": "AVRO", "kv.encoding.type": "SEPARATED"}
    value = json.loads(avro(A)["schema"])
    body = {"type": "KEY_VALUE", "schema": json.dumps({"key": "", "value": value}), "properties": properties}
    admin("POST", f"{schemas}/schema", body)
    assert admin.status == 200
    shown = admin("GET", f"{schemas}/schema")
    assert json.loads(shown["data"]) == {"key": "", "value": value}
    assert shown["properties"] == properties


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, {"type": "NOTHING"}),
        (422, {}),
        (422, {"type": "AVRO", "schema": "{"}),
        (422, {"type": "KEY_VALUE", "schema": "[]"}),
        (422, {"type": "AUTO_CONSUME"}),
        (406, {"type": "BYTES"}),
        (400, {"type": "STRING", "schema": 5}),
        (400, {"type": "STRING", "properties": {"a": 1}}),
        (400, []),
    ],
)
def test_what_is_no_schema(admin: Admin, schemas: str, status: int, body: Any) -> None:
    admin.refused(status, "POST", f"{schemas}/schema", body)


def test_a_topic_that_is_not_there(admin: Admin) -> None:
    for method, path, body in (
        ("GET", "schema", None),
        ("POST", "schema", {"type": "STRING"}),
        ("GET", "schemas", None),
    ):
        admin.refused(404, method, f"/admin/v2/schemas/public/default/nowhere/{path}", body)
