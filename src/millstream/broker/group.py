"""One consumer group: who its members are, and how they come to share the work out (the classic protocol).

The broker only brings the members together and hands the leader's assignment round; it does not look into what
members say of themselves, so any assignor works.

    EMPTY ──join──> PREPARING ──all joined, or time is up──> COMPLETING ──leader's sync──> STABLE
      ^                 ^                                        │                           │
      └──last one left──┴──────────── join, leave, time-out ─────┴───────────────────────────┘

Source: Apache Kafka's group coordinator; KIP-62 (rebalance timeout), KIP-345 (static members), KIP-394 (member ids
before joining), KIP-814 (static leader).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from millstream.broker.any_group import Assignment, GroupKind, GroupState, Joined, Joining, Protocol
from millstream.broker.errors import (
    FencedInstance,
    GroupError,
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime, Timer

__all__ = ["Assignment", "Group", "GroupState", "Joined", "Joining", "Member", "Protocol"]

_NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60 * 1000
"""ms for which a member that has not finished its first join is kept, whatever its session timeout (KIP-394)."""


@dataclass(slots=True)
class Member:
    """A member. `joining` and `syncing` hold its answers while it waits for them.

    `is_to_sync` says that it has joined a generation, and has not asked for its assignment yet.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    subscribed: frozenset[str]
    assignment: bytes = b""
    joining: Pending[Joined] | None = None
    syncing: Pending[Assignment] | None = None
    is_new: bool = True
    is_to_sync: bool = False
    deadline_ms: int = 0
    timer: Timer | None = field(default=None, repr=False)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What the member says of itself under a protocol."""
        return next((p.metadata for p in self.protocols if p.name == protocol_name), b"")


class Group:
    """A consumer group. Methods raise a GroupError, or return an answer that may come later.

    Args:
        group_id: its name.
        runtime: time and chance.
        initial_delay_ms: how long the first rebalance of an empty group waits for more members.
        size_max: how many members it may have.
    """

    kind: Final = GroupKind.CLASSIC

    def __init__(self, group_id: str, runtime: Runtime, initial_delay_ms: int, size_max: int) -> None:
        self.id = group_id
        self.state = GroupState.EMPTY
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation = 0
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.empty_since_ms = runtime.now_ms()
        self._runtime = runtime
        self._initial_delay_ms = initial_delay_ms
        self._size_max = size_max
        self._pending_ids: dict[str, Timer] = {}
        self._static: dict[str, str] = {}
        self._rebalance_timer: Timer | None = None
        self._sync_timer: Timer | None = None
        self._initial_wait = False

    @property
    def idle(self) -> bool:
        """Whether there are no members, and none that were given an id to join with."""
        return self.state is GroupState.EMPTY and not self._pending_ids

    # Requests of members

    def join(self, request: Joining) -> Pending[Joined]:
        """Join, or join again."""
        if not self._agrees(request):
            raise InconsistentProtocol("no assignment protocol in common with the group")
        if not request.member_id:
            return self._join_new(request)
        if request.member_id in self._pending_ids:
            self._pending_ids.pop(request.member_id).cancel()
            if request.instance_id is None:
                return self._add(request.member_id, request)
            self._maybe_complete_join()  # such ids are for dynamic members: it is refused, and nobody waits for it
        member = self._member(request.member_id, request.instance_id)
        same = member.protocols == request.protocols
        if self.state is GroupState.COMPLETING and same:
            return settled(self._joined(member))
        if self.state is GroupState.STABLE and same and member.id != self.leader_id:
            return settled(self._joined(member))
        return self._rejoin(member, request)

    def sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol_name: str | None,
        assignments: Mapping[str, bytes],
    ) -> Pending[Assignment]:
        """Bring (as the leader) or fetch the assignment of a generation."""
        member = self._current(member_id, instance_id, generation)
        if protocol_type not in {None, self.protocol_type} or protocol_name not in {None, self.protocol_name}:
            raise InconsistentProtocol("the assignment is of another protocol than the group chose")
        if self.state is GroupState.PREPARING:
            raise RebalanceInProgress("the group is rebalancing")
        self._alive(member)
        member.is_to_sync = False
        if self.state is GroupState.STABLE:
            return settled(self._assignment(member))
        if member.syncing is not None and not member.syncing.done:
            member.syncing.fail(RebalanceInProgress("the member asked again"))
        answer: Pending[Assignment] = Pending()
        member.syncing = answer
        if member.id == self.leader_id:
            for other in self.members.values():
                other.assignment = assignments.get(other.id, b"")
            self.state = GroupState.STABLE
            self._answer_syncs()
        return answer

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Say that a member lives. Raises RebalanceInProgress when it is to join again."""
        member = self._current(member_id, instance_id, generation)
        self._alive(member)
        if self.state is GroupState.PREPARING:
            raise RebalanceInProgress("the group is rebalancing")

    def leave(self, member_id: str, instance_id: str | None) -> None:
        """Leave; a static member may be named by its instance id alone."""
        if instance_id is None and member_id in self._pending_ids:
            self._pending_ids.pop(member_id).cancel()
            self._maybe_complete_join()
            return
        if instance_id is not None and not member_id:
            member_id = self._static.get(instance_id, "")
        self._remove(self._member(member_id, instance_id), "it left")

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, in_transaction: bool = False
    ) -> None:
        """Check that a member may commit offsets. A group without members takes them from anyone."""
        if generation < 0 and self.state is GroupState.EMPTY:
            return
        member = self._current(member_id, instance_id, generation)
        if self.state is GroupState.COMPLETING and not in_transaction:  # for that, Java's producer would give up
            raise RebalanceInProgress("the group is rebalancing")
        self._alive(member)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Anyone may ask what is committed."""

    # Membership

    def _agrees(self, request: Joining) -> bool:
        if not request.protocols or not request.protocol_type:
            return False
        if not self.members:
            return True
        others = [m for m in self.members.values() if m.id != request.member_id]
        common = set.intersection(*({p.name for p in m.protocols} for m in others)) if others else None
        offered = {p.name for p in request.protocols}
        return request.protocol_type == self.protocol_type and (common is None or bool(common & offered))

    def _join_new(self, request: Joining) -> Pending[Joined]:
        if request.instance_id is not None and request.instance_id in self._static:
            return self._replace_static(request, request.instance_id)
        if len(self.members) + len(self._pending_ids) >= self._size_max:
            raise GroupFull(f"the group has {self._size_max} members, as many as it may have")
        member_id = f"{request.instance_id or request.client_id}-{self._runtime.random_bytes(16).hex()}"
        if request.instance_id is None and request.id_required:

            def give_up() -> None:
                if self._pending_ids.pop(member_id, None) is not None:
                    self._maybe_complete_join()

            timer = self._runtime.call_later(request.session_timeout_ms / 1000, give_up)
            self._pending_ids[member_id] = timer
            raise MemberIdRequired(member_id)
        return self._add(member_id, request)

    def _add(self, member_id: str, request: Joining) -> Pending[Joined]:
        if not self.members:
            self.protocol_type = request.protocol_type
        member = Member(
            member_id,
            request.instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.protocols,
            request.topics,
        )
        self.members[member_id] = member
        if request.instance_id is not None:
            self._static[request.instance_id] = member_id
        if self.leader_id is None:
            self.leader_id = member_id
        answer: Pending[Joined] = Pending()
        member.joining = answer
        self._watch(member)
        self._prepare_rebalance()
        return answer

    def _rejoin(self, member: Member, request: Joining) -> Pending[Joined]:
        member.protocols = request.protocols
        member.subscribed = request.topics
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        if member.joining is not None:
            member.joining.fail(RebalanceInProgress("the member asked again"))
        answer: Pending[Joined] = Pending()
        member.joining = answer
        self._watch(member)
        self._prepare_rebalance()
        return answer

    def _replace_static(self, request: Joining, instance_id: str) -> Pending[Joined]:
        """A static member has come back without its id: it gets a new one, and whoever had it is fenced."""
        old = self.members.pop(self._static[instance_id])
        self._stop(old, FencedInstance(f"another member has taken over {instance_id}"))
        was_leader = self.leader_id == old.id
        member = Member(
            f"{instance_id}-{self._runtime.random_bytes(16).hex()}",
            instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.protocols,
            request.topics,
            old.assignment,
            is_new=False,
        )
        self.members[member.id] = member
        self._static[instance_id] = member.id
        leader_before = self.leader_id
        if was_leader:
            self.leader_id = member.id
        self._watch(member)
        # As in Apache Kafka, what the member says of itself is not compared: today's clients put their generation and
        # their partitions into it, which a restart always changes.
        if self.state is GroupState.STABLE and self._chosen_protocol() == self.protocol_name:
            if was_leader and not request.may_skip_assignment:
                # An older client that learned it leads would assign anew; it is told of its former self instead.
                return settled(self._joined(member, leader_id=leader_before))
            return settled(self._joined(member, skip_assignment=was_leader))
        answer: Pending[Joined] = Pending()
        member.joining = answer
        self._prepare_rebalance()
        return answer

    def _member(self, member_id: str, instance_id: str | None) -> Member:
        if instance_id is not None:
            known = self._static.get(instance_id)
            if known is None:
                raise UnknownMember(f"the group has no member {instance_id}")
            if known != member_id:
                raise FencedInstance(f"another member has taken over {instance_id}")
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMember(f"the group has no member {member_id!r}")
        return member

    def _current(self, member_id: str, instance_id: str | None, generation: int) -> Member:
        member = self._member(member_id, instance_id)
        if generation != self.generation:
            raise IllegalGeneration(f"generation {generation} is over; the group is at {self.generation}")
        return member

    def _remove(self, member: Member, why: str) -> None:
        del self.members[member.id]
        if member.instance_id is not None:
            self._static.pop(member.instance_id, None)
        self._stop(member, UnknownMember(f"the member was removed: {why}"))
        if self.leader_id == member.id:
            self.leader_id = next(iter(self.members), None)
        if self.state in {GroupState.STABLE, GroupState.COMPLETING}:
            self._prepare_rebalance()
        elif self.state is GroupState.PREPARING:
            self._maybe_complete_join()

    @staticmethod
    def _stop(member: Member, error: GroupError) -> None:
        if member.timer is not None:
            member.timer.cancel()
        joining, syncing, member.joining, member.syncing = member.joining, member.syncing, None, None
        if joining is not None:
            joining.fail(error)
        if syncing is not None:
            syncing.fail(error)

    # Time

    def _alive(self, member: Member) -> None:
        member.deadline_ms = self._runtime.monotonic_ms() + member.session_timeout_ms

    def _watch(self, member: Member) -> None:
        """Look at a member when its session could be over; a sign of life only moves the deadline."""
        timeout_ms = max(member.session_timeout_ms, _NEW_MEMBER_TIMEOUT_MS if member.is_new else 0)
        member.deadline_ms = self._runtime.monotonic_ms() + timeout_ms
        if member.timer is not None:
            member.timer.cancel()
        self._look_later(member)

    def _look_later(self, member: Member) -> None:
        left_ms = max(member.deadline_ms - self._runtime.monotonic_ms(), 1)

        def look() -> None:
            waiting = member.joining is not None or member.syncing is not None
            if waiting and not member.is_new:
                self._alive(member)
            if self._runtime.monotonic_ms() >= member.deadline_ms:
                self._remove(member, "its session timed out")
            else:
                self._look_later(member)

        member.timer = self._runtime.call_later(left_ms / 1000, look)

    # Rebalancing

    def _prepare_rebalance(self) -> None:
        if self.state is GroupState.PREPARING:
            if self._rebalance_timer is None:
                self._time_rebalance()
            self._maybe_complete_join()
            return
        self._cancel_sync_timer()
        if self.state is GroupState.COMPLETING:
            for member in self.members.values():
                member.assignment = b""
                syncing, member.syncing = member.syncing, None
                if syncing is not None:
                    self._alive(member)
                    syncing.fail(RebalanceInProgress("the group is rebalancing"))
        was_empty = self.state is GroupState.EMPTY
        self.state = GroupState.PREPARING
        if was_empty and self._initial_delay_ms:
            self._initial_wait = True
            self._rebalance_timer = self._runtime.call_later(self._initial_delay_ms / 1000, self._end_initial_wait)
            return
        self._time_rebalance()
        self._maybe_complete_join()

    def _end_initial_wait(self) -> None:
        self._initial_wait = False
        self._time_rebalance()
        self._maybe_complete_join()

    def _time_rebalance(self) -> None:
        longest_ms = max((member.rebalance_timeout_ms for member in self.members.values()), default=0)
        self._rebalance_timer = self._runtime.call_later(longest_ms / 1000, self._complete_join)

    def _maybe_complete_join(self) -> None:
        if self.state is not GroupState.PREPARING or self._initial_wait or self._pending_ids:
            return
        if all(member.joining is not None for member in self.members.values()):
            self._complete_join()

    def _complete_join(self) -> None:
        """Begin the next generation with those who have joined; static members have until their session ends."""
        if self._rebalance_timer is not None:
            self._rebalance_timer.cancel()
            self._rebalance_timer = None
        for member in [m for m in self.members.values() if m.joining is None and m.instance_id is None]:
            del self.members[member.id]
            self._stop(member, UnknownMember("the member did not join again in time"))
        joined = [member for member in self.members.values() if member.joining is not None]
        if self.members and not joined:
            return  # only static members are left, and none is here: the first to join, or to expire, goes on
        self.generation += 1
        if not self.members:
            self.state = GroupState.EMPTY
            self.leader_id = self.protocol_name = None
            self.empty_since_ms = self._runtime.now_ms()
            return
        if self.leader_id not in {member.id for member in joined}:
            self.leader_id = joined[0].id
        self.protocol_name = self._chosen_protocol()
        self.state = GroupState.COMPLETING
        self._await_syncs()
        for member in joined:
            answer, member.joining = member.joining, None
            member.is_new, member.is_to_sync = False, True
            self._watch(member)
            assert answer is not None
            answer.resolve(self._joined(member))

    def _chosen_protocol(self) -> str:
        members = list(self.members.values())
        common = set.intersection(*({p.name for p in member.protocols} for member in members))
        votes = Counter(next(p.name for p in member.protocols if p.name in common) for member in members)
        return votes.most_common(1)[0][0]

    def _await_syncs(self) -> None:
        longest_ms = max(member.rebalance_timeout_ms for member in self.members.values())
        generation = self.generation

        def give_up() -> None:
            self._sync_timer = None
            if self.generation == generation and self.state in {GroupState.COMPLETING, GroupState.STABLE}:
                for member in [m for m in self.members.values() if m.is_to_sync]:
                    if member.id in self.members:
                        self._remove(member, "it did not ask for its assignment in time")

        self._sync_timer = self._runtime.call_later(longest_ms / 1000, give_up)

    def _cancel_sync_timer(self) -> None:
        if self._sync_timer is not None:
            self._sync_timer.cancel()
            self._sync_timer = None

    def _answer_syncs(self) -> None:
        for member in list(self.members.values()):
            syncing, member.syncing = member.syncing, None
            if syncing is not None:
                self._alive(member)
                syncing.resolve(self._assignment(member))

    def _assignment(self, member: Member) -> Assignment:
        return Assignment(self.protocol_type or "", self.protocol_name or "", member.assignment)

    def _joined(self, member: Member, *, leader_id: str | None = None, skip_assignment: bool = False) -> Joined:
        leader = leader_id or self.leader_id or ""
        members: Sequence[tuple[str, str | None, bytes]] = ()
        if leader == member.id:
            members = [(m.id, m.instance_id, m.metadata(self.protocol_name)) for m in self.members.values()]
        return Joined(
            member_id=member.id,
            generation=self.generation,
            protocol_type=self.protocol_type or "",
            protocol_name=self.protocol_name or "",
            leader_id=leader,
            members=tuple(members),
            skip_assignment=skip_assignment,
        )

    def take_over(self, generation: int, protocol_type: str, members: Iterable[Member]) -> None:
        """Begin with the members of a group of another kind, and have them join again.

        Args:
            generation: that they know; it grows with the rebalance.
            protocol_type: the kind of group.
            members: they have an assignment protocol in common.
        """
        self.generation, self.protocol_type = generation, protocol_type
        for member in members:
            self.members[member.id] = member
            if member.instance_id is not None:
                self._static[member.instance_id] = member.id
            self._watch(member)
        self.leader_id = next(iter(self.members))
        self.protocol_name = self._chosen_protocol()
        self.state = GroupState.STABLE
        self._prepare_rebalance()

    def close(self, error: GroupError | None = None) -> None:
        """Let all members go and no timer run any more: the group is deleted or becomes another, or the server stops.

        Args:
            error: what members that wait are told; by default that there is no such member.
        """
        self.state = GroupState.DEAD
        for timer in (self._rebalance_timer, self._sync_timer, *self._pending_ids.values()):
            if timer is not None:
                timer.cancel()
        self._pending_ids.clear()
        members, self.members = list(self.members.values()), {}
        for member in members:
            self._stop(member, error or UnknownMember("the group is gone"))
