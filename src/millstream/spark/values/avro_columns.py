"""Avro values of a whole batch, decoded column by column with NumPy: no Python object for a value or a field.

Records have no marks between them: where a field begins is known when the one before it was read. So the first field
of all records is read together, then the second of all, and so on; what each reads moves the positions of all. The
field of a union that is null in a record is read there too, and counts for nothing.

What is read so is records, nested ones too, of booleans, numbers, strings, bytes, fixed, enums and unions of one of
them with null: anything else has no `Columns`. A record that is damaged is only marked; what is wrong with it is
found out by decoding it alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Columns", "Unreadable", "columns_of"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_VARINT_BYTES_MAX: Final = 10
_PADDING: Final = bytes(16)
"""Behind the last value, so that reading what is not there is no special case. No varint or number is longer."""
_INT32: Final = np.iinfo(np.int32)
_NUMBERS: Final = {"float": (4, "<f4"), "double": (8, "<f8")}


class Unreadable(Exception):
    """A schema has a type that is not read column by column."""


class _Cursor:
    """Where the next field of each value begins.

    Args:
        data: the bytes of all values, one after the other.
        positions, ends: where each begins and ends, in order.
    """

    def __init__(self, data: bytes, positions: Ints, ends: Ints) -> None:
        self.data = data + _PADDING
        self.buffer: Bytes = np.frombuffer(self.data, dtype=np.uint8)
        self.positions = positions
        self.ends = ends
        self.is_damaged: Flags = np.zeros(len(positions), dtype=np.bool_)

    def damage(self, rows: Flags, active: Flags) -> None:
        """Mark values."""
        self.is_damaged |= rows & active

    def move(self, positions: Ints, active: Flags) -> None:
        """Go on to new positions, which are behind the end of none but damaged values."""
        self.damage(positions > self.ends, active)
        self.positions = np.where(active, np.minimum(positions, self.ends), self.positions)

    def varints(self, active: Flags) -> Ints:
        """Read a zigzag varint of each value."""
        first = self.buffer[self.positions]
        raw = (first & 0x7F).astype(np.uint64)
        after = self.positions + 1
        more = np.flatnonzero(first >= 0x80)
        for place in range(1, _VARINT_BYTES_MAX):
            if not more.size:
                break
            byte = self.buffer[np.minimum(after[more], len(self.data) - 1)]
            raw[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * place)
            after[more] += 1
            more = more[byte >= 0x80]
        if more.size:
            too_long = np.zeros(len(raw), dtype=np.bool_)
            too_long[more] = True
            self.damage(too_long, active)
        self.move(after, active)
        values: Ints = (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)
        return values

    def spans(self, lengths: Ints, active: Flags) -> tuple[Ints, Ints]:
        """Take so many bytes of each value; returns where they begin and end."""
        # The length is compared, not the end: an impossible length could overflow.
        is_wrong = (lengths < 0) | (lengths > self.ends - self.positions)
        self.damage(is_wrong, active)
        begins = self.positions
        self.positions = begins + np.where(active & ~is_wrong, lengths, 0)
        return begins, self.positions

    def fixed(self, size: int, active: Flags) -> Bytes:
        """Take `size` bytes of each value, at most 8, as rows."""
        taken: Bytes = self.buffer[self.positions[:, None] + np.arange(size)]
        self.move(self.positions + size, active)
        return taken


Read = Callable[[_Cursor, Flags], Any]
"""Reads one field of all values that are active, and makes an Arrow array of it, null where they are not."""


class Columns(NamedTuple):
    """Reads values of one schema.

    Args:
        read: of its root.
    """

    read: Read

    def decode(self, values: Any, skip: int) -> tuple[Any, Flags]:
        """Decode values.

        Args:
            values: a binary array.
            skip: bytes at the beginning of each that are not Avro.

        Returns:
            An array of the stored type, and which values it is wrong about: they are damaged.
        """
        count = len(values)
        is_there: Flags = values.is_valid().to_numpy(zero_copy_only=False)
        _, offsets, data = values.buffers()
        places = np.frombuffer(offsets, dtype=np.int32)[values.offset : values.offset + count + 1].astype(np.int64)
        first, last = int(places[0]), int(places[-1])
        content = b"" if data is None else data.slice(first, last - first).to_pybytes()
        places -= first
        cursor = _Cursor(content, places[:-1], places[1:])
        if skip:
            cursor.damage(cursor.ends - cursor.positions < skip, is_there)
            cursor.positions = np.minimum(cursor.positions + skip, cursor.ends)
        array = self.read(cursor, is_there)
        cursor.damage(cursor.positions != cursor.ends, is_there)
        return array, cursor.is_damaged


def columns_of(schema: Any, names: Mapping[str, Any], stored: Any) -> Columns:
    """Plan how values of a schema are read.

    Args:
        schema, names: of the writer, as fastavro.parse_schema gives them, without types that contain themselves.
        stored: the Arrow type wanted, with a part of the fields of each record, in any order.

    Raises:
        Unreadable: it has other types than those named above.
    """
    return Columns(_reader(schema, names, stored))


def _reader(schema: Any, names: Mapping[str, Any], stored: Any) -> Read:
    """What reads a type; what nobody wants (`stored` is None) is passed over."""
    if isinstance(schema, list):
        return _optional(schema, names, stored)
    kind = schema if isinstance(schema, str) else schema["type"]
    if isinstance(kind, dict | list):
        return _reader(kind, names, stored)
    if kind in names:
        return _reader(names[kind], names, stored)
    match kind:
        case "record" | "error":
            return _record(schema, names, stored)
        case "boolean":
            return _booleans
        case "int" | "long":
            return _integers(stored, is_int=kind == "int")
        case "float" | "double":
            return _numbers(*_NUMBERS[kind])
        case "string":
            return _texts
        case "bytes" if stored is None or stored == pa.binary():
            return _binaries
        case "fixed" if stored is None or stored == pa.binary():
            return _fixed(schema["size"])
        case "enum":
            return _enum(schema["symbols"])
    raise Unreadable(str(kind))


def _record(schema: Any, names: Mapping[str, Any], stored: Any) -> Read:
    wanted = {} if stored is None else {field.name: field.type for field in stored}
    fields = [(one["name"], _reader(one["type"], names, wanted.get(one["name"]))) for one in schema["fields"]]
    order = [] if stored is None else [field.name for field in stored]
    if len(wanted) < len(order):
        raise Unreadable("a field that is wanted twice, under two names of the reader's")

    def read(cursor: _Cursor, active: Flags) -> Any:
        arrays = {name: reader(cursor, active) for name, reader in fields}
        if stored is None:
            return None
        if not order:
            return pa.array([{}] * len(active), stored)
        return pa.StructArray.from_arrays(
            [arrays[name] for name in order], fields=list(stored), mask=pa.array(~active)
        )

    return read


def _optional(branches: list[Any], names: Mapping[str, Any], stored: Any) -> Read:
    if len(branches) != 2 or "null" not in branches:
        raise Unreadable("a union")
    there = 1 - branches.index("null")
    inner = _reader(branches[there], names, stored)

    def read(cursor: _Cursor, active: Flags) -> Any:
        chosen = cursor.varints(active)
        cursor.damage((chosen < 0) | (chosen > 1), active)
        return inner(cursor, active & (chosen == there))

    return read


def _booleans(cursor: _Cursor, active: Flags) -> Any:
    taken = cursor.fixed(1, active)[:, 0]
    cursor.damage(taken > 1, active)
    return pa.array(taken != 0, pa.bool_(), mask=~active)


def _integers(stored: Any, *, is_int: bool) -> Read:
    kind = np.int32 if is_int else np.int64

    def read(cursor: _Cursor, active: Flags) -> Any:
        values = cursor.varints(active)
        if is_int:
            cursor.damage((values < _INT32.min) | (values > _INT32.max), active)
        if stored is None:
            return None
        # Times are stored as the numbers they are made of.
        return pa.array(values.astype(kind), mask=~active).view(stored)

    return read


def _numbers(size: int, form: str) -> Read:
    def read(cursor: _Cursor, active: Flags) -> Any:
        return pa.array(cursor.fixed(size, active).view(form)[:, 0], mask=~active)

    return read


def _binaries(cursor: _Cursor, active: Flags) -> Any:
    begins, ends = cursor.spans(cursor.varints(active), active)
    return _binary(cursor.data, begins, ends, active)


def _fixed(size: int) -> Read:
    def read(cursor: _Cursor, active: Flags) -> Any:
        begins, ends = cursor.spans(np.full(len(active), size, dtype=np.int64), active)
        return _binary(cursor.data, begins, ends, active)

    return read


def _texts(cursor: _Cursor, active: Flags) -> Any:
    begins, ends = cursor.spans(cursor.varints(active), active)
    array = _binary(cursor.data, begins, ends, active)
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        is_text = np.array([_is_text(item) for item in array.to_pylist()], dtype=np.bool_)
    cursor.damage(~is_text, active)
    return _binary(cursor.data, begins, np.where(is_text, ends, begins), active).cast(pa.string())


def _is_text(data: bytes | None) -> bool:
    try:
        (data or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _enum(symbols: list[str]) -> Read:
    def read(cursor: _Cursor, active: Flags) -> Any:
        index = cursor.varints(active)
        is_wrong = (index < 0) | (index >= len(symbols))
        cursor.damage(is_wrong, active)
        indices = pa.array(np.where(is_wrong, 0, index), mask=~active)
        return pa.array(symbols, pa.string()).take(indices)

    return read


def _binary(data: bytes, begins: Ints, ends: Ints, active: Flags) -> Any:
    """Stretches of some bytes, in order and without overlap, as a binary array.

    An array is laid over the bytes whose elements are a stretch, what stands behind it, the next stretch, ... in
    turn; Arrow's own `take` copies every second of them together.
    """
    count = len(begins)
    offsets = np.empty(2 * count, dtype=np.int32)
    offsets[0::2], offsets[1::2] = begins, ends
    validity = None
    if count and not active.all():
        bits = np.ones(2 * count - 1, dtype=np.bool_)
        bits[0::2] = active
        validity = pa.py_buffer(np.packbits(bits, bitorder="little"))
    if not count:
        return pa.array([], pa.binary())
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    everything = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    return everything.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
