"""The members of a consumer group, the epochs, and who has which partition."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from uuid import UUID

from millstream.broker.consumer_groups.assignment_spec import AssignmentSpec
from millstream.broker.consumer_groups.environment import GroupEnvironment
from millstream.broker.consumer_groups.member import LEFT_EPOCH, ConsumerMember, MemberState
from millstream.broker.consumer_groups.memory import recall
from millstream.broker.consumer_groups.ranges import assign_ranges
from millstream.broker.consumer_groups.reconciliation import Standing, next_standing
from millstream.broker.consumer_groups.requests import TopicPattern
from millstream.broker.consumer_groups.uniform import assign_uniformly
from millstream.broker.deadline import Deadline
from millstream.broker.documents import Document
from millstream.broker.errors import FencedInstance, UnknownMember
from millstream.broker.offsets import Place

__all__ = ["ASSIGNORS", "Roster"]

ASSIGNORS: Final[Mapping[str, Callable[[AssignmentSpec], dict[str, frozenset[Place]]]]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
}
"""The assignors by name."""


class Roster:
    """The members and what they have. Nothing here waits; what is due in time removes a member.

    `epoch` grows with every change of members, subscriptions or topics. The target is made when a member next takes a
    step, so that many changes cost one; `target_epoch` says of which epoch it is. `touched` has the ids of members
    that have changed, come or gone since they were last kept.

    Args:
        group_id: the group's name.
        environment: what is around.
        expired: called with a member that is to be removed because its time is over.
    """

    def __init__(
        self, group_id: str, environment: GroupEnvironment, expired: Callable[[ConsumerMember], None]
    ) -> None:
        self.members: dict[str, ConsumerMember] = {}
        self.epoch = 0
        self.target_epoch = 0
        self.touched: set[str] = set()
        self.empty_since_ms = environment.runtime.now_ms()
        self._group_id = group_id
        self._environment = environment
        self._expired = expired
        self._static: dict[str, ConsumerMember] = {}
        self._owners: dict[Place, ConsumerMember] = {}
        self._subscribers: Counter[str] = Counter()
        self._topics: dict[str, tuple[UUID, int]] = {}
        self._rights: int | None = None
        self._resuming = False

    # Members

    def find(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """A member.

        Raises:
            UnknownMember: there is none.
            FencedInstance: its instance id is another's by now.
        """
        if instance_id is not None:
            holder = self._static.get(instance_id)
            if holder is None:
                raise UnknownMember(f"the group has no member {instance_id}")
            if holder.id != member_id:
                raise FencedInstance(f"another member has taken over {instance_id}")
            return holder
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMember(f"the group has no member {member_id!r}")
        return member

    def static(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that has a static id."""
        return None if instance_id is None else self._static.get(instance_id)

    def add(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """A new member, that has nothing and subscribes to nothing yet."""
        runtime = self._environment.runtime
        member = ConsumerMember(
            member_id,
            instance_id,
            session=Deadline(runtime, lambda: self._expired(member)),
            progress=Deadline(runtime, lambda: self._expired(member)),
        )
        if not self.members:
            self._environment.topics.watch(self._look_at_topics)
        self.members[member_id] = member
        self.touched.add(member_id)
        if instance_id is not None:
            self._static[instance_id] = member
        return member

    def rename(self, member: ConsumerMember, member_id: str) -> None:
        """A static member has come back under another id: all that was its former self's is its own."""
        del self.members[member.id]
        self.touched |= {member.id, member_id}
        member.id = member_id
        self.members[member_id] = member
        member.epoch = member.previous_epoch = 0

    def remove(self, member: ConsumerMember) -> None:
        """Let a member go."""
        member.session.cancel()
        member.progress.cancel()
        del self.members[member.id]
        self.touched.add(member.id)
        if member.instance_id is not None:
            del self._static[member.instance_id]
        self._take(member)
        self._subscribers.subtract(member.subscribed)
        self._topics = self._existing()
        self.epoch += 1
        if not self.members:
            self._nobody_is_left()

    def make_static(self, member: ConsumerMember, instance_id: str | None) -> None:
        """Let a member have a static id that is nobody else's, None for what it has."""
        if instance_id not in {None, member.instance_id}:
            if member.instance_id is not None:
                del self._static[member.instance_id]
            member.instance_id = instance_id
            self.touched.add(member.id)
        if instance_id is not None:
            self._static[instance_id] = member

    def clear(self) -> None:
        """Let all members go at once, without a new epoch."""
        if not self.members:
            return
        for member in self.members.values():
            member.session.cancel()
            member.progress.cancel()
        self.touched.update(self.members)
        for known in (self.members, self._static, self._owners, self._subscribers, self._topics):
            known.clear()
        self._nobody_is_left()

    def _nobody_is_left(self) -> None:
        self.empty_since_ms = self._environment.runtime.now_ms()
        self._environment.topics.unwatch(self._look_at_topics)

    # Subscriptions

    def subscribe(
        self, member: ConsumerMember, topics: frozenset[str] | None, pattern: TopicPattern | None = None
    ) -> None:
        """Take over what a member subscribes to, None for what it did before."""
        self._look_at_rights()
        topics = member.topics if topics is None else topics
        # The same text may stand for other topics by now, because others have ceased to read some under our name.
        matched = member.matched if pattern is None else self._matched([pattern])[pattern]
        pattern = member.pattern if pattern is None else pattern
        before, former = member.subscribed, (member.topics, member.pattern.text, member.matched)
        if pattern != member.pattern:
            self.touched.add(member.id)
        member.topics, member.pattern, member.matched = topics, pattern, matched
        if former == (topics, pattern.text, matched) and self.epoch:
            return
        self.touched.add(member.id)
        self._resubscribed(member, before)
        self._topics = self._existing()
        self.epoch += 1

    def _resubscribed(self, member: ConsumerMember, before: frozenset[str]) -> None:
        self._subscribers.subtract(before)
        self._subscribers.update(member.subscribed)

    def _matched(self, patterns: Iterable[TopicPattern]) -> dict[TopicPattern, frozenset[str]]:
        """The topics that patterns stand for at the moment."""
        matched = {pattern: frozenset[str]() for pattern in patterns}
        reader, wanted = self._environment.patterns, [pattern for pattern in matched if pattern.text]
        if reader is not None and wanted:
            held = self._environment.held(self._group_id)
            names = [topic.name.flat for topic in self._environment.topics if topic.name.flat not in held]
            matched |= reader.matching(wanted, names)
        return matched

    def _existing(self) -> dict[str, tuple[UUID, int]]:
        """The topics that there are of those subscribed to: the id and the number of partitions of each."""
        self._subscribers = +self._subscribers
        found = ((name, self._environment.topics.by_flat_name(name)) for name in sorted(self._subscribers))
        return {name: (topic.id, len(topic.partitions)) for name, topic in found if topic is not None}

    def _look_at_rights(self) -> None:
        """If clients may know of other topics than before, patterns stand for others."""
        reader = self._environment.patterns
        if reader is not None and reader.rights != self._rights:
            self._rights = reader.rights
            self._look_at_topics()

    def _look_at_topics(self) -> None:
        """Topics have come or gone: if that is of any concern here, there is something new to share out."""
        matched = self._matched(member.pattern for member in self.members.values())
        changed = False
        for member in self.members.values():
            now = matched[member.pattern]
            if now != member.matched:
                changed = True
                before = member.subscribed
                member.matched = now
                self._resubscribed(member, before)
        existing = self._existing()
        if changed or existing != self._topics:
            self._topics = existing
            self.epoch += not self._resuming  # there is no target yet that this could change

    # The target

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for, or the server's first."""
        votes = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        return votes.most_common(1)[0][0] if votes else self._environment.settings.assignors[0]

    def _assign(self) -> None:
        ids: dict[frozenset[str], frozenset[UUID]] = {}
        for member in self.members.values():
            subscribed = member.subscribed
            if subscribed not in ids:
                ids[subscribed] = frozenset(self._topics[name][0] for name in subscribed if name in self._topics)
        members = self.members.values()
        spec = AssignmentSpec(
            subscriptions={member.id: ids[member.subscribed] for member in members},
            partition_counts=dict(self._topics.values()),
            previous={member.id: member.target for member in members},
        )
        assigned = ASSIGNORS[self.assignor](spec)
        for member in members:
            member.target = assigned[member.id]
        if self._resuming:
            self._resuming = False
            self.epoch += not all(self._went_on(member) for member in members)
        self.target_epoch = self.epoch

    def catch_up(self) -> None:
        """Make the first target since a restart of the server, for who takes a step only if there is one to take."""
        if self._resuming:
            self._look_at_rights()
            self._assign()

    def _went_on(self, member: ConsumerMember) -> bool:
        """Whether a member had reached, before a restart of the server, what the first target since gives to it."""
        is_there = member.state is MemberState.STABLE and member.epoch in {self.epoch, LEFT_EPOCH}
        return is_there and member.assigned == member.target

    # What members have

    def advance(self, member: ConsumerMember, owned: frozenset[Place] | None) -> None:
        """Let a member take the next step to its target.

        Args:
            member: the member.
            owned: the partitions that it says it has; None if it does not say.
        """
        if self.epoch > self.target_epoch:
            self._assign()
        standing = next_standing(member, self.target_epoch, owned, lambda place: self._is_free(place, member))
        if standing is not None:
            self.place(member, standing)

    def place(self, member: ConsumerMember, standing: Standing) -> None:
        """Let a member stand elsewhere. What it has there is free, or its own."""
        self._take(member)
        self.touched.add(member.id)
        if standing.epoch != member.epoch:
            member.previous_epoch, member.epoch = member.epoch, standing.epoch
        member.state, member.assigned, member.revoking = standing.state, standing.assigned, standing.revoking
        for place in member.assigned | member.revoking:
            self._owners[place] = member

    def begin_anew(self, member: ConsumerMember) -> None:
        """A member says that it has nothing any more."""
        self.place(member, Standing(MemberState.STABLE, 0, frozenset(), frozenset()))
        member.previous_epoch = 0

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether others are still to give up what a member is to have."""
        return not all(self._is_free(place, member) for place in member.target - member.assigned)

    def _is_free(self, place: Place, member: ConsumerMember) -> bool:
        return self._owners.get(place, member) is member

    def _take(self, member: ConsumerMember) -> None:
        for place in member.assigned | member.revoking:
            del self._owners[place]

    # Those of another kind of group, and those of before

    def resume(self, documents: Iterable[Document]) -> None:
        """Go on with members that were there before a restart of the server, as they lasted.

        Where a change could not be kept, an older document may claim what a newer one does: the newer one has it. The
        member of the older one has another epoch by now, and is to join again.
        """
        replaced: set[str] = set()
        for document in sorted(documents, key=_newness, reverse=True):
            if self.static(document["instance_id"]) is not None:
                replaced.add(document["id"])
                continue
            member = self.add(document["id"], document["instance_id"])
            recall(member, document)
            member.assigned = frozenset(place for place in member.assigned if place not in self._owners)
            member.revoking = frozenset(place for place in member.revoking if place not in self._owners)
            member.target = member.assigned
            self._owners |= dict.fromkeys(member.assigned | member.revoking, member)
            self._resubscribed(member, frozenset())
        self.touched = replaced
        self._topics = self._existing()
        # The target is made anew with the first step of a member, when there is who can read patterns.
        self._resuming = True
        self.epoch = max(max(member.epoch, member.previous_epoch) for member in self.members.values())
        self.target_epoch = self.epoch - 1

    def restore(self, epoch: int, adopted: Mapping[ConsumerMember, frozenset[Place]]) -> None:
        """Take over an epoch and what members have had in it."""
        self.epoch = self.target_epoch = epoch
        for member, places in adopted.items():
            free = frozenset(place for place in places if self._is_free(place, member))
            member.epoch = epoch
            member.target = free
            self.place(member, Standing(MemberState.STABLE, epoch, free, frozenset()))


def _newness(document: Document) -> tuple[int, int]:
    """Which of two documents is of a later target; and if of the same, of a member that has not left."""
    return max(document["epoch"], document["previous_epoch"]), document["epoch"]
