"""Subscriptions: cursors, and the rules by which consumers are delivered to."""

from millstream.broker.subscriptions.consumer import Consumer
from millstream.broker.subscriptions.errors import (
    AcknowledgementConflict,
    ConsumerBusy,
    KeyRangesTaken,
    KindMismatch,
    PolicyMismatch,
    SubscriptionError,
    SubscriptionGone,
    SubscriptionInUse,
    SubscriptionNotFound,
)
from millstream.broker.subscriptions.interface import (
    CloseReason,
    ConsumerStats,
    Delivery,
    FrameInspector,
    FrameSource,
    KeySharedPolicy,
    Receiver,
    StartAt,
    Subscribing,
    SubscriptionKind,
    SubscriptionSettings,
    SubscriptionStats,
)
from millstream.broker.subscriptions.subscription import Subscription
from millstream.broker.subscriptions.subscriptions import Subscriptions
from millstream.broker.subscriptions.turns import PartitionBounds

__all__ = [
    "AcknowledgementConflict",
    "CloseReason",
    "Consumer",
    "ConsumerBusy",
    "ConsumerStats",
    "Delivery",
    "FrameInspector",
    "FrameSource",
    "KeyRangesTaken",
    "KeySharedPolicy",
    "KindMismatch",
    "PartitionBounds",
    "PolicyMismatch",
    "Receiver",
    "StartAt",
    "Subscribing",
    "Subscription",
    "SubscriptionError",
    "SubscriptionGone",
    "SubscriptionInUse",
    "SubscriptionKind",
    "SubscriptionNotFound",
    "SubscriptionSettings",
    "SubscriptionStats",
    "Subscriptions",
]
