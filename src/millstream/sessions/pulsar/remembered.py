"""What the sessions remember of a subscription, for as long as the subscription is in memory.

An entry that clients get is a whole frame of the log, but for two cases: a frame of another protocol that is too
large for one entry comes as several, and a batch whose first messages are acknowledged already may come as an entry
of the others. Acknowledgements of such entries are those of parts of a frame.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from millstream.broker.subscriptions import Subscription

__all__ = ["Acknowledgement", "Memories", "Part", "Remembered"]

_PARTS_MAX: Final = 10_000
"""Parts of frames that are remembered for a subscription, about 200 bytes each; of the oldest, which have been there
for long without being acknowledged, an acknowledgement is passed over, so that they come again."""

Acknowledgement = tuple[int, int | None]
"""Base offset of a frame, and what of it is still wanted: bit n for record n, None for nothing."""


class Part(NamedTuple):
    """An entry that is a part of a frame.

    Args:
        base_offset: of the frame.
        start: its first record in the frame.
        message_count: its records.
        frame_count: records of the frame.
    """

    base_offset: int
    start: int
    message_count: int
    frame_count: int

    def acknowledged(self, wanted: int | None) -> Acknowledgement:
        """What acknowledging the part means for the frame.

        Args:
            wanted: the records of the part that are still wanted, bit n for its record n; None for none.
        """
        others = (1 << self.frame_count) - 1 ^ ((1 << self.message_count) - 1) << self.start
        return self.base_offset, others | ((wanted or 0) & (1 << self.message_count) - 1) << self.start

    def acknowledged_up_to(self, wanted: int | None) -> Acknowledgement:
        """What acknowledging everything up to the part means for the frame; as `acknowledged`."""
        end = self.start + self.message_count
        behind = ((1 << self.frame_count - end) - 1) << end
        return self.base_offset, (behind | ((wanted or 0) & (1 << self.message_count) - 1) << self.start) or None


@dataclass(slots=True)
class Remembered:
    """What is remembered of one subscription.

    Args:
        acknowledges_messages: whether a client has acknowledged single messages of a batch. Such a client keeps
            account of messages; others are done with a batch only when they have seen all of it.
        sought: the offset that a client has moved the subscription to, by an id that it will compare others to.
    """

    acknowledges_messages: bool = False
    sought: int | None = None
    _parts: dict[int, Part] = field(default_factory=dict)

    def deliver_part(self, entry_id: int, part: Part) -> None:
        """An entry goes to a client that is a part of a frame."""
        self._parts.pop(entry_id, None)
        self._parts[entry_id] = part
        if len(self._parts) > _PARTS_MAX:
            del self._parts[next(iter(self._parts))]

    def part(self, entry_id: int) -> Part | None:
        """The part that an entry is; None if it is a whole frame."""
        return self._parts.get(entry_id) if self._parts else None

    def forget_part(self, entry_id: int) -> None:
        """An entry is acknowledged, or comes as a whole frame."""
        if self._parts:
            self._parts.pop(entry_id, None)


class Memories:
    """What is remembered of all subscriptions."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Subscription, Remembered] = WeakKeyDictionary()

    def of(self, subscription: Subscription) -> Remembered:
        """What is remembered of a subscription."""
        remembered = self._of.get(subscription)
        if remembered is None:
            remembered = self._of[subscription] = Remembered()
        return remembered
