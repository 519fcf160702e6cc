"""ACLs last, and are found by what they apply to."""

from pathlib import Path

import pytest

from millstream.broker.acl import Acl, AclFilter, Operation, PatternType, Permission, Resource, ResourceType
from millstream.broker.acls import Acls
from millstream.storage.metadata import MetadataFailed
from tests.unit.broker.simulated_broker import SimulatedBroker


def acl(name: str, pattern: PatternType = PatternType.LITERAL, principal: str = "User:ada") -> Acl:
    return Acl(Resource(ResourceType.TOPIC, pattern, name), principal, "*", Operation.READ, Permission.ALLOW)


ACLS = [acl("*"), acl("orders"), acl("orders", principal="User:bob"), acl("or", PatternType.PREFIXED)]


class Kept(SimulatedBroker):
    """A broker with ACLs."""

    def start(self) -> None:
        super().start()
        self.acls = Acls(self.broker.documents)


def applying(acls: Acls, name: str) -> set[Acl]:
    return set(acls.applying_to(ResourceType.TOPIC, name))


def test_which_apply() -> None:
    kept = Kept()
    kept.wait(kept.acls.create(ACLS))
    assert applying(kept.acls, "orders") == set(ACLS)
    assert applying(kept.acls, "orders2") == {ACLS[0], ACLS[3]}
    assert applying(kept.acls, "or") == {ACLS[0], ACLS[3]}
    assert applying(kept.acls, "o") == {ACLS[0]}
    assert applying(kept.acls, "*") == {ACLS[0]}
    assert not set(kept.acls.applying_to(ResourceType.GROUP, "orders"))
    assert set(kept.acls.of_type(ResourceType.TOPIC)) == set(ACLS)
    assert not set(kept.acls.of_type(ResourceType.GROUP))
    assert kept.acls.matching(AclFilter(principal="User:bob")) == [ACLS[2]]
    kept.wait(kept.acls.delete([ACLS[3], ACLS[1], acl("other")]))
    assert applying(kept.acls, "orders") == {ACLS[0], ACLS[2]}
    kept.wait(kept.acls.delete([ACLS[0], ACLS[2]]))
    assert not applying(kept.acls, "orders")
    assert not list(kept.acls)


def test_what_is_there_already_stays_once() -> None:
    kept = Kept()
    for _ in range(2):
        kept.wait(kept.acls.create(ACLS))
    kept.wait(kept.acls.delete(ACLS))
    assert not list(kept.acls)


def test_they_outlive_the_process(tmp_path: Path) -> None:
    kept = Kept(str(tmp_path / "metadata.db"))
    kept.wait(kept.acls.create(ACLS))
    kept.wait(kept.acls.delete(ACLS[:1]))
    kept.kill()
    kept.start()
    assert set(kept.acls) == set(ACLS[1:])
    assert applying(kept.acls, "orders") == set(ACLS[1:])


def test_what_cannot_be_stored_is_not_there() -> None:
    kept = Kept()
    kept.wait(kept.acls.create(ACLS[:1]))
    changes: list[None] = []
    kept.acls.changed = lambda: changes.append(None)
    kept.store.failing = True
    for change in (kept.acls.create(ACLS), kept.acls.delete(ACLS[:1])):
        with pytest.raises(MetadataFailed):
            kept.wait(change)
    assert list(kept.acls) == ACLS[:1]
    assert not changes


def test_changes_are_seen_once_they_last_in_their_order() -> None:
    kept = Kept()
    made, deleted, again = kept.acls.create(ACLS), kept.acls.delete(ACLS), kept.acls.create(ACLS[:1])
    assert not list(kept.acls)
    for change in (made, deleted, again):
        kept.wait(change)
    assert list(kept.acls) == ACLS[:1]
