"""Errors of the broker: requests that the rules of the log forbid.

    BrokerError
    ├── TopicError
    │   ├── UnknownTopic
    │   ├── TopicExists
    │   ├── InvalidTopicName
    │   └── InvalidPartitionCount
    ├── InvalidConfig            an unknown key or a bad value, by name
    ├── AppendRefused
    │   ├── BatchTooLarge
    │   ├── InvalidTimestamp
    │   ├── NotEnoughReplicas
    │   └── TopicTerminated
    ├── ProducerError
    │   ├── ProducerBusy         its name is in use, or an exclusive producer is there
    │   ├── ProducersHeld        until a backlog is back under its quota
    │   ├── ProducersRefused     the same, and they are to give up
    │   └── ProducerFenced       it may not write here (any more)
    ├── InvalidGroupId
    └── GroupError
        ├── UnknownMember
        ├── MemberIdRequired     the answer carries the id to come back with
        ├── FencedInstance
        ├── UnreleasedInstance   a static member is still there
        ├── IllegalGeneration
        ├── FencedEpoch          the member is to give up everything and join again
        ├── StaleEpoch           the member has a newer epoch by now
        ├── UnsupportedAssignor
        ├── RebalanceInProgress
        ├── InconsistentProtocol
        ├── InvalidSessionTimeout
        ├── GroupFull
        ├── GroupNotEmpty
        ├── GroupNotFound
        ├── GroupHeld            clients of another protocol are reading under its name
        ├── GroupsClosed         the server stops
        ├── SubscribedToTopic
        └── NoteTooLarge

Sessions map each to their protocol's code in one table.
"""

from millstream.model.errors import MillstreamError

__all__ = [
    "AppendRefused",
    "BatchTooLarge",
    "BrokerError",
    "FencedEpoch",
    "FencedInstance",
    "GroupError",
    "GroupFull",
    "GroupHeld",
    "GroupNotEmpty",
    "GroupNotFound",
    "GroupsClosed",
    "IllegalGeneration",
    "InconsistentProtocol",
    "InvalidConfig",
    "InvalidGroupId",
    "InvalidPartitionCount",
    "InvalidSessionTimeout",
    "InvalidTimestamp",
    "InvalidTopicName",
    "MemberIdRequired",
    "NotEnoughReplicas",
    "NoteTooLarge",
    "ProducerBusy",
    "ProducerError",
    "ProducerFenced",
    "ProducersHeld",
    "ProducersRefused",
    "RebalanceInProgress",
    "StaleEpoch",
    "SubscribedToTopic",
    "TopicError",
    "TopicExists",
    "TopicTerminated",
    "UnknownMember",
    "UnknownTopic",
    "UnreleasedInstance",
    "UnsupportedAssignor",
]


class BrokerError(MillstreamError):
    """Base of the errors of this package."""


class TopicError(BrokerError):
    """A topic cannot be had as asked."""


class UnknownTopic(TopicError):
    """There is no such topic or partition."""


class TopicExists(TopicError):
    """There is a topic of this name already, in this protocol or, under that protocol's rules, in another."""


class InvalidTopicName(TopicError):
    """A name that a topic cannot have."""


class InvalidPartitionCount(TopicError):
    """A number of partitions that a topic cannot have, or fewer than it has."""


class InvalidConfig(BrokerError):
    """An unknown key, or a value that the key does not take."""


class AppendRefused(BrokerError):
    """A batch that the topic's settings do not allow."""


class BatchTooLarge(AppendRefused):
    """A batch larger than `max.message.bytes`."""


class InvalidTimestamp(AppendRefused):
    """A timestamp too far from the server's time, or of a type that the topic does not take."""


class NotEnoughReplicas(AppendRefused):
    """`min.insync.replicas` asks for more replicas than the one there is."""


class TopicTerminated(AppendRefused):
    """The partition was terminated: nothing is appended to it ever again."""


class InvalidGroupId(BrokerError):
    """A name that a group cannot have."""


class GroupError(BrokerError):
    """A group does not let a member, or a request about it, do what it asks."""


class UnknownMember(GroupError):
    """The group has no such member; it is to join again."""


class MemberIdRequired(GroupError):
    """A member without an id got one, `member_id`, to join with."""

    def __init__(self, member_id: str) -> None:
        super().__init__(f"join again as {member_id}")
        self.member_id = member_id


class FencedInstance(GroupError):
    """Another member has taken over the static instance id."""


class IllegalGeneration(GroupError):
    """The member speaks of a generation that is over."""


class UnreleasedInstance(GroupError):
    """The static instance id is that of another member, which has not left."""


class FencedEpoch(GroupError):
    """The member speaks of an epoch that it cannot have: it is to give up its partitions and to join again."""


class StaleEpoch(GroupError):
    """The member speaks of an epoch that is over, or is not its own."""


class UnsupportedAssignor(GroupError):
    """An assignor that this server does not have."""


class RebalanceInProgress(GroupError):
    """The group is gathering its members again; this one is to join."""


class InconsistentProtocol(GroupError):
    """The member has no assignment protocol in common with the others, or is of another kind."""


class InvalidSessionTimeout(GroupError):
    """A session timeout outside the bounds of the server."""


class GroupFull(GroupError):
    """The group has as many members as it may have."""


class GroupNotEmpty(GroupError):
    """A group with members cannot be deleted."""


class GroupNotFound(GroupError):
    """There is no such group."""


class GroupHeld(GroupError):
    """Clients of another protocol are reading under this name."""


class GroupsClosed(GroupError):
    """The server stops, and does nothing for groups any more."""


class SubscribedToTopic(GroupError):
    """Offsets of a topic that the group's members subscribe to cannot be deleted."""


class NoteTooLarge(GroupError):
    """The text committed with an offset is longer than `offset.metadata.max.bytes`."""


class ProducerError(BrokerError):
    """A producer may not write beside others."""


class ProducerBusy(ProducerError):
    """A producer's name is in use, or an exclusive producer is there."""


class ProducerFenced(ProducerError):
    """A producer may not write here, or not any more: others are there, or came since."""


class ProducersHeld(ProducerError):
    """A subscription is further behind than its quota; producers are to wait until it is not."""


class ProducersRefused(ProducerError):
    """A subscription is further behind than its quota; producers are to give up."""
