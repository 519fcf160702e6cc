"""Errors of subscriptions.

BrokerError
└── SubscriptionError
    ├── AcknowledgementConflict  a transaction cannot acknowledge what is acknowledged, or is by another
    ├── ConsumerBusy           an exclusive subscription has its consumer
    ├── KindMismatch           consumers of another kind are connected
    ├── KeyRangesTaken         sticky key ranges that are empty, out of bounds or overlap
    ├── PolicyMismatch         another Key_Shared policy than that of the connected consumers
    ├── SubscriptionNotFound   there is none, and none may be made
    ├── SubscriptionInUse      consumers are connected that stand in the way
    └── SubscriptionGone       it was ended, or its topic was, while somebody waited for it
"""

from typing import TYPE_CHECKING

from millstream.broker.errors import BrokerError

if TYPE_CHECKING:
    from millstream.broker.subscriptions.consumer import Consumer

__all__ = [
    "AcknowledgementConflict",
    "ConsumerBusy",
    "KeyRangesTaken",
    "KindMismatch",
    "PolicyMismatch",
    "SubscriptionError",
    "SubscriptionGone",
    "SubscriptionInUse",
    "SubscriptionNotFound",
]


class SubscriptionError(BrokerError):
    """A subscription cannot be had, or changed, as asked."""


class AcknowledgementConflict(SubscriptionError):
    """A transaction cannot acknowledge what is acknowledged already, or in another transaction."""


class ConsumerBusy(SubscriptionError):
    """An exclusive subscription has its consumer, `holder`; a session may check that it lives, and try again."""

    def __init__(self, message: str, holder: "Consumer") -> None:
        super().__init__(message)
        self.holder = holder


class KindMismatch(SubscriptionError):
    """Consumers are connected for which the subscription is of another kind."""


class KeyRangesTaken(SubscriptionError):
    """Sticky key ranges that are none, lie outside the hashes there are, or overlap with another consumer's."""


class PolicyMismatch(SubscriptionError):
    """A Key_Shared policy other than that of the consumers connected."""


class SubscriptionNotFound(SubscriptionError):
    """There is no such subscription, and it may not be made."""


class SubscriptionInUse(SubscriptionError):
    """Other consumers are connected, or the name belongs to a durable subscription."""


class SubscriptionGone(SubscriptionError):
    """The subscription or its topic was ended in the meantime."""
