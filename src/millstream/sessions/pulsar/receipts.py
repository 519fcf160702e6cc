"""The answers to SEND that one connection is due, in the order of the messages."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.pulsar.error_table import Refusal

if TYPE_CHECKING:
    from millstream.sessions.pulsar.link import Link

__all__ = ["Receipts"]

_WAITING_MAX: Final = 1000
"""Messages of one connection that wait for the disk, at which no more are taken, as Apache Pulsar has it."""


class Receipts:
    """What one connection is due.

    Args:
        link: the connection.
    """

    def __init__(self, link: "Link") -> None:
        self._link = link
        self._due: deque[tuple[Pending[None] | None, Callable[[], bytes], Callable[[Refusal], bytes], int]] = deque()
        self._waiting = 0
        self._flush_due = False
        self._holding = False

    def add(
        self,
        durable: Pending[None] | None,
        receipt: Callable[[], bytes],
        refusal: Callable[[Refusal], bytes],
        *,
        count: int = 1,
    ) -> None:
        """Add one, or those of several messages.

        Args:
            durable: what it waits for; None for nothing.
            receipt: makes it.
            refusal: makes what is sent instead if that failed.
            count: of the messages that it is for.
        """
        self._due.append((durable, receipt, refusal, count))
        self._waiting += count
        if durable is not None and not durable.done:
            # One callback for all that wait for the same flush: whoever is first sends them all.
            if len(self._due) == 1 or self._due[-2][0] is not durable:
                durable.when_done(self._settled)
            if self._waiting >= _WAITING_MAX and not self._holding:
                self._holding = True
                self._link.peer.hold()
        else:
            self._settled(None)

    def _settled(self, _: object) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._link.broker.runtime.call_soon(self._flush)

    def _flush(self) -> None:
        """Do what is due, if `send_ready` has not done so."""
        if self._flush_due:
            self.send_ready()

    def send_ready(self) -> None:
        """Send those at the head that wait for nothing any more, in one write."""
        self._flush_due = False
        out: list[bytes] = []
        due = self._due
        while due and (due[0][0] is None or due[0][0].done):
            durable, receipt, refusal, count = due.popleft()
            self._waiting -= count
            try:
                if durable is not None:
                    durable.result()
                out.append(receipt())
            except MillstreamError as error:
                out.append(refusal(error))
        if out:
            self._link.write([b"".join(out)])
        if self._holding and self._waiting < _WAITING_MAX // 2:
            self._holding = False
            self._link.peer.release()
