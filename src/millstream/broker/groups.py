"""All groups: finding and making them, their offsets, and forgetting what nobody needs any more."""

from collections.abc import Callable, Iterable
from uuid import UUID

from millstream.broker.any_group import AnyGroup, GroupState, Joined, Joining
from millstream.broker.consumer_groups import ConsumerGroup, Heartbeat, Reply
from millstream.broker.consumer_groups.environment import GroupEnvironment
from millstream.broker.consumer_groups.memory import GroupMemory
from millstream.broker.consumer_groups.migration import downgraded, upgraded
from millstream.broker.documents import Documents
from millstream.broker.errors import (
    GroupError,
    GroupNotEmpty,
    GroupNotFound,
    GroupsClosed,
    InvalidGroupId,
    InvalidSessionTimeout,
    RebalanceInProgress,
    UnknownMember,
    UnsupportedAssignor,
)
from millstream.broker.group import Group
from millstream.broker.group_configs import GroupConfigs
from millstream.broker.offsets import Offsets, Place
from millstream.broker.settings import BrokerSettings
from millstream.broker.topics import Topics
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime
from millstream.storage.metadata import CommittedOffset

__all__ = ["Groups"]


class Groups:
    """The groups of the server, of both kinds. Offsets last, and so do members of consumer groups; others do not.

    Args:
        runtime: time and chance.
        settings: the server's.
        offsets: what groups have committed.
        topics: what consumer groups are assigned.
        configs: what is set on single groups.
        documents: where members of consumer groups last.

    `in_use` says whether others than members use the offsets of a group: clients of another protocol under its name.
    `environment` is what consumer groups share.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: BrokerSettings,
        offsets: Offsets,
        topics: Topics,
        configs: GroupConfigs,
        documents: Documents,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self.offsets = offsets
        self.configs = configs
        self._groups: dict[str, AnyGroup] = {}
        self._closed = False
        self.in_use: Callable[[str], bool] = lambda _: False
        self.environment = GroupEnvironment(
            runtime=runtime,
            topics=topics,
            settings=settings.consumer_groups,
            timings=configs.timings,
            memory=(memory := GroupMemory(documents)),
        )
        self._started_ms = runtime.now_ms()
        for group_id, members in memory.groups().items():
            self._groups[group_id] = group = ConsumerGroup(group_id, self.environment, self._deserted)
            group.resume(members)

    def ids(self) -> list[str]:
        """All groups that have members or offsets, or had members since the start."""
        return sorted({*self._groups, *self.offsets.group_ids()})

    def find(self, group_id: str) -> AnyGroup | None:
        """A group that has members or had some since the start; one that has only offsets is shown as empty."""
        group = self._groups.get(group_id)
        if group is None and self.offsets.of_group(group_id):
            return self._new(group_id)
        return group

    def _new(self, group_id: str) -> Group:
        settings = self._settings
        return Group(group_id, self._runtime, settings.initial_rebalance_delay_ms, settings.group_size_max)

    def join(self, group_id: str, request: Joining) -> Pending[Joined]:
        """Join a group, which comes to be if the member is new. See `Group.join`.

        Raises:
            InvalidGroupId, InvalidSessionTimeout, GroupError.
        """
        self._check(group_id)
        low, high = self._settings.session_timeout_min_ms, self._settings.session_timeout_max_ms
        if not low <= request.session_timeout_ms <= high:
            raise InvalidSessionTimeout(
                f"a session timeout lies between {low} and {high} ms, and {request.session_timeout_ms} does not"
            )
        group = self._groups.get(group_id)
        if group is None or (isinstance(group, ConsumerGroup) and group.idle):
            if request.member_id:
                raise UnknownMember(f"the group has no member {request.member_id!r}")
            group = self._groups[group_id] = self._new(group_id)
        return group.join(request)

    def beat(self, group_id: str, heartbeat: Heartbeat) -> Pending[Reply]:
        """Take a heartbeat of a member of a consumer group, which comes to be if it joins. See `ConsumerGroup.beat`.

        Returns:
            Comes once what the member is told lasts.

        Raises:
            InvalidGroupId, GroupError.
            GroupNotFound: the group is a classic one, and stays it.
        """
        self._check(group_id)
        assignors = self._settings.consumer_groups.assignors
        if heartbeat.assignor is not None and heartbeat.assignor not in assignors:
            raise UnsupportedAssignor(f"{heartbeat.assignor} is none of the assignors {', '.join(assignors)}")
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            reply = group.beat(heartbeat)
            return group.keep().always(lambda: reply)
        if heartbeat.epoch:
            # A member of a group that is another one by now. From this error, it joins again by itself.
            raise UnknownMember(f"the group has no member {heartbeat.member_id!r}")
        consumers = self._consumer_group(group_id, group)
        try:
            reply = consumers.beat(heartbeat)
        except GroupError:
            consumers.close()  # nobody joined, so that the group stays what it was
            raise
        self._groups[group_id] = consumers
        if isinstance(group, Group):
            group.close(RebalanceInProgress("the group is assigned to by the server from now on"))
        return consumers.keep().always(lambda: reply)

    def _consumer_group(self, group_id: str, group: AnyGroup | None) -> ConsumerGroup:
        """A new consumer group, with the members of a classic one if there are any. Nobody knows it yet."""
        if isinstance(group, Group) and group.members:
            settings = self._settings.consumer_groups
            may_upgrade = settings.may_upgrade and len(group.members) <= settings.size_max
            consumers = upgraded(group, self.environment, self._deserted) if may_upgrade else None
            if consumers is None:
                raise GroupNotFound(f"the group {group_id} is not a consumer group")
            return consumers
        return ConsumerGroup(group_id, self.environment, self._deserted)

    def _deserted(self, consumers: ConsumerGroup) -> None:
        """No member of a consumer group needs it to be one any more."""
        small_enough = len(consumers.members) <= self._settings.group_size_max
        can_be_read = self.environment.embedded is not None
        if self._settings.consumer_groups.may_downgrade and small_enough and can_be_read:
            group = self._new(consumers.id)
            self._groups[consumers.id] = group
            downgraded(consumers, self.environment, group)

    def depart(self, group_id: str, member_id: str, instance_id: str | None, *, for_a_while: bool) -> None:
        """Let a member of a consumer group leave. See `ConsumerGroup.depart`.

        Raises:
            InvalidGroupId, UnknownMember, FencedInstance.
        """
        group = self.member_group(group_id)
        if not isinstance(group, ConsumerGroup):
            raise UnknownMember(f"the group {group_id} is not a consumer group")
        group.depart(member_id, instance_id, for_a_while=for_a_while)

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """A consumer group.

        Raises:
            GroupNotFound: there is none, or it is a classic one.
        """
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            raise GroupNotFound(f"the group {group_id} is not a consumer group")
        return group

    def member_group(self, group_id: str) -> AnyGroup:
        """The group that a member speaks of.

        Raises:
            InvalidGroupId, UnknownMember: it has no members.
        """
        self._check(group_id)
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMember(f"the group {group_id} has no members")
        return group

    def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: dict[Place, CommittedOffset],
    ) -> Pending[None]:
        """Commit offsets, as a member or, with generation -1, without being one.

        Args:
            generation: that of a classic group, or the epoch of a member of a consumer group.

        Raises:
            InvalidGroupId, GroupError: the group does not let the member.
            GroupNotFound: the group has no members.
        """
        self._check(group_id)
        self._check_commit(group_id, member_id, instance_id, generation, in_transaction=False)
        return self.offsets.commit(group_id, offsets) if offsets else settled(None)

    def check_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        """Check that offsets of a group may be committed in a transaction.

        As `commit`, but who does not claim to be a member is taken at its word: its transaction fences others.

        Raises:
            InvalidGroupId, GroupError.
        """
        self._check(group_id)
        if generation >= 0 or member_id or instance_id is not None:
            self._check_commit(group_id, member_id, instance_id, generation, in_transaction=True)

    def _check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, *, in_transaction: bool
    ) -> None:
        group = self._groups.get(group_id)
        if group is not None:
            group.check_commit(member_id, instance_id, generation, in_transaction=in_transaction)
        elif generation >= 0:
            raise GroupNotFound(f"the group {group_id} has no generation {generation}")

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Check that a member may ask what its group has committed.

        Args:
            member_id: None of who is no member.
            epoch: the member's, -1 of who is none.

        Raises:
            GroupError: the group does not let the member.
        """
        self._check_open()
        group = self._groups.get(group_id)
        if group is not None:
            group.check_fetch(member_id, epoch)

    def delete(self, group_id: str) -> Pending[None]:
        """Delete a group without members, and its offsets.

        Raises:
            InvalidGroupId, GroupNotFound, GroupNotEmpty.
        """
        self._check(group_id)
        group = self.find(group_id)
        if group is None:
            raise GroupNotFound(f"there is no group {group_id}")
        if group.state is not GroupState.EMPTY or self.in_use(group_id):
            raise GroupNotEmpty(f"the group {group_id} has members")
        group.close()
        self._groups.pop(group_id, None)
        return self.offsets.delete_group(group_id)

    def delete_offsets(self, group_id: str, places: Iterable[Place]) -> Pending[None]:
        """Delete the offsets of a group in some partitions."""
        return self.offsets.delete(group_id, places)

    def forget_topic(self, topic_id: UUID) -> None:
        """Drop what was committed in a topic that is gone."""
        self.offsets.forget_topic(topic_id)

    def forget_partitions(self, topic_id: UUID, first: int) -> Pending[None]:
        """Drop what was committed in the partitions of a topic from one on. Resolves once that lasts."""
        return self.offsets.forget_partitions(topic_id, first)

    def expire(self) -> None:
        """Drop offsets that nobody has renewed while their group had no members for the retention time.

        When the last member left is not remembered over a restart, so the time counts from the start of the server at
        the earliest.
        Groups that have neither members nor offsets go at once.
        """
        before_ms = self._runtime.now_ms() - self._settings.offsets_retention_ms
        for group_id in list(self.offsets.group_ids()):
            group = self._groups.get(group_id)
            empty_since_ms = self._started_ms if group is None else group.empty_since_ms
            if empty_since_ms > before_ms or (group is not None and group.state is not GroupState.EMPTY):
                continue
            places = self.offsets.expired(group_id, before_ms)
            if places:
                self.offsets.delete(group_id, places)
        for group_id, group in list(self._groups.items()):
            if group.idle and not self.offsets.of_group(group_id):
                del self._groups[group_id]

    def close(self) -> None:
        """Let no timer run any more, and refuse what members ask from now on.

        Connections are closed later than this: members that were told that there is no such group would not come back
        as who they were.
        """
        self._closed = True
        for group in self._groups.values():
            group.close()

    def _check(self, group_id: str) -> None:
        self._check_open()
        if not group_id:
            raise InvalidGroupId("the name of a group is empty")

    def _check_open(self) -> None:
        if self._closed:
            raise GroupsClosed("the server stops: find the coordinator again")
