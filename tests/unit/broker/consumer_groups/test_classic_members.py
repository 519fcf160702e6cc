"""Members of the classic protocol in a consumer group, which the server leads."""

import pytest

from millstream.broker.any_group import GroupState, Joined
from millstream.broker.errors import (
    FencedInstance,
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from tests.unit.broker.consumer_groups.crowd import GROUP, Crowd, Fellow
from tests.unit.broker.consumer_groups.embedded import classic_joining

HALF = 3


class Old:
    """A member of the classic protocol that keeps what it may while it joins again."""

    def __init__(self, crowd: Crowd, instance_id: str | None = None) -> None:
        self.crowd = crowd
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: set[str] = set()

    def join(self) -> Joined:
        """Join with what it has, and take what it is given."""
        request = classic_joining(self.member_id, self.instance_id, owned=" ".join(self.owned))
        joined = self.crowd.wait(self.crowd.broker.groups.join(GROUP, request))
        self.member_id, self.generation = joined.member_id, joined.generation
        self.owned = set(self.sync().decode().split())
        return joined

    def sync(self) -> bytes:
        """Ask for what it has."""
        group = self.crowd.broker.groups.member_group(GROUP)
        return group.sync(self.member_id, self.instance_id, self.generation, "consumer", None, {}).result().content

    def heartbeat(self) -> None:
        """Say that it lives."""
        group = self.crowd.broker.groups.member_group(GROUP)
        group.heartbeat(self.member_id, self.instance_id, self.generation)

    def follow(self) -> None:
        """Send a heartbeat, and join again if it is told to."""
        try:
            self.heartbeat()
        except RebalanceInProgress:
            self.join()


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


def together(crowd: Crowd, *members: Old | Fellow) -> None:
    """Let members act until nothing changes any more."""
    for _ in range(5):
        for member in members:
            if isinstance(member, Old):
                member.follow()
            else:
                member.beat()


def test_it_is_led_by_the_server(crowd: Crowd) -> None:
    (new,) = crowd.joined("new")
    old = Old(crowd)
    joined = old.join()
    assert (joined.generation, joined.protocol_type, joined.protocol_name) == (2, "consumer", "cooperative")
    assert (joined.leader_id, joined.members) == ("", ())
    assert old.owned == set(), "the other one has everything still"
    together(crowd, new, old)
    assert len(old.owned) == len(new.owned) == HALF
    assert crowd.group.state is GroupState.STABLE
    assert not {f"orders:{index}" for index in new.indexes} & old.owned


def test_it_gives_up_what_others_are_to_have(crowd: Crowd) -> None:
    (new,) = crowd.joined("new")
    old = Old(crowd)
    old.join()
    together(crowd, new, old)
    third = Fellow(crowd, "third")
    third.join()
    with pytest.raises(RebalanceInProgress):
        old.heartbeat()
    with pytest.raises(RebalanceInProgress):
        old.sync()
    together(crowd, old, new, third)
    assert len(old.owned) == len(new.owned) == len(third.owned) == 2


def test_it_leaves_and_dies_like_others(crowd: Crowd) -> None:
    (new,) = crowd.joined("new")
    leaves, dies = Old(crowd), Old(crowd)
    for old in (leaves, dies):
        old.join()
    together(crowd, new, leaves, dies)
    crowd.group.leave(leaves.member_id, None)
    crowd.pass_ms(10_001)
    assert list(crowd.group.members) == ["new"]
    new.beat()
    assert len(new.owned) == 2 * HALF


def test_who_is_sent_back_and_does_not_join_is_removed(crowd: Crowd) -> None:
    (new,) = crowd.joined("new")
    old = Old(crowd)
    old.join()
    together(crowd, new, old)
    Fellow(crowd, "third").join()
    for _ in range(5):
        with pytest.raises(RebalanceInProgress):
            old.heartbeat()
        crowd.pass_ms(7000)
        new.beat()
    with pytest.raises(UnknownMember):
        old.heartbeat()


def test_it_may_be_static(crowd: Crowd) -> None:
    (new,) = crowd.joined("new")
    old = Old(crowd, "static")
    old.join()
    together(crowd, new, old)
    share, epoch = old.owned, crowd.group.roster.epoch
    again = Old(crowd, "static")
    again.join()
    assert (again.owned, crowd.group.roster.epoch) == (share, epoch)
    with pytest.raises(FencedInstance):
        old.heartbeat()
    with pytest.raises(FencedInstance):
        old.join()


def test_a_static_member_may_change_its_protocol(crowd: Crowd) -> None:
    (other,) = crowd.joined("other")
    old = Old(crowd, "static")
    old.join()
    together(crowd, other, old)
    new = Fellow(crowd, "new", "static", pattern="ers")
    new.join()
    assert crowd.group.members["new"].matched == {"orders"}
    together(crowd, other, new)
    assert len(new.owned) == HALF
    again = Old(crowd, "static")
    again.join()
    assert again.owned == {f"orders:{index}" for index in new.indexes}
    assert crowd.group.members[again.member_id].pattern.text == "", "only the others have patterns"
    with pytest.raises(UnknownMember):
        new.beat()


def test_it_is_given_an_id_first(crowd: Crowd) -> None:
    crowd.joined("new")
    with pytest.raises(MemberIdRequired) as given:
        crowd.group.join(classic_joining(id_required=True))
    joined = crowd.wait(crowd.group.join(classic_joining(given.value.member_id)))
    assert joined.member_id == given.value.member_id


def test_who_cannot_be_led_is_refused(crowd: Crowd) -> None:
    crowd.joined("new")
    for request in (
        classic_joining(protocol_type="connect"),
        classic_joining(protocols=()),
        classic_joining(said=b"?"),
    ):
        with pytest.raises(InconsistentProtocol):
            crowd.group.join(request)
    crowd.group.join(classic_joining(protocols=("range", "cooperative")))
    with pytest.raises(InconsistentProtocol):
        crowd.group.join(classic_joining(protocols=("sticky",)))
    crowd.wait(crowd.group.join(classic_joining(protocols=("sticky", "range"))))
    with pytest.raises(UnknownMember):
        crowd.group.join(classic_joining("somebody", "static", protocols=("range",)))
    crowd.broker.groups.environment.embedded = None
    with pytest.raises(InconsistentProtocol):
        crowd.group.join(classic_joining())


def test_there_is_room_for_so_many() -> None:
    crowd = Crowd(group__consumer__max__size="1")
    crowd.joined("new")
    with pytest.raises(GroupFull):
        crowd.group.join(classic_joining())


def test_generations_and_protocols_are_checked(crowd: Crowd) -> None:
    (new,) = crowd.joined("new")
    old = Old(crowd)
    old.join()
    together(crowd, new, old)
    group = crowd.group
    with pytest.raises(UnknownMember):
        group.heartbeat("new", None, new.epoch)
    with pytest.raises(IllegalGeneration):
        group.heartbeat(old.member_id, None, old.generation + 1)
    with pytest.raises(IllegalGeneration):
        group.sync(old.member_id, None, old.generation - 1, None, None, {})
    with pytest.raises(InconsistentProtocol):
        group.sync(old.member_id, None, old.generation, "connect", None, {})
    with pytest.raises(InconsistentProtocol):
        group.sync(old.member_id, None, old.generation, "consumer", "sticky", {})
    group.check_commit(old.member_id, None, old.generation)
    with pytest.raises(IllegalGeneration):
        group.check_commit(old.member_id, None, old.generation + 1)
