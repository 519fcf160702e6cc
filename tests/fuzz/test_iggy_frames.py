"""Damaged Iggy frames: the only outcomes are an answer in the client's protocol, or a closed connection."""

import contextlib
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model.frame import Magic
from millstream.model.pending import Pending
from millstream.wire.errors import WireError
from millstream.wire.iggy.commands import COMMANDS
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.errors import Undecodable
from millstream.wire.iggy.headers import UserHeader
from millstream.wire.iggy.incoming import Stamp, take
from millstream.wire.iggy.stored import read_frame, seal
from tests.unit.sessions.iggy.conversation import BY_NAME, Conversation, IggyBroker, Outgoing
from tests.unit.wire.iggy.samples import sample

EXAMPLES = 100
HOSTILE = ("ffffffff", "7fffffff", "00000080", "ffffffffffffffff", "00", "01", "ff", "00000000", "05010000")
DIALECTS = list(Dialect)

Edit = tuple[str, float, bytes, float]
places = st.floats(0, 1, exclude_max=True)
fragments = st.one_of(st.sampled_from([bytes.fromhex(text) for text in HOSTILE]), st.binary(min_size=1, max_size=8))
kinds = st.sampled_from(("flip", "cut", "insert", "replace", "drop"))
edits = st.lists(st.tuples(kinds, places, fragments, places), min_size=1, max_size=3)


def damaged(frame: bytes, edit: Edit) -> bytes:
    """Apply one edit; places are parts of the length, so that they mean something in any frame."""
    how, place, fragment, other = edit
    at = int(place * (len(frame) + 1))
    match how:
        case "flip" if at < len(frame):
            return frame[:at] + bytes([frame[at] ^ (1 << int(other * 8))]) + frame[at + 1 :]
        case "cut":
            return frame[:at]
        case "insert":
            return frame[:at] + fragment + frame[at:]
        case "replace":
            return frame[:at] + fragment + frame[at + len(fragment) :]
        case "drop":
            return frame[:at] + frame[at + 1 + int(other * 8) :]
    return frame


def mended(frame: bytes, dialect: Dialect) -> bytes:
    """The same frame with its true length, so that its damage is met behind the framing."""
    if dialect.long_headers:
        return frame[:48] + len(frame).to_bytes(4, "little") + frame[52:] if len(frame) >= 256 else frame
    return (len(frame) - 4).to_bytes(4, "little") + frame[4:] if len(frame) >= 8 else frame


def frames_of(dialect: Dialect) -> list[bytes]:
    """A valid frame of every command that a dialect has, and sends of several messages."""
    rng = Random(f"fuzz {dialect}")
    client = Conversation(IggyBroker(), dialect)
    frames = [
        client.frame(command, sample(command.request, dialect, rng))
        for command in COMMANDS
        if command.in_dialect(dialect)
    ]
    messages = [Outgoing(b"value", bytes(range(16)), (UserHeader(b"k", b"v"),)), Outgoing(b"x" * 50)]
    return [*frames, *[client.frame(BY_NAME["SEND_MESSAGES"], client.sending(messages))] * 10]


FRAMES = {dialect: frames_of(dialect) for dialect in DIALECTS}


def hand_in(client: Conversation, frame: bytes) -> None:
    """Give a connection what it may get from a socket; anything but an answer or its end is an error."""
    buffer = memoryview(bytearray(frame))
    try:
        size = client.session.measure(buffer)
        if not size or size > len(buffer):
            return
        answer = client.session.handle(buffer[:size])
    except Undecodable:
        return
    assert answer is not None
    if isinstance(answer, Pending):
        answer = client.server.wait(answer)
    if not answer:
        assert client.ended
        return
    head = b"".join(answer)
    assert len(head) >= 8
    if not client.dialect.long_headers and not frame.startswith(bytes(4)):
        assert int.from_bytes(head[4:8], "little") == len(head) - 8


@pytest.mark.parametrize("dialect", DIALECTS)
def test_damaged_frames(dialect: Dialect) -> None:
    server = IggyBroker()
    server.connect(dialect).make()

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(frame=st.sampled_from(FRAMES[dialect]), changes=edits, mend=st.booleans(), login=st.booleans())
    def check(frame: bytes, changes: list[Edit], mend: bool, login: bool) -> None:
        client = server.connect(dialect, login=False)
        if login and dialect.has_login:
            client.log_in("iggy", "iggy")
        for edit in changes:
            frame = damaged(frame, edit)
        hand_in(client, mended(frame, dialect) if mend else frame)
        client.session.close()

    check()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_damaged_frames_store_nothing_that_cannot_be_read(dialect: Dialect) -> None:
    server = IggyBroker()
    server.connect(dialect).make()
    messages = [Outgoing(b"value", bytes(range(16)), (UserHeader(b"k", b"v"),)), Outgoing(b"x" * 50)]
    sender = server.connect(dialect)
    frame = sender.frame(BY_NAME["SEND_MESSAGES"], sender.sending(messages))

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(changes=edits)
    def check(changes: list[Edit]) -> None:
        spoilt = frame
        for edit in changes:
            spoilt = damaged(spoilt, edit)
        hand_in(sender, mended(spoilt, dialect))

    check()
    reader = server.connect(dialect)
    if "s1.t1" not in {topic.name.flat for topic in server.broker.topics}:
        return
    _, polled = reader.poll(count=10_000)
    log = server.topic("s1.t1").partitions[0].log
    assert [one["offset"] for one in polled] == list(range(log.end_offset))


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=EXAMPLES, deadline=None)
@given(changes=edits)
def test_damaged_stored_batches(dialect: Dialect, changes: list[Edit]) -> None:
    client = Conversation(SERVER, dialect)
    sent = client.sending([Outgoing(b"value", bytes(range(16)), (UserHeader(b"k", b"v"),)), Outgoing(b"x" * 50)])
    incoming = take(sent, dialect, Stamp(0, 0, 1), bytes)
    frame = bytes(seal(incoming.messages, incoming, 1)[0])
    assert frame[16] == Magic.IGGY_BATCH
    body = frame[61:]
    for edit in changes:
        body = damaged(body, edit)
    with contextlib.suppress(WireError):
        read_frame(memoryview(frame[:61] + body))


SERVER = IggyBroker()
