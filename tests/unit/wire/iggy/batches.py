"""Requests to send messages, in the layout of each dialect."""

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import UserHeader
from millstream.wire.iggy.incoming import Incoming, Stamp, take
from millstream.wire.iggy.kinds import Partitioning
from millstream.wire.iggy.messages.batches import SendMessages
from tests.unit.sessions.iggy.conversation import Outgoing, laid_out

__all__ = ["STAMP", "Outgoing", "UserHeader", "request", "taken"]

STAMP = Stamp(2, 100, 1_700_000_000_000_000)


def request(dialect: Dialect, *messages: Outgoing) -> SendMessages:
    """A request whose messages are writable."""
    return SendMessages(
        stream=0,
        topic=0,
        partitioning=Partitioning(2),
        count=len(messages),
        messages=memoryview(laid_out(dialect, list(messages))),
    )


def taken(dialect: Dialect, *messages: Outgoing) -> Incoming:
    """Messages as they are checked and stamped."""
    return take(request(dialect, *messages), dialect, STAMP, lambda count: b"\x77" * count)
