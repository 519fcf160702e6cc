# The C types of message_rows.py, for the compiled module.
cimport cython

from millstream.wire.texts cimport is_text


@cython.locals(
    row="Py_ssize_t", header="Py_ssize_t", head="Py_ssize_t", position="Py_ssize_t", stop="Py_ssize_t",
    append_ms="long long", layout="int", origin="long long", index="long long", first="Py_ssize_t",
    following="Py_ssize_t", block_bytes="long long", block_at="Py_ssize_t",
)
cpdef Py_ssize_t read_rows(
    unsigned char[::1] data, long long[::1] heads, Py_ssize_t frames, long long[::1] places, long long[::1] rows,
    long long[::1] headers, long long[::1] totals
) except? -1


@cython.locals(origin="long long")
cdef long long _batch_origin(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop)


@cython.locals(at="Py_ssize_t")
cdef void _count_content(
    long long[::1] rows, Py_ssize_t row, long long[::1] headers, Py_ssize_t first, Py_ssize_t header,
    long long[::1] totals
)


@cython.locals(
    origin="long long", block_bytes="long long", block_at="long long", payload_at="long long",
    payload_bytes="long long", at="Py_ssize_t",
)
cdef Py_ssize_t _place(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop, int layout, long long batch_origin,
    long long append_ms, long long[::1] rows, Py_ssize_t row
)


@cython.locals(text="Py_ssize_t", at="Py_ssize_t", byte="int", size="int", rest="long long")
cdef Py_ssize_t _put_own(
    unsigned char[::1] data, Py_ssize_t id_at, long long origin, long long[::1] places, long long[::1] headers,
    Py_ssize_t header
)


@cython.locals(
    first="Py_ssize_t", text="Py_ssize_t", size="long long", name_at="Py_ssize_t", kind="int",
    value_bytes="long long", kind_at="Py_ssize_t", at="Py_ssize_t",
)
cdef Py_ssize_t _put_headers(
    unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop, bint kinded_keys, long long[::1] places,
    long long[::1] rows, Py_ssize_t row, long long[::1] headers, Py_ssize_t header
) except? -1


cdef bint _is_key(const unsigned char[::1] data, Py_ssize_t position) except -1


@cython.locals(value="long long", at="Py_ssize_t")
cdef long long _number(const unsigned char[::1] data, Py_ssize_t position, int size)


cdef int _digit(int value)
