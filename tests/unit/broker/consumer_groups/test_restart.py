"""Members of a consumer group through restarts of the server: they go on as if nothing had been."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from millstream.broker.any_group import GroupKind, GroupState
from millstream.broker.consumer_groups import Heartbeat, TopicPattern
from millstream.broker.consumer_groups.memory import MEMBER_DOCUMENT
from millstream.broker.documents import Document
from millstream.broker.errors import (
    FencedEpoch,
    GroupNotFound,
    GroupsClosed,
    RebalanceInProgress,
    StaleEpoch,
    UnknownMember,
)
from millstream.model.pending import Pending
from millstream.storage.metadata import Change
from tests.unit.broker.consumer_groups.crowd import GROUP, REBALANCE_MS, SESSION_MS, Crowd, Fellow
from tests.unit.broker.consumer_groups.embedded import classic_joining
from tests.unit.broker.consumer_groups.test_classic_members import Old, together

ALL = [0, 1, 2, 3, 4, 5]


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    return Crowd(str(tmp_path / "metadata"))


def standings(crowd: Crowd) -> dict[str, tuple[int, list[int]]]:
    """The epoch and the partitions of each member."""
    members = crowd.group.members.values()
    return {member.id: (member.epoch, sorted(index for _, index in member.assigned)) for member in members}


def noting(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Change]]:
    """What is written from now on."""
    written: list[Sequence[Change]] = []
    submit = crowd.store.submit

    def noted(changes: Sequence[Change]) -> Pending[None]:
        written.append(changes)
        return submit(changes)

    monkeypatch.setattr(crowd.store, "submit", noted)
    return written


def test_nothing_changes_for_members(crowd: Crowd) -> None:
    fellows = crowd.joined("first", "second")
    before, epoch = standings(crowd), crowd.group.roster.epoch
    crowd.restart()
    assert standings(crowd) == before
    for fellow in fellows:
        crowd.broker.groups.commit(GROUP, fellow.member_id, None, fellow.epoch, {})
        with pytest.raises(StaleEpoch):
            crowd.broker.groups.commit(GROUP, fellow.member_id, None, fellow.epoch - 1, {})
    for fellow in fellows:
        assert fellow.beat().assignment is None
    assert standings(crowd) == before
    assert (crowd.group.roster.epoch, crowd.state()) == (epoch, GroupState.STABLE)


def test_a_server_that_stops_makes_no_members_and_forgets_none(crowd: Crowd) -> None:
    fellows = crowd.joined("first", "second")
    before = standings(crowd)
    closing = crowd.broker.close()
    for fellow in fellows:
        with pytest.raises(GroupsClosed):
            fellow.beat()
        with pytest.raises(GroupsClosed):
            fellow.join()
        with pytest.raises(GroupsClosed):
            crowd.broker.groups.check_fetch(GROUP, fellow.member_id, fellow.epoch)
    with pytest.raises(GroupsClosed):
        crowd.broker.groups.join(GROUP, classic_joining())
    crowd.wait(closing)
    crowd.start()
    assert standings(crowd) == before


def test_all_that_members_said_lasts(crowd: Crowd) -> None:
    crowd.create("numbers", 2)
    patterned = Fellow(crowd, "patterned", topics=["orders"], pattern="bers")
    patterned.join("range")
    static = Fellow(crowd, "static", "i")
    static.join("range")
    crowd.settle(patterned, static)
    static.leave(for_a_while=True)
    before = standings(crowd)
    crowd.restart()
    assert standings(crowd) == before
    member = crowd.group.members["patterned"]
    assert (member.topics, member.pattern.text) == (frozenset({"orders"}), "bers")
    assert member.rebalance_timeout_ms == REBALANCE_MS
    assert crowd.group.roster.assignor == "range"
    assert patterned.beat().assignment is None
    assert member.matched == {"numbers"}
    again = Fellow(crowd, "again", "i")
    again.join()
    assert again.indexes == static.indexes
    assert patterned.beat().assignment is None
    crowd.create("more numbers", 1)
    crowd.settle(patterned, again)
    assert len(patterned.owned) == 6
    assert crowd.state() is GroupState.STABLE


def test_the_rights_of_who_said_a_pattern_last_last(crowd: Crowd) -> None:
    fellow = Fellow(crowd, "m", topics=(), pattern="ers")
    fellow.join()
    again = TopicPattern("ers", "User:ada", "10.0.0.1")
    fellow.say(Heartbeat(member_id="m", epoch=fellow.epoch, pattern=again))
    crowd.restart()
    assert crowd.group.members["m"].pattern == again


def test_members_go_on_with_giving_up_and_waiting(crowd: Crowd) -> None:
    (first,) = crowd.joined("first")
    second = Fellow(crowd, "second")
    second.join()
    first.beat()
    crowd.restart()
    second.beat()
    assert second.indexes == [], "the other one may have them still"
    crowd.settle(first, second)
    assert len(first.owned) == len(second.owned) == 3
    assert crowd.state() is GroupState.STABLE


def test_who_does_not_give_up_partitions_or_does_not_come_back_is_removed(crowd: Crowd) -> None:
    first, gone = crowd.joined("first", "gone")
    second = Fellow(crowd, "second")
    second.join()
    first.beat()
    crowd.restart()
    for _ in range(4):
        crowd.pass_ms(REBALANCE_MS / 4 + 1)
        second.beat()
    assert set(crowd.group.members) == {"gone", "second"}
    crowd.pass_ms(SESSION_MS - REBALANCE_MS)
    second.beat()
    assert second.indexes == ALL
    for fellow in (first, gone):
        with pytest.raises(UnknownMember):
            fellow.beat()


def test_a_static_member_that_left_while_it_gave_up_partitions_has_its_session_to_come_back(crowd: Crowd) -> None:
    static, other = Fellow(crowd, "static", "i"), Fellow(crowd, "other")
    static.join()
    other.join()
    static.beat()
    static.leave(for_a_while=True)
    crowd.restart()
    crowd.pass_ms(REBALANCE_MS + 1)
    other.beat()
    assert set(crowd.group.members) == {"static", "other"}
    crowd.pass_ms(SESSION_MS - REBALANCE_MS)
    other.beat()
    assert set(crowd.group.members) == {"other"}


def test_what_a_member_left_before_is_shared_out(crowd: Crowd) -> None:
    first, second = crowd.joined("first", "second")
    second.leave()
    crowd.restart()
    assert list(crowd.group.members) == ["first"]
    first.beat()
    assert (first.indexes, first.epoch) == (ALL, 3)


def test_nobody_is_told_what_does_not_last(crowd: Crowd) -> None:
    (first,) = crowd.joined("first")
    joining = Heartbeat(
        member_id="second", epoch=0, rebalance_timeout_ms=1, topics=frozenset({"orders"}), owned=frozenset()
    )
    assert not crowd.broker.groups.beat(GROUP, joining).done
    assert not crowd.broker.groups.join(GROUP, classic_joining()).done
    crowd.kill()
    crowd.start()
    assert list(crowd.group.members) == ["first"]
    assert first.beat().assignment is None


def test_a_lost_answer_may_be_asked_for_again(crowd: Crowd) -> None:
    first, second = crowd.joined("first", "second")
    second.leave()
    owned, epoch = first.owned, first.epoch
    first.beat()
    crowd.restart()
    first.owned, first.epoch = owned, epoch
    assert first.beat().epoch == epoch + 1
    first.epoch = 1
    with pytest.raises(FencedEpoch):
        first.beat()


def test_heartbeats_that_change_nothing_are_not_written(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    fellows = crowd.joined("first", "second")
    written = noting(crowd, monkeypatch)
    crowd.settle(*fellows)
    assert written == []
    fellows[0].subscribe("orders", "payments")
    assert [len(changes) for changes in written] == [1]
    third = Fellow(crowd, "third")
    third.join()
    third.beat()
    written.clear()
    for _ in range(3):
        third.beat()
        third.keep_quiet_about_partitions()
    assert third.indexes == []
    assert written == [], "who waits for others says nothing new either"


def test_members_work_while_they_cannot_be_kept(crowd: Crowd) -> None:
    (first,) = crowd.joined("first")
    crowd.store.failing = True
    second = Fellow(crowd, "second")
    second.join()
    first.beat()
    first.beat()
    crowd.store.failing = False
    second.beat()
    assert len(first.owned) == len(second.owned) == 3
    crowd.restart()
    had = [index for _, indexes in standings(crowd).values() for index in indexes]
    assert sorted(had) == ALL, "a partition that two were written down for is one's"


def test_what_could_not_be_kept_is_logged_and_kept_later(crowd: Crowd, caplog: pytest.LogCaptureFixture) -> None:
    first, second, third = crowd.joined("first", "second", "third")
    crowd.store.failing = True
    third.leave()
    crowd.settle(first, second)
    before = standings(crowd)
    assert "members not stored group=" in caplog.text
    crowd.store.failing = False
    second.beat()
    assert len(crowd.broker.documents.of_kind(MEMBER_DOCUMENT)) == 2
    crowd.restart()
    assert standings(crowd) == before


def lasting(crowd: Crowd) -> dict[str, Document]:
    return dict(crowd.broker.documents.of_kind(MEMBER_DOCUMENT))


def put_back(crowd: Crowd, documents: dict[str, Document]) -> None:
    """Let some documents last, as if what came after them could not be kept."""
    crowd.wait(crowd.broker.documents.change([(MEMBER_DOCUMENT, key, value) for key, value in documents.items()]))


def test_of_two_who_last_with_a_partition_the_one_who_got_it_later_has_it(crowd: Crowd) -> None:
    (first,) = crowd.joined("first")
    former = lasting(crowd)
    second = Fellow(crowd, "second")
    second.join()
    crowd.settle(first, second)
    put_back(crowd, former)
    put_back(crowd, {key: value for key, value in lasting(crowd).items() if key not in former})
    crowd.restart()
    assert standings(crowd)["second"] == (second.epoch, second.indexes)
    with pytest.raises(FencedEpoch):
        first.beat()
    third = Fellow(crowd, "third")
    third.join()
    crowd.settle(second, third)
    assert not second.owned & third.owned


@pytest.mark.parametrize("rebalanced", [False, True])
def test_of_two_who_last_as_one_static_member_the_later_one_is_there(crowd: Crowd, rebalanced: bool) -> None:
    former_self, other = Fellow(crowd, "former", "i"), Fellow(crowd, "other")
    former_self.join()
    other.join()
    crowd.settle(former_self, other)
    former_self.leave(for_a_while=True)
    former = lasting(crowd)
    static = Fellow(crowd, "static", "i")
    static.join()
    if rebalanced:
        static.subscribe("orders", "payments")
    crowd.settle(static, other)
    gone = {key: value for key, value in former.items() if value["id"] == "former"}
    put_back(crowd, gone)
    crowd.restart()
    assert set(crowd.group.members) == {"static", "other"}
    for _ in range(4):
        crowd.pass_ms(SESSION_MS / 2 - 1)
        other.beat()
    assert other.indexes == ALL, "the static member has not come back"
    assert [document["id"] for document in lasting(crowd).values()] == ["other"]


def test_members_of_the_classic_protocol_go_on_too(crowd: Crowd) -> None:
    (new,) = crowd.joined("new")
    old = Old(crowd, "i")
    old.join()
    together(crowd, new, old)
    before = standings(crowd)
    crowd.restart()
    old.heartbeat()
    assert new.beat().assignment is None
    old.heartbeat()
    assert standings(crowd) == before
    third = Fellow(crowd, "third")
    third.join()
    with pytest.raises(RebalanceInProgress):
        old.heartbeat()
    together(crowd, new, old, third)
    assert {len(new.owned), len(old.owned), len(third.owned)} == {2}


def test_members_of_the_classic_protocol_are_told_what_others_left_before(tmp_path: Path) -> None:
    crowd = Crowd(str(tmp_path / "metadata"), group__consumer__migration__policy="upgrade")
    (new,) = crowd.joined("new")
    old, other = Old(crowd), Old(crowd)
    old.join()
    other.join()
    together(crowd, new, old, other)
    new.leave()
    crowd.group.leave(other.member_id, None)
    crowd.restart()
    with pytest.raises(RebalanceInProgress):
        old.heartbeat()
    together(crowd, old)
    assert len(old.owned) == 6
    assert crowd.state() is GroupState.STABLE


def test_of_a_group_that_has_become_a_classic_one_nothing_lasts(crowd: Crowd) -> None:
    (new,) = crowd.joined("new")
    Old(crowd).join()
    assert len(crowd.broker.documents.of_kind(MEMBER_DOCUMENT)) == 2
    new.leave()
    crowd.runtime.run()
    assert crowd.broker.groups.member_group(GROUP).kind is GroupKind.CLASSIC
    assert not crowd.broker.documents.of_kind(MEMBER_DOCUMENT)
    crowd.restart()
    assert crowd.broker.groups.ids() == []


def test_a_group_that_has_become_a_consumer_group_lasts_with_all_its_members(crowd: Crowd) -> None:
    joined = crowd.broker.groups.join(GROUP, classic_joining()).result()
    new = Fellow(crowd, "new")
    new.join()
    crowd.restart()
    assert set(crowd.group.members) == {joined.member_id, "new"}


def test_a_group_whose_members_have_all_left_is_none_any_more(crowd: Crowd) -> None:
    for fellow in crowd.joined("first", "second"):
        fellow.leave()
    crowd.restart()
    with pytest.raises(GroupNotFound):
        crowd.broker.groups.consumer_group(GROUP)
    assert Fellow(crowd, "first").join().epoch == 1


def test_names_of_groups_and_members_are_not_mixed_up(crowd: Crowd) -> None:
    for group_id, member_id in (("a/b", "c"), ("a", "b/c"), ("odd", "\0" + "x" * 30_000)):
        heartbeat = Heartbeat(member_id=member_id, epoch=0, rebalance_timeout_ms=1, topics=frozenset({"orders"}))
        crowd.wait(crowd.broker.groups.beat(group_id, heartbeat))
    assert max(len(key) for key in crowd.broker.documents.of_kind(MEMBER_DOCUMENT)) < 100
    crowd.restart()
    assert crowd.broker.groups.consumer_group("odd").members
    assert list(crowd.broker.groups.consumer_group("a/b").members) == ["c"]
    assert list(crowd.broker.groups.consumer_group("a").members) == ["b/c"]
