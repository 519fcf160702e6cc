"""Consumer groups to which the server assigns (KIP-848).

- `group`: who joins, stays and leaves, and when; `requests`: what members say and are told;
- `roster`: the members, their epochs, what they are to have and what they have;
- `assignment_spec`: what an assignor is given; `uniform`, `ranges`: the assignors;
- `reconciliation`: how a member comes from what it has to what it is to have;
- `classic_members`: members of the classic protocol in such a group;
- `migration`: how a classic group becomes one, and back;
- `memory`: what lasts of members.
"""

from millstream.broker.consumer_groups.group import ConsumerGroup
from millstream.broker.consumer_groups.member import ConsumerMember, MemberState
from millstream.broker.consumer_groups.requests import (
    EMPTY_PATTERN,
    EmbeddedProtocol,
    Heartbeat,
    PatternReader,
    Reply,
    Subscription,
    TopicPattern,
)

__all__ = [
    "EMPTY_PATTERN",
    "ConsumerGroup",
    "ConsumerMember",
    "EmbeddedProtocol",
    "Heartbeat",
    "MemberState",
    "PatternReader",
    "Reply",
    "Subscription",
    "TopicPattern",
]
