# The C types of record_rows.py, for the compiled module.
cimport cython

from millstream.wire.kafka cimport varints
from millstream.wire.texts cimport is_text


@cython.locals(
    position="Py_ssize_t", stop="Py_ssize_t", row="Py_ssize_t", header="Py_ssize_t", head="Py_ssize_t",
    before="long long", _="long long",
)
cpdef Py_ssize_t read_rows(
    const unsigned char[::1] data, long long[::1] heads, Py_ssize_t frames, long long[::1] rows,
    long long[::1] headers, long long[::1] totals
) except? -1


@cython.locals(size="long long", field="int")
cdef Py_ssize_t _read_record(
    const unsigned char[::1] body, Py_ssize_t position, Py_ssize_t stop, long long first_ms, long long[::1] rows,
    Py_ssize_t row, long long[::1] totals
)


@cython.locals(size="long long", field="long long")
cdef Py_ssize_t _read_headers(
    const unsigned char[::1] body, Py_ssize_t position, Py_ssize_t stop, long long count, long long[::1] headers,
    Py_ssize_t header, long long[::1] totals
) except? -1


@cython.locals(kind="long long")
cpdef Py_ssize_t batch_end(
    long long[::1] rows, long long[::1] heads, Py_ssize_t frames, Py_ssize_t frame
) except? -1


@cython.locals(row="Py_ssize_t", stop="Py_ssize_t", time_ms="long long")
cdef long long _kind_of_time(long long[::1] rows, long long[::1] heads, Py_ssize_t frame)


@cython.locals(
    row="Py_ssize_t", header="Py_ssize_t", appended="long long", first_ms="long long",
    latest_ms="long long", time_ms="long long", delta="unsigned long long", time_delta="unsigned long long",
    key_bytes="long long", value_bytes="long long", header_count="long long", size="long long", at="Py_ssize_t",
)
cpdef Py_ssize_t write_rows(
    const unsigned char[::1] data, long long[::1] rows, long long[::1] headers, Py_ssize_t first, Py_ssize_t stop,
    long long[::1] state, unsigned char[::1] out, Py_ssize_t position
) except? -1


cdef Py_ssize_t _field_bytes(long long size)


@cython.locals(at="Py_ssize_t")
cdef Py_ssize_t _put_field(
    unsigned char[::1] out, Py_ssize_t position, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t size
)


cdef Py_ssize_t _put_varint(unsigned char[::1] out, Py_ssize_t position, unsigned long long value)


@cython.locals(count="int")
cdef int _varint_bytes(unsigned long long value)


cdef unsigned long long _zigzag(long long value)
