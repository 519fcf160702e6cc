"""Frames that a read has left in the buffer, and who comes back to them."""

import asyncio

from millstream.model.pending import Pending
from millstream.server.connection import WRITE_BUFFER_HIGH_BYTES
from millstream.sessions.session import Buffer
from tests.unit.server.test_connection import Peer, frame, on_loop


@on_loop
async def test_frames_behind_answers_that_leave_with_the_same_read_are_served() -> None:
    """The bound was reached together with answers that were written at the end of the read."""
    peer = Peer()
    waits: Pending[list[Buffer]] = Pending()
    most = bytes(WRITE_BUFFER_HIGH_BYTES - 100)
    answers = iter([[most], waits, [bytes(1000)], [b"last"]])
    peer.its_session.answer = lambda frame: next(answers)
    peer.send(frame(b"x" * 10) * 4)
    assert len(peer.its_session.frames) == 3
    await asyncio.sleep(0)
    assert len(peer.its_session.frames) == 4
    assert peer.reading()
    waits.resolve([b"now"])
    await asyncio.sleep(0)
    assert bytes(peer.transport.written) == most + b"now" + bytes(1000) + b"last"
