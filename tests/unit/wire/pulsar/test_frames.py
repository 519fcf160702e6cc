import pytest
from google.protobuf.message import EncodeError

from millstream.wire.pulsar.errors import FrameTooLarge, MalformedFrame
from millstream.wire.pulsar.frames import (
    command_body,
    command_name,
    encode_command,
    encode_payload_command,
    measure_frame,
    read_frame,
    varint,
)
from millstream.wire.pulsar.limits import COMMAND_BYTES_MAX, FRAME_BYTES_MAX
from millstream.wire.pulsar.pulsar_pb2 import (
    BaseCommand,
    CommandAck,
    CommandMessage,
    CommandPing,
    CommandProducer,
    CommandSuccess,
    MessageIdData,
    MessageMetadata,
)

MESSAGE = CommandMessage(consumer_id=1, message_id=MessageIdData(ledgerId=2, entryId=3))
FRAMES = {
    "no content": encode_command(CommandPing()),
    "simple": encode_command(CommandSuccess(request_id=300)),
    "with an entry": b"".join(encode_payload_command(MESSAGE, [b"entry", b" of two parts"])),
}


def framed(command: bytes, behind: bytes = b"") -> memoryview:
    return memoryview(len(command).to_bytes(4, "big") + command + behind)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=list(FRAMES))
def test_a_frame_is_measured_byte_by_byte(frame: bytes) -> None:
    for length in range(len(frame)):
        measured = measure_frame(memoryview(frame[:length]))
        assert measured == (0 if length < 4 else len(frame))
    assert measure_frame(memoryview(frame + FRAMES["simple"])) == len(frame)


def test_a_frame_is_refused_by_its_size_alone() -> None:
    assert measure_frame(memoryview(FRAME_BYTES_MAX.to_bytes(4, "big"))) == FRAME_BYTES_MAX + 4
    with pytest.raises(FrameTooLarge):
        measure_frame(memoryview((FRAME_BYTES_MAX + 1).to_bytes(4, "big")))


def test_a_simple_command() -> None:
    command, payload = read_frame(memoryview(FRAMES["simple"])[4:])
    assert command == BaseCommand(type=BaseCommand.SUCCESS, success=CommandSuccess(request_id=300))
    assert command_body(command) == CommandSuccess(request_id=300)
    assert payload is None


def test_a_payload_command() -> None:
    command, payload = read_frame(memoryview(FRAMES["with an entry"])[4:])
    assert command_body(command) == MESSAGE
    assert payload is not None
    assert bytes(payload) == b"entry of two parts"


def test_encoding_gives_the_bytes_of_protobuf() -> None:
    ids = [MessageIdData(ledgerId=2**63, entryId=n, ack_set=[-1, n]) for n in range(200)]
    for body in (
        CommandPing(),
        CommandSuccess(request_id=2**64 - 1),
        CommandAck(consumer_id=0, ack_type=CommandAck.Individual, message_id=ids),
    ):
        command = BaseCommand()
        field = next(field for field in BaseCommand.DESCRIPTOR.fields if field.message_type == body.DESCRIPTOR)
        command.type = field.number
        getattr(command, field.name).MergeFrom(body)
        assert encode_command(body)[8:] == command.SerializeToString()


def test_what_is_cut_short_is_refused() -> None:
    frame = FRAMES["simple"][4:]
    for length in range(len(frame)):
        with pytest.raises(MalformedFrame):
            read_frame(memoryview(frame[:length]))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (b"", "type"),
        (b"\x08\x05\x2a\x00", "PRODUCER command .*producer.topic"),
        (b"\x08", "cannot be decoded"),
        (b"\x08\x05\x2a\x02\x0a\x09", "cannot be decoded"),
    ],
    ids=["empty", "a required field is missing", "a cut varint", "a length beyond the end"],
)
def test_malformed_commands(command: bytes, reason: str) -> None:
    with pytest.raises(MalformedFrame, match=reason):
        read_frame(framed(command))


def test_text_that_is_not_utf8_is_refused() -> None:
    body = CommandProducer(topic="topic", producer_id=1, request_id=1)
    with pytest.raises(MalformedFrame, match="UTF-8"):
        read_frame(memoryview(encode_command(body).replace(b"topic", b"t\xffpic"))[4:])


def test_nesting_without_end_is_refused() -> None:
    inner = b"\x08\x01\x10\x01"
    for _ in range(200):
        inner = b"\x08\x01\x10\x01\x3a" + varint(len(inner)) + inner
    body = b"\x08\x01\x10\x00\x1a" + varint(len(inner)) + inner
    with pytest.raises(MalformedFrame):
        read_frame(framed(b"\x08\x0a\x52" + varint(len(body)) + body))


def test_a_command_without_its_body() -> None:
    command = read_frame(framed(b"\x08\x05")).command
    with pytest.raises(MalformedFrame, match="PRODUCER command without its body"):
        command_body(command)


def test_a_command_longer_than_any() -> None:
    with pytest.raises(MalformedFrame):
        read_frame(framed(bytes(COMMAND_BYTES_MAX + 1)))


def test_a_command_of_an_unknown_type_is_seen_as_such() -> None:
    command = read_frame(framed(bytes.fromhex("0846b204020801"))).command
    assert command.type == 70
    assert command_name(command.type) == "unknown (70)"
    assert command_body(command) is None


def test_every_type_names_the_field_of_its_number() -> None:
    numbers = {field.number for field in BaseCommand.DESCRIPTOR.fields if field.message_type}
    assert numbers == set(BaseCommand.Type.values())
    assert [command_name(number) for number in (2, 68)] == ["CONNECT", "TOPIC_MIGRATED"]


def test_our_own_mistakes_are_loud() -> None:
    with pytest.raises(EncodeError):
        encode_command(CommandSuccess())
    with pytest.raises(KeyError):
        encode_command(MessageMetadata(producer_name="", sequence_id=0, publish_time=0))
