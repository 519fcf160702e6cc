"""Who may do what: the rules one by one, and the quick way against one that looks at all ACLs."""

import logging
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.broker.acl import Acl, Operation, PatternType, Permission, Resource, ResourceType
from millstream.broker.acls import Acls
from millstream.broker.authorizer import (
    ANONYMOUS,
    Authorizer,
    ClusterNotAuthorized,
    GroupNotAuthorized,
    NotAuthorized,
    TopicNotAuthorized,
    TransactionalIdNotAuthorized,
)
from tests.unit.broker.simulated_broker import SimulatedBroker

TOPIC = ResourceType.TOPIC
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ADA, BOB, ROOT, HOST = "User:ada", "User:bob", "User:root", "10.0.0.1"


class Decider(SimulatedBroker):
    """An authorizer over ACLs that last nowhere."""

    def __init__(self, acls: Sequence[Acl] = (), *, allow_if_none: bool = False) -> None:
        super().__init__()
        self.acls = Acls(self.broker.documents)
        self.wait(self.acls.create(acls))
        self.authorizer = Authorizer(self.acls, frozenset({ROOT}), allow_if_none=allow_if_none)

    def may(self, principal: str, operation: Operation, name: str = "orders", host: str = HOST) -> bool:
        return self.authorizer.may(principal, host, operation, TOPIC, name)


def allow(operation: Operation, name: str = "orders", principal: str = ADA, host: str = "*") -> Acl:
    return Acl(Resource(TOPIC, PatternType.LITERAL, name), principal, host, operation, Permission.ALLOW)


def deny(operation: Operation, name: str = "orders", principal: str = ADA, host: str = "*") -> Acl:
    return Acl(Resource(TOPIC, PatternType.LITERAL, name), principal, host, operation, Permission.DENY)


def prefixed(acl: Acl) -> Acl:
    resource = acl.resource._replace(pattern=PatternType.PREFIXED)
    return Acl(resource, acl.principal, acl.host, acl.operation, acl.permission)


def test_nobody_may_do_anything_without_acls() -> None:
    decider = Decider()
    assert not decider.may(ADA, READ)
    assert decider.may(ROOT, READ)


def test_where_no_acl_speaks_of_a_resource_everybody_may_if_so_set() -> None:
    decider = Decider([allow(READ)], allow_if_none=True)
    assert decider.may(BOB, READ, "other")
    assert not decider.may(BOB, READ)
    assert not decider.may(ADA, WRITE)


def test_an_operator_who_has_shut_everybody_out_is_told(caplog: pytest.LogCaptureFixture) -> None:
    acls = Decider().acls
    for super_users, allow_if_none in ((frozenset({ROOT}), False), (frozenset[str](), True)):
        Authorizer(acls, super_users, allow_if_none=allow_if_none)
    assert not caplog.text
    Authorizer(acls, frozenset())
    assert "see the setting super.users" in caplog.text


def test_only_what_is_allowed() -> None:
    decider = Decider([allow(READ)])
    assert decider.may(ADA, READ)
    assert not decider.may(ADA, WRITE)
    assert not decider.may(BOB, READ)
    assert not decider.may(ADA, READ, "orders2")
    assert not decider.authorizer.may(ADA, HOST, READ, ResourceType.GROUP, "orders")


def test_everybody_every_name_every_operation() -> None:
    assert Decider([allow(READ, principal="User:*")]).may(ANONYMOUS, READ)
    assert Decider([allow(READ, name="*")]).may(ADA, READ, "anything")
    assert Decider([allow(Operation.ALL)]).may(ADA, Operation.ALTER_CONFIGS)
    assert Decider([prefixed(allow(READ, name="ord"))]).may(ADA, READ)
    assert not Decider([prefixed(allow(READ, name="orders2"))]).may(ADA, READ)


def test_to_deny_goes_before_all_that_allow() -> None:
    for acls in ([allow(READ), deny(READ)], [deny(Operation.ALL, name="*"), allow(READ)]):
        assert not Decider(acls).may(ADA, READ)
    decider = Decider([allow(READ, principal="User:*"), deny(READ, principal=BOB)])
    assert decider.may(ADA, READ)
    assert not decider.may(BOB, READ)
    assert Decider([deny(Operation.ALL, principal=ROOT)]).may(ROOT, READ)


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_what_implies_to_describe(operation: Operation) -> None:
    assert Decider([allow(operation)]).may(ADA, DESCRIBE)
    assert Decider([allow(DESCRIBE), deny(operation)]).may(ADA, DESCRIBE)
    assert not Decider([allow(DESCRIBE)]).may(ADA, operation)
    assert not Decider([allow(operation)]).may(ADA, Operation.DESCRIBE_CONFIGS)


def test_what_implies_to_describe_settings() -> None:
    assert Decider([allow(Operation.ALTER_CONFIGS)]).may(ADA, Operation.DESCRIBE_CONFIGS)
    assert not Decider([allow(Operation.ALTER_CONFIGS)]).may(ADA, DESCRIBE)
    assert not Decider([allow(Operation.CREATE)]).may(ADA, DESCRIBE)


@pytest.mark.parametrize(
    ("host", "address", "same"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("example.org", "10.0.0.1", False),
    ],
)
def test_hosts(host: str, address: str, same: bool) -> None:
    assert Decider([allow(READ, host=host)]).may(ADA, READ, host=address) is same


def test_a_change_counts_from_then_on() -> None:
    decider = Decider()
    for _ in range(2):
        assert not decider.may(ADA, READ)
        decider.wait(decider.acls.create([allow(READ)]))
        assert decider.may(ADA, READ)
        decider.wait(decider.acls.delete([allow(READ)]))


def test_names_of_any_length() -> None:
    decider = Decider([prefixed(allow(READ, name="x"))])
    assert decider.may(ADA, READ, "x" * 30_000)
    assert not decider.may(BOB, READ, "x" * 30_000)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (TOPIC, TopicNotAuthorized),
        (ResourceType.GROUP, GroupNotAuthorized),
        (ResourceType.CLUSTER, ClusterNotAuthorized),
        (ResourceType.TRANSACTIONAL_ID, TransactionalIdNotAuthorized),
        (ResourceType.USER, NotAuthorized),
    ],
)
def test_a_refusal_says_what_it_is_of_and_the_log_has_it_once(
    kind: ResourceType, error: type[NotAuthorized], caplog: pytest.LogCaptureFixture
) -> None:
    decider = Decider()
    decider.authorizer.check(ROOT, HOST, READ, kind, "orders")
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            with pytest.raises(error, match=f"User:ada has no permission to READ this {kind.name}"):
                decider.authorizer.check(ADA, HOST, READ, kind, "orders")
    [line] = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert line == f"refused principal=User:ada host=10.0.0.1 operation=READ resource={kind.name}:'orders'"


def somewhere(*acls: Acl, principal: str = ADA, allow_if_none: bool = False) -> bool:
    return Decider(acls, allow_if_none=allow_if_none).authorizer.may_somewhere(principal, HOST, WRITE, TOPIC)


def test_somewhere() -> None:
    assert not somewhere()
    assert somewhere(principal=ROOT)
    assert somewhere(allow_if_none=True)
    assert somewhere(allow(WRITE))
    assert somewhere(allow(Operation.ALL, name="*"))
    assert somewhere(prefixed(allow(WRITE)))
    assert not somewhere(allow(READ))
    assert not somewhere(allow(WRITE, principal=BOB))
    assert not somewhere(allow(WRITE, host="10.0.0.2"))
    assert not somewhere(allow(WRITE), deny(WRITE, name="*"))
    assert not somewhere(allow(WRITE), deny(WRITE))
    assert not somewhere(allow(WRITE), prefixed(deny(WRITE, name="ord")))
    assert not somewhere(prefixed(allow(WRITE)), prefixed(deny(Operation.ALL)))
    assert somewhere(prefixed(allow(WRITE)), deny(WRITE))
    assert somewhere(prefixed(allow(WRITE)), prefixed(deny(WRITE, name="orders2")))
    assert somewhere(allow(WRITE), allow(WRITE, name="other"), deny(WRITE))


# Against all ACLs, one after the other

NAMES = ("*", "a", "ab", "abc", "b")
SOME_NAMES = (*NAMES[1:], *(f"{name}~" for name in NAMES), "~")
"""Each of the names, one that begins with it, and one that no ACL speaks of."""
IMPLIES = {
    Operation.DESCRIBE: {READ, WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}
KINDS = (TOPIC, ResourceType.GROUP)
some_acls = st.lists(
    st.builds(
        Acl,
        st.builds(
            Resource,
            st.sampled_from(KINDS),
            st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
            st.sampled_from(NAMES),
        ),
        st.sampled_from((ADA, BOB, "User:*", ROOT)),
        st.sampled_from(("*", HOST, "10.0.0.2")),
        st.sampled_from(Operation),
        st.sampled_from(Permission),
    ),
    max_size=12,
)
askings = st.tuples(
    st.sampled_from((ADA, BOB, ROOT)),
    st.sampled_from((HOST, "10.0.0.2")),
    st.sampled_from([operation for operation in Operation if operation is not Operation.ALL]),
    st.sampled_from(KINDS),
    st.sampled_from(NAMES[1:]),
)


def naive(acls: Iterable[Acl], asking: tuple[str, str, Operation, ResourceType, str], *, allow_if_none: bool) -> bool:
    principal, host, operation, kind, name = asking
    if principal == ROOT:
        return True
    speaking, allowed, denied = False, False, False
    for acl in acls:
        literal = acl.resource.pattern is PatternType.LITERAL
        names = {name, "*"} if literal else {name[:length] for length in range(1, len(name) + 1)}
        if acl.resource.type is not kind or acl.resource.name not in names:
            continue
        speaking = True
        if acl.principal not in {principal, "User:*"} or acl.host not in {host, "*"}:
            continue
        direct = acl.operation in {operation, Operation.ALL}
        if acl.permission is Permission.DENY:
            denied = denied or direct
        else:
            allowed = allowed or direct or acl.operation in IMPLIES.get(operation, set())
    return not denied and (allowed if speaking else allow_if_none)


@settings(max_examples=150, deadline=None)
@given(some_acls, some_acls, st.lists(askings, min_size=1, max_size=20), st.booleans())
def test_the_quick_way_decides_as_the_slow_one(
    acls: list[Acl],
    later: list[Acl],
    asked: list[tuple[str, str, Operation, ResourceType, str]],
    allow_if_none: bool,
) -> None:
    decider = Decider(acls, allow_if_none=allow_if_none)
    present = set(acls)
    for step in range(3):
        for one in asked:
            assert decider.authorizer.may(*one) == naive(present, one, allow_if_none=allow_if_none)
            principal, host, _, kind, _ = one
            anywhere = (
                naive(present, (principal, host, WRITE, kind, name), allow_if_none=allow_if_none)
                for name in SOME_NAMES
            )
            assert decider.authorizer.may_somewhere(principal, host, WRITE, kind) == any(anywhere)
        if step == 0:
            decider.wait(decider.acls.create(later))
            present |= set(later)
        else:
            decider.wait(decider.acls.delete(acls))
            present -= set(acls)
