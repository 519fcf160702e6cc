"""Members of the classic protocol in a consumer group.

The server stands in for their leader: a join is answered at once with the member's epoch as the generation, and a
sync with what the member has. A heartbeat sends it back to join when there is something to give up or to be had.

Source: KIP-848, "Upgrade & Downgrade", and the group coordinator of Apache Kafka 4.
"""

from millstream.broker.any_group import Assignment, Joined, Joining
from millstream.broker.consumer_groups.environment import GroupEnvironment
from millstream.broker.consumer_groups.member import ClassicDetails, ConsumerMember, MemberState
from millstream.broker.consumer_groups.requests import EMPTY_PATTERN, EmbeddedProtocol, Subscription
from millstream.broker.consumer_groups.roster import Roster
from millstream.broker.errors import (
    FencedInstance,
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from millstream.model.pending import Pending, settled

__all__ = ["ClassicMembers"]


class ClassicMembers:
    """What members of the classic protocol ask of a consumer group.

    Args:
        environment: what is around.
        roster: its members.
    """

    def __init__(self, environment: GroupEnvironment, roster: Roster) -> None:
        self._environment = environment
        self._roster = roster

    def join(self, request: Joining) -> Joined:
        """Join, or join again; answered at once.

        Raises:
            InconsistentProtocol: it is no consumer, or has no assignor in common with others of its protocol.
            GroupFull, UnknownMember, FencedInstance.
            MemberIdRequired: it is to come back with an id.
        """
        embedded, subscription = self._read(request)
        member = self._member(request)
        member.client_id, member.client_host = request.client_id, request.client_host
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.classic = ClassicDetails(request.session_timeout_ms, request.protocols)
        self._roster.subscribe(member, subscription.topics, EMPTY_PATTERN)
        self._roster.advance(member, self._environment.by_id(subscription.owned))
        member.session.set(request.session_timeout_ms)
        member.progress.set(request.rebalance_timeout_ms)
        self._roster.touched.add(member.id)
        return Joined(
            member_id=member.id,
            generation=member.epoch,
            protocol_type=embedded.type,
            protocol_name=request.protocols[0].name,
            leader_id="",
        )

    def _read(self, request: Joining) -> tuple[EmbeddedProtocol, Subscription]:
        embedded = self._environment.embedded
        offered = {protocol.name for protocol in request.protocols}
        itself = (self._roster.members.get(request.member_id), self._roster.static(request.instance_id))
        common = offered.intersection(
            *(
                {protocol.name for protocol in member.classic.protocols}
                for member in self._roster.members.values()
                if member.classic is not None and member not in itself
            )
        )
        if embedded is None or request.protocol_type != embedded.type or not common:
            raise InconsistentProtocol("no assignment protocol in common with the group")
        subscription = embedded.read_subscription(request.protocols[0].metadata)
        if subscription is None:
            raise InconsistentProtocol("what the member says of itself cannot be read")
        return embedded, subscription

    def _member(self, request: Joining) -> ConsumerMember:
        former = self._roster.static(request.instance_id)
        known = former or self._roster.members.get(request.member_id)
        if former is not None and request.member_id not in {"", former.id}:
            raise FencedInstance(f"another member has taken over {request.instance_id}")
        if former is None and request.instance_id is not None and request.member_id:
            raise UnknownMember(f"the group has no member {request.instance_id}")
        if known is None and len(self._roster.members) >= self._environment.settings.size_max:
            raise GroupFull(f"the group has {len(self._roster.members)} members, as many as it may have")
        if request.member_id:
            return known or self._roster.add(request.member_id, None)
        member_id = f"{request.instance_id or request.client_id}-{self._environment.runtime.random_bytes(16).hex()}"
        if request.instance_id is None and request.id_required:
            raise MemberIdRequired(member_id)
        if known is None:
            return self._roster.add(member_id, request.instance_id)
        self._roster.rename(known, member_id)
        return known

    def sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol_name: str | None,
    ) -> Pending[Assignment]:
        """Tell a member what it has.

        Raises:
            UnknownMember, FencedInstance, IllegalGeneration, InconsistentProtocol, RebalanceInProgress.
        """
        member, classic = self._current(member_id, instance_id, generation)
        embedded = self._environment.embedded
        chosen = classic.protocols[0]
        if embedded is None or protocol_type not in {None, embedded.type} or protocol_name not in {None, chosen.name}:
            raise InconsistentProtocol("the assignment is of another protocol than the group chose")
        if self._roster.epoch > member.epoch and member.state is not MemberState.UNREVOKED:
            self._send_back(member)
        member.progress.cancel()
        member.session.set(classic.session_timeout_ms)
        content = embedded.write_assignment(chosen.metadata, self._environment.by_name(member.assigned))
        return settled(Assignment(embedded.type, chosen.name, content))

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Keep a member's session alive.

        Raises:
            UnknownMember, FencedInstance, IllegalGeneration.
            RebalanceInProgress: it is to join again, to give up what it should, or to get what has become free.
        """
        member, classic = self._current(member_id, instance_id, generation)
        member.session.set(classic.session_timeout_ms)
        self._roster.catch_up()
        if (
            member.epoch < self._roster.epoch
            or member.state is MemberState.UNREVOKED
            or (member.state is MemberState.UNRELEASED and not self._roster.waits_for_others(member))
        ):
            self._send_back(member)

    def _current(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[ConsumerMember, ClassicDetails]:
        member = self._roster.find(member_id, instance_id)
        if member.classic is None:
            raise UnknownMember(f"the member {member_id} does not use the classic protocol")
        if generation != member.epoch:
            raise IllegalGeneration(f"generation {generation} is over; the member is at {member.epoch}")
        return member, member.classic

    @staticmethod
    def _send_back(member: ConsumerMember) -> None:
        """Have a member join again, and remove it if it does not."""
        if not member.progress.is_set:
            member.progress.set(member.rebalance_timeout_ms)
        raise RebalanceInProgress("the group is rebalancing")
