"""One consumer group: its members say what they subscribe to, and the server shares the partitions out among them.

    EMPTY ──join──> ASSIGNING ──a member's next heartbeat──> RECONCILING ──all have what they are to have──> STABLE
      ^                 ^                                        │                                             │
      └──last one left──┴──────────────── join, leave, other topics, time-out ────────────────────────────────┘

A member speaks in heartbeats. Each answer tells its epoch, which it shows with what it commits, and its partitions if
they have changed.

Source: KIP-848, and the group coordinator of Apache Kafka 4.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from millstream.broker.any_group import Assignment, GroupKind, GroupState, Joined, Joining
from millstream.broker.consumer_groups.classic_members import ClassicMembers
from millstream.broker.consumer_groups.environment import GroupEnvironment
from millstream.broker.consumer_groups.member import LEFT_EPOCH, ConsumerMember, MemberState
from millstream.broker.consumer_groups.reconciliation import Standing
from millstream.broker.consumer_groups.requests import Heartbeat, Reply
from millstream.broker.consumer_groups.roster import Roster
from millstream.broker.documents import Document
from millstream.broker.errors import (
    FencedEpoch,
    FencedInstance,
    GroupFull,
    IllegalGeneration,
    StaleEpoch,
    UnreleasedInstance,
)
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled

__all__ = ["ConsumerGroup"]

_log = logging.getLogger(__name__)


class ConsumerGroup:
    """A consumer group. Methods raise a GroupError.

    Args:
        group_id: its name.
        environment: what is around.
        deserted: called when all members are of the classic protocol.
    """

    kind: Final = GroupKind.CONSUMER
    protocol_type: str | None = "consumer"

    def __init__(
        self, group_id: str, environment: GroupEnvironment, deserted: Callable[["ConsumerGroup"], None]
    ) -> None:
        self.id = group_id
        self.roster = Roster(group_id, environment, self._remove)
        self._environment = environment
        self._deserted = deserted
        self._classic = ClassicMembers(environment, self.roster)
        self._closed = False

    @property
    def members(self) -> Mapping[str, ConsumerMember]:
        """Those in it, by id."""
        return self.roster.members

    @property
    def state(self) -> GroupState:
        """Where it stands."""
        if self._closed:
            return GroupState.DEAD
        if not self.members:
            return GroupState.EMPTY
        if self.roster.epoch > self.roster.target_epoch:
            return GroupState.ASSIGNING
        if all(member.has_reached(self.roster.target_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def idle(self) -> bool:
        """Whether there are no members."""
        return not self.members

    @property
    def empty_since_ms(self) -> int:
        """When the last member left, or when it was made."""
        return self.roster.empty_since_ms

    # Members of the protocol of consumer groups

    def beat(self, heartbeat: Heartbeat) -> Reply:
        """Join, stay, and come nearer to the partitions that one is to have.

        Raises:
            GroupFull, UnknownMember, FencedInstance, UnreleasedInstance.
            FencedEpoch: the member is to give up its partitions and to join again.
        """
        member = self._joining(heartbeat) if heartbeat.epoch == 0 else self._known(heartbeat)
        self._describe(member, heartbeat)
        assigned = member.assigned
        self.roster.subscribe(member, heartbeat.topics, heartbeat.pattern)
        before = member.state, member.assigned, member.revoking
        self.roster.advance(member, heartbeat.owned)
        timings = self._environment.timings(self.id)
        member.session.set(timings.session_timeout_ms)
        if member.state is not MemberState.UNREVOKED:
            member.progress.cancel()
        elif before != (member.state, member.assigned, member.revoking):
            member.progress.set(member.rebalance_timeout_ms)
        told = member.assigned if heartbeat.is_full or member.assigned != assigned else None
        return Reply(member.id, member.epoch, timings.heartbeat_interval_ms, told)

    def _joining(self, heartbeat: Heartbeat) -> ConsumerMember:
        former = self.roster.static(heartbeat.instance_id)
        known = former or self.members.get(heartbeat.member_id)
        if known is None:
            if len(self.members) >= self._environment.settings.size_max:
                raise GroupFull(f"the group has {len(self.members)} members, as many as it may have")
            return self.roster.add(heartbeat.member_id, heartbeat.instance_id)
        if known.id == heartbeat.member_id:
            # It was fenced, or did not get the answer when it joined: it says that it has nothing.
            self.roster.begin_anew(known)
            self.roster.make_static(known, heartbeat.instance_id)
            return known
        if known.epoch != LEFT_EPOCH and known.classic is None:
            raise UnreleasedInstance(f"{heartbeat.instance_id} is the member {known.id}, which has not left")
        if heartbeat.member_id in self.members:
            raise FencedInstance(f"the member {heartbeat.member_id} is not {heartbeat.instance_id}")
        self.roster.rename(known, heartbeat.member_id)
        return known

    def _known(self, heartbeat: Heartbeat) -> ConsumerMember:
        member = self.roster.find(heartbeat.member_id, heartbeat.instance_id)
        if heartbeat.epoch == member.epoch:
            return member
        lost_answer = heartbeat.epoch == member.previous_epoch and heartbeat.epoch < member.epoch
        if not lost_answer or heartbeat.owned is None or not heartbeat.owned <= member.assigned:
            raise FencedEpoch(
                f"the member is at epoch {member.epoch}, not at {heartbeat.epoch}: "
                "it is to give up all partitions and to join again"
            )
        return member

    def _describe(self, member: ConsumerMember, heartbeat: Heartbeat) -> None:
        before = member.said
        if member.classic is not None:
            member.classic = None
            member.progress.cancel()
        member.client_id, member.client_host = heartbeat.client_id, heartbeat.client_host
        if heartbeat.rack_id is not None:
            member.rack_id = heartbeat.rack_id
        if heartbeat.rebalance_timeout_ms is not None:
            member.rebalance_timeout_ms = heartbeat.rebalance_timeout_ms
        if heartbeat.assignor is not None:
            member.assignor = heartbeat.assignor
        if member.said != before:
            self.roster.touched.add(member.id)

    def depart(self, member_id: str, instance_id: str | None, *, for_a_while: bool) -> None:
        """Leave.

        Args:
            member_id, instance_id: who leaves.
            for_a_while: whether a static member's partitions are to wait for it until its session is over.

        Raises:
            UnknownMember, FencedInstance.
        """
        member = self.roster.find(member_id, instance_id)
        if for_a_while:
            self.roster.place(member, Standing(member.state, LEFT_EPOCH, member.assigned, frozenset()))
            member.progress.cancel()
            self.keep()
        else:
            self._remove(member)

    def _remove(self, member: ConsumerMember) -> None:
        self.roster.remove(member)
        self.keep()
        self._look_who_is_left()

    def _look_who_is_left(self) -> None:
        if self.members and all(member.classic is not None for member in self.members.values()):
            self._deserted(self)

    # Members of the classic protocol

    def join(self, request: Joining) -> Pending[Joined]:
        """Join as a member of the classic protocol. See `ClassicMembers.join`."""
        joined = self._classic.join(request)
        kept = self.keep()
        self._look_who_is_left()
        return kept.always(lambda: joined)

    def sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol_name: str | None,
        assignments: Mapping[str, bytes],
    ) -> Pending[Assignment]:
        """Fetch one's assignment as a member of the classic protocol; nobody brings any here."""
        return self._classic.sync(member_id, instance_id, generation, protocol_type, protocol_name)

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Say that a member of the classic protocol lives. Raises RebalanceInProgress when it is to join again."""
        self._classic.heartbeat(member_id, instance_id, generation)

    def leave(self, member_id: str, instance_id: str | None) -> None:
        """Leave by the classic protocol, or remove a member of either; a static one by its instance id alone."""
        static = self.roster.static(instance_id)
        self._remove(static if static is not None and not member_id else self.roster.find(member_id, instance_id))

    # What members commit

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, in_transaction: bool = False
    ) -> None:
        """Check that a member may commit offsets. A group without members takes them from anyone.

        Raises:
            UnknownMember, FencedInstance.
            StaleEpoch: that is not the member's epoch.
            IllegalGeneration: the same, of a member of the classic protocol.
        """
        if generation < 0 and not self.members:
            return
        self._check_epoch(self.roster.find(member_id, instance_id), generation)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Check that a member may ask what is committed. As `check_commit`, but None and -1 stand for anyone."""
        if member_id is not None or epoch >= 0:
            self._check_epoch(self.roster.find(member_id or "", None), epoch)

    @staticmethod
    def _check_epoch(member: ConsumerMember, epoch: int) -> None:
        if epoch != member.epoch:
            error = StaleEpoch if member.classic is None else IllegalGeneration
            raise error(f"the member is at epoch {member.epoch}, not at {epoch}")

    # What lasts

    def keep(self) -> Pending[None]:
        """Let last what has changed of members, before they are told.

        What cannot be kept is in use all the same, and is to be kept with what changes, or is asked, next.
        """
        touched, memory = self.roster.touched, self._environment.memory
        if not touched or memory is None:
            return settled(None)
        self.roster.touched = set()

        def settle(done: Pending[None]) -> None:
            try:
                done.result()
            except MillstreamError as error:
                self.roster.touched.update(touched)
                _log.warning("members not stored group=%s reason=%s: they are with the next change", self.id, error)

        kept = memory.keep(self.id, self.members, touched)
        kept.when_done(settle)
        return kept

    def resume(self, documents: Iterable[Document]) -> None:
        """Go on with members that were there before a restart of the server; see `GroupMemory.groups`."""
        self.roster.resume(documents)
        timeout_ms = self._environment.timings(self.id).session_timeout_ms
        for member in self.members.values():
            member.session.set(timeout_ms if member.classic is None else member.classic.session_timeout_ms)
            if member.revoking:
                member.progress.set(member.rebalance_timeout_ms)

    # The end

    def close(self, *, for_good: bool = False) -> None:
        """Let all members go and no timer run any more.

        Args:
            for_good: whether it ends as this kind of group. Members last if only the server stops.
        """
        self._closed = True
        self.roster.clear()
        if for_good:
            self.keep()
