"""A consumer group heartbeat by heartbeat: who joins, has what, leaves, is fenced, and when."""

import pytest

from millstream.broker.any_group import GroupKind, GroupState
from millstream.broker.consumer_groups import EMPTY_PATTERN, Heartbeat, TopicPattern
from millstream.broker.errors import (
    FencedEpoch,
    FencedInstance,
    GroupFull,
    GroupNotEmpty,
    GroupNotFound,
    InvalidConfig,
    InvalidGroupId,
    StaleEpoch,
    UnknownMember,
    UnreleasedInstance,
    UnsupportedAssignor,
)
from millstream.broker.settings import BrokerSettings
from millstream.model.topic_name import TopicName
from tests.unit.broker.consumer_groups.crowd import GROUP, REBALANCE_MS, SESSION_MS, Crowd, Fellow

ALL = [0, 1, 2, 3, 4, 5]


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


def test_the_first_member_gets_everything_at_once(crowd: Crowd) -> None:
    fellow = Fellow(crowd, "m")
    reply = fellow.join()
    assert (reply.member_id, reply.epoch, reply.heartbeat_interval_ms) == ("m", 1, 5000)
    assert fellow.indexes == ALL
    group = crowd.group
    assert (group.kind, group.state, group.protocol_type) == (GroupKind.CONSUMER, GroupState.STABLE, "consumer")
    assert crowd.broker.groups.ids() == [GROUP]


def test_partitions_are_told_when_they_change_and_in_full_heartbeats(crowd: Crowd) -> None:
    (fellow,) = crowd.joined("m")
    assert fellow.beat().assignment is None
    full = Heartbeat(member_id="m", epoch=1, rebalance_timeout_ms=1, topics=frozenset({"orders"}), owned=fellow.owned)
    assert fellow.say(full).assignment == fellow.owned


def test_a_second_member_waits_for_what_the_first_gives_up(crowd: Crowd) -> None:
    (first,) = crowd.joined("first")
    second = Fellow(crowd, "second")
    assert second.join().epoch == 2
    assert second.indexes == []
    assert crowd.state() == GroupState.RECONCILING
    before = first.owned
    assert first.beat().epoch == 1, "it is to give up three, and keeps its epoch until it has"
    assert len(first.owned) == 3
    assert first.keep_quiet_about_partitions().epoch == 1
    second.beat()
    assert second.indexes == [], "not as long as the other one may still have them"
    assert first.beat().epoch == 2
    assert crowd.state() == GroupState.RECONCILING
    second.beat()
    assert first.owned | second.owned == before
    assert not first.owned & second.owned
    assert crowd.state() == GroupState.STABLE


def test_who_leaves_leaves_its_partitions_to_the_others(crowd: Crowd) -> None:
    first, second = crowd.joined("first", "second")
    second.leave()
    assert crowd.state() == GroupState.ASSIGNING
    first.beat()
    assert (first.indexes, first.epoch) == (ALL, 3)
    first.leave()
    assert crowd.state() == GroupState.EMPTY
    with pytest.raises(UnknownMember):
        first.leave()
    with pytest.raises(UnknownMember):
        first.beat()
    assert Fellow(crowd, "third").join().epoch == 5, "epochs only grow"


def test_silence_ends_a_session(crowd: Crowd) -> None:
    first, second = crowd.joined("first", "second")
    for _ in range(4):
        crowd.pass_ms(SESSION_MS / 3)
        first.beat()
    assert list(crowd.group.members) == ["first"]
    assert first.indexes == ALL
    with pytest.raises(UnknownMember):
        second.beat()


def test_who_does_not_give_up_partitions_in_time_is_removed(crowd: Crowd) -> None:
    (first,) = crowd.joined("first")
    second = Fellow(crowd, "second")
    second.join()
    first.beat()
    for _ in range(4):
        crowd.pass_ms(REBALANCE_MS / 4 - 1)
        first.keep_quiet_about_partitions()
        second.beat()
    assert len(crowd.group.members) == 2
    crowd.pass_ms(10)
    assert list(crowd.group.members) == ["second"]
    second.beat()
    assert second.indexes == ALL


def test_a_lost_answer_may_be_asked_for_again(crowd: Crowd) -> None:
    first, second = crowd.joined("first", "second")
    second.leave()
    owned, epoch = first.owned, first.epoch
    first.beat()
    first.owned, first.epoch = owned, epoch
    assert first.beat().epoch == 3
    full = Heartbeat(
        member_id="first", epoch=3, rebalance_timeout_ms=1, topics=frozenset({"orders"}), owned=first.owned
    )
    first.say(full)
    assert first.indexes == ALL


@pytest.mark.parametrize("epoch", [2, 5])
def test_an_epoch_that_cannot_be_fences(crowd: Crowd, epoch: int) -> None:
    first, *_ = crowd.joined("first", "second", "third")
    assert first.epoch == 3
    before = first.owned
    first.epoch = epoch
    with pytest.raises(FencedEpoch):
        first.beat()
    first.join()
    assert (first.owned, first.epoch) == (before, 3), "it may join again at once, and finds what it had"


def test_the_epoch_before_is_no_excuse_for_other_partitions(crowd: Crowd) -> None:
    (first,) = crowd.joined("first")
    before = first.owned
    second = Fellow(crowd, "second")
    second.join()
    crowd.settle(first, second)
    first.epoch, first.owned = 1, before
    with pytest.raises(FencedEpoch):
        first.beat()
    with pytest.raises(FencedEpoch):
        first.keep_quiet_about_partitions()


def test_a_static_member_that_leaves_for_a_while_keeps_its_partitions(crowd: Crowd) -> None:
    (other,) = crowd.joined("other")
    static = Fellow(crowd, "one", "static")
    static.join()
    crowd.settle(other, static)
    share, epoch = static.owned, crowd.group.roster.epoch
    static.leave(for_a_while=True)
    other.beat()
    assert len(other.owned) == 3
    with pytest.raises(FencedEpoch):
        static.beat()
    again = Fellow(crowd, "two", "static")
    again.join()
    assert (again.owned, crowd.group.roster.epoch) == (share, epoch), "nobody else was troubled"
    assert set(crowd.group.members) == {"other", "two"}
    with pytest.raises(FencedInstance):
        static.leave()
    with pytest.raises(UnknownMember):
        static.beat()


def test_a_static_member_that_stays_away_loses_its_partitions(crowd: Crowd) -> None:
    (other,) = crowd.joined("other")
    static = Fellow(crowd, "one", "static")
    static.join()
    crowd.settle(other, static)
    static.leave(for_a_while=True)
    for _ in range(4):
        crowd.pass_ms(SESSION_MS / 3)
        other.beat()
    assert other.indexes == ALL


def test_an_instance_id_is_not_given_away(crowd: Crowd) -> None:
    static = Fellow(crowd, "one", "static")
    static.join()
    with pytest.raises(UnreleasedInstance):
        Fellow(crowd, "two", "static").join()
    static.join()
    assert static.indexes == ALL
    Fellow(crowd, "other").join()
    static.leave(for_a_while=True)
    with pytest.raises(FencedInstance):
        Fellow(crowd, "other", "static").join()
    with pytest.raises(UnknownMember):
        crowd.group.depart("x", "nobody", for_a_while=False)


def test_a_member_may_become_static(crowd: Crowd) -> None:
    """Without that, it would be told again and again that nobody is known by its static id."""
    (fellow,) = crowd.joined("m")
    for instance_id in ("one", "two"):
        fellow.instance_id = instance_id
        heartbeat = Heartbeat(member_id="m", epoch=fellow.epoch, instance_id=instance_id, owned=fellow.owned)
        with pytest.raises(UnknownMember):
            fellow.say(heartbeat)
        fellow.join()
        assert fellow.say(heartbeat).assignment is None
    fellow.leave(for_a_while=True)
    again = Fellow(crowd, "n", "two")
    again.join()
    assert again.indexes == ALL
    Fellow(crowd, "o", "one").join()
    assert len(crowd.group.members) == 2


def test_a_group_has_room_for_so_many() -> None:
    crowd = Crowd(group__consumer__max__size="1")
    static = Fellow(crowd, "one", "static")
    static.join()
    with pytest.raises(GroupFull):
        Fellow(crowd, "two").join()
    static.leave(for_a_while=True)
    Fellow(crowd, "three", "static").join()


def test_other_subscriptions_move_partitions(crowd: Crowd) -> None:
    crowd.create("payments", 2)
    first, second = crowd.joined("first", "second")
    second.subscribe("payments")
    crowd.settle(first, second)
    assert first.indexes == ALL
    assert second.owned == {(crowd.topic("payments").id, 0), (crowd.topic("payments").id, 1)}
    epoch = crowd.group.roster.epoch
    second.subscribe("payments")
    assert crowd.group.roster.epoch == epoch, "nothing is new"
    second.subscribe()
    crowd.settle(second)
    assert second.indexes == []


def test_a_topic_that_is_not_there_yet(crowd: Crowd) -> None:
    fellow = Fellow(crowd, "m", topics=["later"])
    fellow.join()
    assert fellow.indexes == []
    crowd.create("later", 2)
    assert crowd.state() == GroupState.ASSIGNING
    fellow.beat()
    assert fellow.indexes == [0, 1]


def test_more_partitions_and_a_topic_that_goes(crowd: Crowd) -> None:
    (fellow,) = crowd.joined("m")
    crowd.wait(crowd.broker.topics.add_partitions(crowd.topic(), 8))
    fellow.beat()
    assert fellow.indexes == [*ALL, 6, 7]
    crowd.create("another", 1)
    assert crowd.state() == GroupState.STABLE, "that is nobody's concern here"
    crowd.wait(crowd.broker.delete_topic(crowd.topic()))
    crowd.settle(fellow)
    assert fellow.indexes == []
    assert crowd.state() == GroupState.STABLE


def test_a_pattern_stands_for_topics_that_come_and_go(crowd: Crowd) -> None:
    fellow = Fellow(crowd, "m", topics=(), pattern="ers")
    fellow.join()
    assert fellow.indexes == ALL
    crowd.create("numbers", 1)
    crowd.create("others no more", 1)
    fellow.beat()
    assert {topic_id for topic_id, _ in fellow.owned} == {crowd.topic("orders").id, crowd.topic("numbers").id}
    assert next(iter(crowd.group.members.values())).subscribed == {"orders", "numbers"}
    fellow.say(Heartbeat(member_id="m", epoch=fellow.epoch, pattern=EMPTY_PATTERN, owned=fellow.owned))
    crowd.settle(fellow)
    assert fellow.owned == frozenset()


def test_a_pattern_leaves_out_what_others_read(crowd: Crowd) -> None:
    crowd.broker.groups.environment.held = lambda name: frozenset({"orders"} if name == GROUP else ())
    fellow = Fellow(crowd, "m", topics=(), pattern="s")
    fellow.join()
    assert fellow.indexes == []


def test_a_pattern_said_again_is_matched_again(crowd: Crowd) -> None:
    held = {"orders"}
    crowd.broker.groups.environment.held = lambda _: frozenset(held)
    fellow = Fellow(crowd, "m", topics=(), pattern="s")
    fellow.join()
    held.clear()
    fellow.beat()
    assert fellow.indexes == []
    again = TopicPattern("s", "User:ada")
    epoch = fellow.say(Heartbeat(member_id="m", epoch=fellow.epoch, pattern=again)).epoch
    assert fellow.indexes == ALL
    assert crowd.group.members["m"].pattern == again, "with the rights of who said it last"
    assert fellow.say(Heartbeat(member_id="m", epoch=fellow.epoch, pattern=again)).epoch == epoch


def test_a_pattern_is_matched_again_when_rights_change(crowd: Crowd) -> None:
    crowd.patterns.hide("orders")
    members = [Fellow(crowd, name, topics=(), pattern="s") for name in ("first", "second")]
    for member in members:
        member.join()
    crowd.settle(*members)
    assert [member.indexes for member in members] == [[], []]
    epoch = crowd.group.roster.epoch
    crowd.patterns.hide()
    crowd.settle(*members)
    assert [len(member.owned) for member in members] == [3, 3]
    assert crowd.group.roster.epoch == epoch + 1, "all at once, so that nothing is shared out twice"
    crowd.patterns.hide("payments")
    crowd.settle(*members)
    assert crowd.group.roster.epoch == epoch + 1, "nothing is new"
    crowd.patterns.hide("orders")
    crowd.settle(*members)
    assert [member.indexes for member in members] == [[], []]


def test_the_assignor_that_most_ask_for(crowd: Crowd) -> None:
    for number, name in enumerate(["range", "range", "uniform"]):
        Fellow(crowd, f"m{number}").join(name)
    assert crowd.group.roster.assignor == "range"
    with pytest.raises(UnsupportedAssignor, match="uniform, range"):
        Fellow(crowd, "n").join("sticky")
    assert Crowd(group__consumer__assignors="range").broker.settings.consumer_groups.assignors == ("range",)


def test_what_members_commit(crowd: Crowd) -> None:
    groups = crowd.broker.groups
    first, _ = crowd.joined("first", "second")
    groups.commit(GROUP, "first", None, 2, {})
    groups.check_transactional_commit(GROUP, "first", None, 2)
    groups.check_transactional_commit(GROUP, "", None, -1)
    groups.check_fetch(GROUP, "first", 2)
    groups.check_fetch(GROUP, None, -1)
    groups.check_fetch("another", "anybody", 7)
    for epoch in (1, 3, -1):
        with pytest.raises(StaleEpoch):
            groups.commit(GROUP, "first", None, epoch, {})
        with pytest.raises(StaleEpoch):
            groups.check_fetch(GROUP, "first", epoch)
        with pytest.raises(StaleEpoch):
            groups.check_transactional_commit(GROUP, "first", None, epoch)
    for act in (
        lambda: groups.commit(GROUP, "", None, -1, {}),
        lambda: groups.commit(GROUP, "x", None, 2, {}),
        lambda: groups.check_fetch(GROUP, "x", 2),
        lambda: groups.check_fetch(GROUP, None, 2),
    ):
        with pytest.raises(UnknownMember):
            act()
    for fellow in list(crowd.group.members):
        groups.depart(GROUP, fellow, None, for_a_while=False)
    groups.commit(GROUP, "", None, -1, {})
    assert first.epoch == 2


def test_a_member_is_removed_by_others(crowd: Crowd) -> None:
    first, second = crowd.joined("first", "second")
    static = Fellow(crowd, "third", "static")
    static.join()
    crowd.group.leave("second", None)
    crowd.group.leave("", "static")
    crowd.settle(first)
    assert first.indexes == ALL
    for fellow in (second, static):
        with pytest.raises(UnknownMember):
            fellow.beat()
        with pytest.raises(UnknownMember):
            crowd.group.leave(fellow.member_id, fellow.instance_id)


def test_a_group_with_members_is_not_deleted(crowd: Crowd) -> None:
    (fellow,) = crowd.joined("m")
    with pytest.raises(GroupNotEmpty):
        crowd.broker.groups.delete(GROUP)
    fellow.leave()
    group = crowd.group
    crowd.wait(crowd.broker.groups.delete(GROUP))
    assert group.state is GroupState.DEAD
    with pytest.raises(GroupNotFound):
        crowd.broker.groups.consumer_group(GROUP)


def test_a_group_that_nobody_needs_is_forgotten(crowd: Crowd) -> None:
    (fellow,) = crowd.joined("m")
    fellow.leave()
    assert crowd.group.idle
    crowd.broker.groups.expire()
    assert crowd.broker.groups.ids() == []


def test_no_timer_and_no_watch_outlives_the_members(crowd: Crowd) -> None:
    before = len(crowd.runtime.timers)
    first, second = crowd.joined("first", "second")
    third = Fellow(crowd, "third")
    third.join()
    first.beat()
    for fellow in (first, second, third):
        fellow.leave()
    assert len(crowd.runtime.timers) == before
    assert not crowd.broker.topics._watchers
    crowd.joined("first", "second")
    crowd.broker.groups.close()
    assert len(crowd.runtime.timers) == before
    assert not crowd.broker.topics._watchers


def test_a_group_has_a_name(crowd: Crowd) -> None:
    heartbeat = Heartbeat(member_id="m", epoch=0)
    with pytest.raises(InvalidGroupId):
        crowd.broker.groups.beat("", heartbeat)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.consumer.session.timeout.ms", "44999"),
        ("group.consumer.session.timeout.ms", "60001"),
        ("group.consumer.heartbeat.interval.ms", "4999"),
        ("group.consumer.heartbeat.interval.ms", "15001"),
        ("group.consumer.min.session.timeout.ms", "45001"),
        ("group.consumer.session.timeout.ms", "5000"),
        ("group.consumer.assignors", "sticky"),
        ("group.consumer.migration.policy", "sometimes"),
        ("group.consumer.max.size", "0"),
    ],
)
def test_settings_out_of_bounds_are_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidConfig, match=r"group\.consumer"):
        BrokerSettings({name: value})


def test_a_topic_has_another_name_in_another_tenant(crowd: Crowd) -> None:
    crowd.wait(crowd.broker.topics.create(TopicName("acme", "sales", "orders"), 1, {}))
    fellow = Fellow(crowd, "m", topics=(), pattern="orders")
    fellow.join()
    assert len(fellow.owned) == 7
