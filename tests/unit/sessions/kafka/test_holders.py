"""Members of a group beside clients of another protocol that read under its name."""

import struct

from millstream.broker.holders import Holder
from millstream.sessions.kafka.consumer_assignment import encode_assignment
from millstream.sessions.kafka.holders import members_of
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from millstream.wire.kafka.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from millstream.wire.kafka.messages.join_group import JOIN_GROUP
from millstream.wire.kafka.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from tests.unit.sessions.kafka.conversation import Conversation
from tests.unit.sessions.kafka.group_requests import join_request

NO_MEMBER_IDS = 3
"""The last version of JoinGroup in which a new member is let in at once."""
_HELD = Holder(protocol="pulsar", id="c-0", client="c", host="10.0.0.1:700", topic="orders", partitions=(1,))


def test_a_member_is_refused_while_another_protocol_reads() -> None:
    talk = Conversation()
    talk.create("orders", 2)
    held = [_HELD]
    talk.broker.holders.register("pulsar", lambda name: held if name == "g" else ())
    answer = talk.ask(JOIN_GROUP, join_request(), NO_MEMBER_IDS)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    described = talk.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"])).groups[0]
    assert (described.group_state, described.protocol_data) == ("Stable", "pulsar")
    (member,) = described.members
    assert (member.member_id, member.client_id, member.client_host) == ("pulsar-c-0", "c", "/10.0.0.1")
    assert member.member_assignment == encode_assignment({"orders": [1]})
    held.clear()
    joining = talk.send(JOIN_GROUP, join_request(), NO_MEMBER_IDS)
    assert joining is not None
    talk.pass_ms(talk.settings.initial_rebalance_delay_ms)
    assert joining.result().error_code == ErrorCode.NONE
    assert [one.topic for one in members_of(talk.broker.groups, "g")] == ["orders"]
    assert list(members_of(talk.broker.groups, "nobody's")) == []


def test_names_of_other_protocols_are_listed_and_described() -> None:
    talk = Conversation()
    talk.create("orders", 2)
    named = [("held", True), ("free", False), ("held", False)]
    talk.broker.holders.register("pulsar", lambda name: [_HELD] if name == "held" else (), names=lambda: named)
    listed = {one.group_id: one for one in talk.ask(LIST_GROUPS, ListGroupsRequest(), 5).groups}
    assert {name: (one.group_state, one.protocol_type, one.group_type) for name, one in listed.items()} == {
        "held": ("Stable", "consumer", "classic"),
        "free": ("Empty", "", "classic"),
    }
    stable = talk.ask(LIST_GROUPS, ListGroupsRequest(states_filter=["stable"]), 5).groups
    assert [one.group_id for one in stable] == ["held"]
    groups = talk.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["held", "free", "none"])).groups
    assert [one.group_state for one in groups] == ["Stable", "Empty", "Dead"]
    assert [len(one.members) for one in groups] == [1, 0, 0]
    deleted = talk.ask(DELETE_GROUPS, DeleteGroupsRequest(groups_names=["held"])).results
    assert deleted[0].error_code in {ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND}


def test_members_of_several_protocols_are_described_together() -> None:
    talk = Conversation(group__several__protocols__enable="true")
    talk.create("orders", 2)
    joining = talk.send(JOIN_GROUP, join_request(), NO_MEMBER_IDS)
    assert joining is not None
    talk.pass_ms(talk.settings.initial_rebalance_delay_ms)
    member_id = joining.result().member_id
    talk.broker.holders.register("pulsar", lambda _: [_HELD], names=lambda: [("g", True)])
    (described,) = talk.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"])).groups
    assert [one.member_id for one in described.members] == [member_id, "pulsar-c-0"]
    assert described.protocol_data == "pulsar"  # the members are not told their assignments yet
    (listed,) = talk.ask(LIST_GROUPS, ListGroupsRequest(), 5).groups
    assert listed.group_state == described.group_state == "CompletingRebalance"


def test_an_assignment() -> None:
    expected = struct.pack(">hih6siiii", 0, 1, 6, b"orders", 2, 0, 3, -1)
    assert encode_assignment({"orders": [0, 3]}) == expected
