"""Frames: a command, and for SEND and MESSAGE an entry behind it.

    total size: uint32, of all that follows    command size: uint32    command: BaseCommand    entry: the rest, if any

All sizes are big-endian.

Source: Pulsar binary protocol specification 3.0, "Framing".
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError, EncodeError, Message

from millstream.wire.pulsar.errors import FrameTooLarge, MalformedFrame
from millstream.wire.pulsar.limits import COMMAND_BYTES_MAX, FRAME_BYTES_MAX
from millstream.wire.pulsar.pulsar_pb2 import BaseCommand

__all__ = [
    "PREFIX_BYTES",
    "Buffer",
    "Frame",
    "command_body",
    "command_name",
    "encode_command",
    "encode_payload_command",
    "measure_frame",
    "missing_fields",
    "read_frame",
    "varint",
]

Buffer = bytes | bytearray | memoryview
PREFIX_BYTES: Final = 4
"""Bytes of a frame's total size."""

_SIZE: Final = struct.Struct(">I")
_SIZES: Final = struct.Struct(">II")
_ONE_BYTE_VARINTS: Final = 128


class Frame(NamedTuple):
    """One frame.

    Args:
        command: its `type` is a plain number, which may be that of a command this module does not know.
        payload: the entry behind the command, a view of the frame; None if nothing stands there.
    """

    command: BaseCommand
    payload: memoryview | None


def measure_frame(buffer: memoryview) -> int:
    """Tell where the frame at the start of a buffer ends.

    Returns:
        Its bytes with the total size itself, whether they have arrived or not; 0 while that cannot be told.

    Raises:
        FrameTooLarge: it would be longer than FRAME_BYTES_MAX.
    """
    if len(buffer) < PREFIX_BYTES:
        return 0
    size: int = _SIZE.unpack_from(buffer)[0]
    if size > FRAME_BYTES_MAX:
        raise FrameTooLarge(f"a frame says it has {size} bytes, and {FRAME_BYTES_MAX} are allowed")
    return PREFIX_BYTES + size


def read_frame(frame: memoryview) -> Frame:
    """Decode one frame.

    Args:
        frame: all of it behind the total size.

    Raises:
        MalformedFrame: it is too short, or its command is no protobuf message, lacks a required field, or holds text
            that is not UTF-8. A command of an unknown type is none of these.
    """
    room = len(frame) - 4
    if room < 0:
        raise MalformedFrame("a frame ends before its command's size")
    size: int = _SIZE.unpack_from(frame)[0]
    if size > room or size > COMMAND_BYTES_MAX:
        raise MalformedFrame(f"a command of {size} bytes, where {min(room, COMMAND_BYTES_MAX)} are allowed")
    try:
        command = BaseCommand.FromString(bytes(frame[4 : 4 + size]))
    except DecodeError as error:
        raise MalformedFrame(f"a command cannot be decoded: {error}") from None
    if not command.IsInitialized():
        raise MalformedFrame(f"a {command_name(command.type)} command {missing_fields(command)}")
    return Frame(command, frame[4 + size :] if size < room else None)


_NAME_OF_TYPE: Final[dict[int, str]] = {number: name for name, number in BaseCommand.Type.items()}
_BODIES: Final = [field for field in BaseCommand.DESCRIPTOR.fields if field.message_type]
_FIELD_OF_TYPE: Final[dict[int, str]] = {field.number: field.name for field in _BODIES}
_TYPE_OF_BODY: Final[dict[object, int]] = {field.message_type: field.number for field in _BODIES}


def command_name(number: int) -> str:
    """The specification's name of a command type, fit for logs; an unknown one is called by its number."""
    return _NAME_OF_TYPE.get(number) or f"unknown ({number})"


def command_body(command: BaseCommand) -> Message | None:
    """The message inside a command that its type names.

    Returns:
        The message; None if the type is unknown.

    Raises:
        MalformedFrame: the command does not hold it.
    """
    field = _FIELD_OF_TYPE.get(command.type)
    if field is None:
        return None
    if not command.HasField(field):
        raise MalformedFrame(f"a {command_name(command.type)} command without its body")
    body: Message = getattr(command, field)
    return body


def encode_command(body: Message) -> bytes:
    """Build the frame of a command without an entry.

    Args:
        body: the message inside the command, such as a `CommandSuccess`; its class decides the type.

    Raises:
        google.protobuf.message.EncodeError: a required field is not set.
    """
    command = _command(body)
    return _SIZES.pack(4 + len(command), len(command)) + command


def encode_payload_command(body: Message, payload: Sequence[Buffer]) -> list[Buffer]:
    """Build the frame of a command with an entry behind it.

    Args:
        body: the message inside the command.
        payload: the parts of the entry, which are not copied.

    Returns:
        Buffers to write one after the other.
    """
    command = _command(body)
    entry_bytes = sum(len(part) for part in payload)
    return [_SIZES.pack(4 + len(command) + entry_bytes, len(command)) + command, *payload]


def _command(body: Message) -> bytes:
    """A BaseCommand around a message, written without making one: `type`, and the field of that number."""
    number = _TYPE_OF_BODY[body.DESCRIPTOR]
    content = body.SerializeToString()
    return b"\x08" + varint(number) + varint(number << 3 | 2) + varint(len(content)) + content


def missing_fields(message: Message) -> str:
    """Say which required fields a message lacks, as protobuf does when such a message is to be encoded."""
    try:
        message.SerializeToString()
    except EncodeError as error:
        return str(error)[-200:]
    return "lacks nothing"


def varint(value: int) -> bytes:
    """A protobuf varint of a number from 0 on."""
    if value < _ONE_BYTE_VARINTS:
        return bytes((value,))
    out = bytearray()
    while value >= _ONE_BYTE_VARINTS:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
