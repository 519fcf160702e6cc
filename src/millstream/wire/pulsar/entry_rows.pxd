# The C types of entry_rows.py, for the compiled module.
cimport cython

from millstream.wire.pulsar.property_names cimport is_plain_name
from millstream.wire.texts cimport is_text


@cython.locals(
    row="Py_ssize_t", header="Py_ssize_t", position="Py_ssize_t", frame="Py_ssize_t", count="long long",
    start="Py_ssize_t", offset="long long", described="bytes", at="Py_ssize_t", _="long long",
)
cpdef Py_ssize_t write_entries(
    const unsigned char[::1] data, long long[::1] rows, long long[::1] headers, long long[::1] heads,
    Py_ssize_t frames, long long base_offset, object describe, object describe_entry, unsigned char[::1] out,
    object view, long long[::1] starts, long long[::1] offsets
) except? -1


@cython.locals(checksum="unsigned long long")
cdef void _seal(unsigned char[::1] out, object view, Py_ssize_t start, Py_ssize_t stop) except *


cdef Py_ssize_t _put_entry_head(
    unsigned char[::1] out, Py_ssize_t position, long long offset, long long time_ms
)


@cython.locals(size="Py_ssize_t")
cdef void _end_metadata(unsigned char[::1] out, Py_ssize_t start, Py_ssize_t position)


@cython.locals(
    position="Py_ssize_t", at="Py_ssize_t", key_bytes="Py_ssize_t", is_base64="bint", place="Py_ssize_t"
)
cdef Py_ssize_t _put_single(
    unsigned char[::1] out, Py_ssize_t start, const unsigned char[::1] data, long long[::1] rows, Py_ssize_t row,
    long long[::1] headers, Py_ssize_t header, long long offset
) except? -1


cdef Py_ssize_t _put_flag(unsigned char[::1] out, Py_ssize_t position, int tag)


@cython.locals(
    latest_ms="long long", same_key="bint", key_at="Py_ssize_t", key_bytes="Py_ssize_t", row="Py_ssize_t",
    position="Py_ssize_t", is_base64="bint",
)
cdef Py_ssize_t _put_batch_head(
    unsigned char[::1] out, Py_ssize_t start, const unsigned char[::1] data, long long[::1] rows, Py_ssize_t first,
    long long count, long long offset
) except -1


@cython.locals(
    index="Py_ssize_t", header="Py_ssize_t", place="long long", first="Py_ssize_t", row="Py_ssize_t",
    position="Py_ssize_t", content="long long", latest_ms="long long", same_key="bint", size="long long",
)
cpdef Py_ssize_t write_rows(
    const unsigned char[::1] data, long long[::1] rows, long long[::1] headers, Py_ssize_t count,
    long long[::1] state, long long stop_delta, long long content_bytes_max, const unsigned char[::1] taken_out,
    object describe, unsigned char[::1] out
) except? -1


@cython.locals(size="long long", at="Py_ssize_t")
cdef long long _content_bytes(long long[::1] rows, Py_ssize_t row, long long[::1] headers, Py_ssize_t header)


@cython.locals(size="Py_ssize_t", at="Py_ssize_t", _="long long")
cdef Py_ssize_t _put_gap(
    unsigned char[::1] out, Py_ssize_t position, const unsigned char[::1] taken_out, long long places
)


@cython.locals(at="Py_ssize_t")
cdef bint _is_same(
    const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t size, Py_ssize_t other, Py_ssize_t other_size
)


@cython.locals(
    head="Py_ssize_t", behind="Py_ssize_t", size="Py_ssize_t", start="Py_ssize_t", at="Py_ssize_t", described="bytes"
)
cdef Py_ssize_t _put_message(
    unsigned char[::1] out, Py_ssize_t position, const unsigned char[::1] data, long long[::1] rows, Py_ssize_t row,
    long long[::1] headers, Py_ssize_t header, Py_ssize_t index, object describe
) except? -1


@cython.locals(at="Py_ssize_t", key_bytes="Py_ssize_t", is_base64="bint")
cdef Py_ssize_t _put_metadata(
    unsigned char[::1] out, Py_ssize_t position, const unsigned char[::1] data, long long[::1] rows, Py_ssize_t row,
    long long[::1] headers, Py_ssize_t header
) except? -1


@cython.locals(
    start="Py_ssize_t", size="Py_ssize_t", value_bytes="Py_ssize_t", is_base64="bint", ending="Py_ssize_t",
    text_bytes="Py_ssize_t", inner="Py_ssize_t", place="Py_ssize_t",
)
cdef Py_ssize_t _put_property(
    unsigned char[::1] out, Py_ssize_t position, int tag, const unsigned char[::1] data, long long[::1] headers,
    Py_ssize_t at
) except? -1


cdef bint _is_ours(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t size)


@cython.locals(at="Py_ssize_t")
cdef Py_ssize_t _put_text(
    unsigned char[::1] out, Py_ssize_t position, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t size,
    bint is_base64
)


@cython.locals(stop="Py_ssize_t", bits="int")
cdef Py_ssize_t _put_base64(
    unsigned char[::1] out, Py_ssize_t position, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t size
)


cdef int _base64_digit(int value)


cdef Py_ssize_t _put_varint(unsigned char[::1] out, Py_ssize_t position, unsigned long long value)


@cython.locals(count="int")
cdef int _varint_bytes(unsigned long long value)
