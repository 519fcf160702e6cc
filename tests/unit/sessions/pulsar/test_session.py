"""What one connection is to its session, whatever the command."""

import pytest

from millstream.wire.pulsar.errors import MalformedFrame
from millstream.wire.pulsar.frames import PREFIX_BYTES, encode_command, encode_payload_command
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseProducer,
    CommandPong,
    CommandSend,
    CommandSendReceipt,
    CommandSuccess,
)
from tests.unit.sessions.pulsar.spoken import Client, Conversation, entry


def feed(client: Client, *frames: bytes) -> None:
    """Let one read bring several frames, as far as they are served."""
    try:
        for frame in frames:
            buffer = memoryview(bytearray(frame))
            client.session.measure(buffer)
            client.session.handle(buffer[PREFIX_BYTES:])
    finally:
        client.session.served()


@pytest.mark.parametrize("nonsense", [b"\xff\xff\xff\xff", b"\0\0\0\x08\0\0\0\x04\x08\x06\x32\x00"])
def test_what_came_before_the_nonsense_is_answered(nonsense: bytes) -> None:
    broker = Conversation(durability="os")
    client = broker.client()
    client.produce()
    client.taken()
    send = b"".join(encode_payload_command(CommandSend(producer_id=1, sequence_id=0), [entry(b"one")]))
    close = encode_command(CommandCloseProducer(producer_id=1, request_id=7))
    with pytest.raises(MalformedFrame):
        feed(client, send, close, nonsense)
    # The connection ends before anything else runs.
    assert [type(one) for one in client.taken()] == [CommandSendReceipt, CommandSuccess]


def test_a_command_without_its_body_is_nothing_with_the_number_0() -> None:
    broker = Conversation()
    client = broker.client()
    client.produce(number=0)
    bare = b"\0\0\0\x02\x08\x06" + entry(b"whose?")
    with pytest.raises(MalformedFrame, match="without its body"):
        feed(client, len(bare).to_bytes(4) + bare)
    assert broker.records() == []


def test_a_command_that_needs_nothing_may_come_without_its_body() -> None:
    client = Conversation().client()
    feed(client, b"\0\0\0\x06\0\0\0\x02\x08\x12")
    assert [type(one) for one in client.taken()] == [CommandPong]
