# The C types of message_rows.py, for the compiled module.
cimport cython

from millstream.wire.pulsar.property_names cimport is_plain_name


@cython.locals(row="Py_ssize_t", header="Py_ssize_t", head="Py_ssize_t", stop="Py_ssize_t", first="Py_ssize_t")
cpdef Py_ssize_t read_entries(
    unsigned char[::1] data, long long[::1] heads, Py_ssize_t frames, long long[::1] entry, long long[::1] places,
    long long[::1] fields, long long[::1] rows, long long[::1] headers, long long[::1] totals
) except? -1


@cython.locals(row="Py_ssize_t", index="Py_ssize_t", size="long long", first="Py_ssize_t")
cdef Py_ssize_t _read_messages(
    unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop, Py_ssize_t count, long long delta,
    long long[::1] entry, long long[::1] places, long long[::1] fields, long long[::1] rows, long long[::1] headers,
    Py_ssize_t header, long long[::1] totals
) except? -1


cdef Py_ssize_t _finish_row(
    unsigned char[::1] data, long long[::1] entry, long long[::1] places, long long[::1] fields, long long[::1] rows,
    Py_ssize_t row, long long[::1] headers, Py_ssize_t first, Py_ssize_t header, long long[::1] totals
)


@cython.locals(
    room="Py_ssize_t", size="Py_ssize_t", key="unsigned long long", _="int",
    value="unsigned long long", shift="int", byte="int", number="unsigned long long"
)
cdef Py_ssize_t _scan_entry(
    unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop, long long[::1] entry, long long[::1] fields,
    long long[::1] headers, Py_ssize_t header
) except? -1


@cython.locals(at="Py_ssize_t")
cdef void _clear(long long[::1] fields)


cdef bint _take_number(
    unsigned long long number, unsigned long long value, long long[::1] entry, long long[::1] fields
)


cdef void _take_bytes(
    const unsigned char[::1] data, unsigned long long number, Py_ssize_t position, Py_ssize_t size,
    long long[::1] entry, long long[::1] fields
)


@cython.locals(name="const unsigned char *", at="Py_ssize_t")
cdef bint _is_ours(const unsigned char[::1] data, Py_ssize_t position)


@cython.locals(
    room="Py_ssize_t", key="int", value="unsigned long long", shift="int", byte="int", number="int"
)
cdef Py_ssize_t _scan(
    unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop, long long[::1] fields, long long[::1] headers,
    Py_ssize_t header
) except? -1


@cython.locals(key="int", value="unsigned long long", shift="int", byte="int")
cdef bint _read_property(
    unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop, long long[::1] headers, Py_ssize_t header
) except -1


@cython.locals(written="Py_ssize_t", bits="int", padding="int", at="Py_ssize_t", byte="int")
cdef Py_ssize_t _undone_base64(unsigned char[::1] data, Py_ssize_t start, Py_ssize_t size)


cdef Py_ssize_t _put_told(
    unsigned char[::1] data, long long[::1] entry, long long[::1] places, long long[::1] fields,
    long long[::1] headers, Py_ssize_t header
)


@cython.locals(size="int", rest="long long", at="Py_ssize_t")
cdef void _tell_time(unsigned char[::1] data, long long time_ms, long long[::1] places)


cdef unsigned long long _shifted(unsigned long long value, int shift)
