"""How a classic group with members becomes a consumer group, and back.

It becomes one when the first member of that protocol joins, and a classic group again when the last of them has left.
Members keep what they have; those of the classic protocol are then sent to join again.

Source: KIP-848, "Upgrade & Downgrade", and the group coordinator of Apache Kafka 4.
"""

from collections.abc import Callable

from millstream.broker.any_group import GroupState
from millstream.broker.consumer_groups.environment import GroupEnvironment
from millstream.broker.consumer_groups.group import ConsumerGroup
from millstream.broker.consumer_groups.member import ClassicDetails, ConsumerMember
from millstream.broker.consumer_groups.requests import EmbeddedProtocol, Subscription
from millstream.broker.group import Group, Member
from millstream.broker.offsets import Place

__all__ = ["downgraded", "upgraded"]


def upgraded(
    group: Group, environment: GroupEnvironment, deserted: Callable[[ConsumerGroup], None]
) -> ConsumerGroup | None:
    """The consumer group that a classic group would become; that one stays as it is.

    Args:
        group: has members.
        environment, deserted: as for `ConsumerGroup`.

    Returns:
        None if its members are no consumers, or say what cannot be read.
    """
    embedded = environment.embedded
    if embedded is None or group.protocol_type != embedded.type:
        return None
    read: list[tuple[Member, Subscription, frozenset[Place]]] = []
    for member in group.members.values():
        subscription = embedded.read_subscription(_metadata(group, member))
        places = _assigned(embedded, environment, group, member)
        if subscription is None or places is None:
            return None
        if not member.assignment and group.state is not GroupState.STABLE:
            # A rebalance that was cut short has taken the assignment from the group, but not from the member.
            places = environment.by_id(subscription.owned)
        read.append((member, subscription, places))
    consumers = ConsumerGroup(group.id, environment, deserted)
    adopted: dict[ConsumerMember, frozenset[Place]] = {}
    for member, subscription, places in read:
        one = consumers.roster.add(member.id, member.instance_id)
        one.client_id, one.client_host = member.client_id, member.client_host
        one.rebalance_timeout_ms = member.rebalance_timeout_ms
        one.classic = ClassicDetails(member.session_timeout_ms, member.protocols)
        one.session.set(member.session_timeout_ms)
        consumers.roster.subscribe(one, subscription.topics)
        adopted[one] = places
    consumers.roster.restore(group.generation, adopted)
    return consumers


def _metadata(group: Group, member: Member) -> bytes:
    return member.metadata(group.protocol_name) or member.protocols[0].metadata


def _assigned(
    embedded: EmbeddedProtocol, environment: GroupEnvironment, group: Group, member: Member
) -> frozenset[Place] | None:
    """What a member was assigned; None if that cannot be read."""
    if not member.assignment:
        return frozenset()
    assigned = embedded.read_assignment(group.protocol_name, member.assignment)
    return None if assigned is None else environment.by_id(assigned)


def downgraded(consumers: ConsumerGroup, environment: GroupEnvironment, group: Group) -> None:
    """Let a classic group take the place of a consumer group, which ends with that.

    Args:
        consumers: all its members are of the classic protocol.
        environment: what is around.
        group: new.
    """
    embedded = environment.embedded
    assert embedded is not None, "who lets members of the classic protocol in can read what they say"
    members = []
    for member in consumers.members.values():
        assert member.classic is not None
        members.append(
            Member(
                member.id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.classic.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.classic.protocols,
                member.topics,
                embedded.write_assignment(member.classic.protocols[0].metadata, environment.by_name(member.assigned)),
                is_new=False,
            )
        )
    epoch = consumers.roster.epoch
    consumers.close(for_good=True)
    group.take_over(epoch, embedded.type, members)
