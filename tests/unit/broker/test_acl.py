"""What an ACL is, what a filter means, and what is stored of both."""

import json

import pytest

from millstream.broker.acl import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    InvalidAcl,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
    check_principal,
)

TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED


def acl(name: str = "orders", pattern: PatternType = LITERAL, kind: ResourceType = TOPIC, **fields: str) -> Acl:
    return Acl(
        Resource(kind, pattern, name),
        fields.get("principal", "User:ada"),
        fields.get("host", "*"),
        Operation.READ,
        Permission.ALLOW,
    )


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("permission", Permission)
def test_what_is_stored_is_read_back(operation: Operation, permission: Permission) -> None:
    one = Acl(Resource(TOPIC, PREFIXED, 'späti, "x"'), "User:CN=ada,O=Engines", "::1", operation, permission)
    assert Acl.of_document(json.loads(json.dumps(one.document()))) == one
    assert one.key != acl().key


@pytest.mark.parametrize(
    ("name", "pattern", "kind", "fields", "reason"),
    [
        ("", LITERAL, TOPIC, {}, "is empty"),
        ("orders", PatternType.ANY, TOPIC, {}, "not ANY"),
        ("orders", PatternType.MATCH, TOPIC, {}, "not MATCH"),
        ("orders", LITERAL, ResourceType.CLUSTER, {}, CLUSTER_NAME),
        ("orders", LITERAL, TOPIC, {"host": ""}, "host"),
        ("orders", LITERAL, TOPIC, {"principal": "ada"}, "TYPE:NAME"),
    ],
)
def test_what_makes_no_sense(
    name: str, pattern: PatternType, kind: ResourceType, fields: dict[str, str], reason: str
) -> None:
    with pytest.raises(InvalidAcl, match=reason):
        acl(name, pattern, kind, **fields)


@pytest.mark.parametrize("text", ["", "ada", ":ada", "User:"])
def test_principals_that_are_none(text: str) -> None:
    with pytest.raises(InvalidAcl):
        check_principal(text)


def names(pattern: PatternType, name: str | None) -> set[tuple[str, str]]:
    """What a filter means among ACLs of some names."""
    everything = [acl(one, kind) for kind in (LITERAL, PREFIXED) for one in ("*", "o", "orders", "orders2")]
    wanted = AclFilter(pattern=pattern, name=name)
    return {(one.resource.pattern.name, one.resource.name) for one in everything if wanted.matches(one)}


def test_names_in_filters() -> None:
    """As the table of KIP-290 has it."""
    assert names(LITERAL, "orders") == {("LITERAL", "orders")}
    assert names(PREFIXED, "orders") == {("PREFIXED", "orders")}
    assert names(PatternType.ANY, "orders") == {("LITERAL", "orders"), ("PREFIXED", "orders")}
    assert names(PatternType.MATCH, "orders") == {
        ("LITERAL", "orders"),
        ("LITERAL", "*"),
        ("PREFIXED", "orders"),
        ("PREFIXED", "o"),
    }
    assert names(PatternType.ANY, "*") == {("LITERAL", "*"), ("PREFIXED", "*")}
    assert {pattern for pattern, _ in names(LITERAL, None)} == {"LITERAL"}
    for pattern in (PatternType.ANY, PatternType.MATCH):
        assert len(names(pattern, None)) == 8


def test_the_rest_of_filters() -> None:
    one = acl(host="10.0.0.1")
    assert AclFilter().matches(one)
    assert AclFilter(
        resource_type=TOPIC,
        principal="User:ada",
        host="10.0.0.1",
        operation=Operation.READ,
        permission=Permission.ALLOW,
    ).matches(one)
    for other in (
        AclFilter(resource_type=ResourceType.GROUP),
        AclFilter(principal="User:*"),
        AclFilter(host="*"),
        AclFilter(operation=Operation.ALL),
        AclFilter(permission=Permission.DENY),
    ):
        assert not other.matches(one)
