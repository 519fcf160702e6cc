# The C types of message_rows.py, for the compiled module.
cimport cython


@cython.locals(length="long long", magic="int")
cpdef Py_ssize_t plain_run(const unsigned char[::1] body, Py_ssize_t position, Py_ssize_t end) except? -1


@cython.locals(
    position="Py_ssize_t", row="Py_ssize_t", values="long long", count="long long", stop="Py_ssize_t",
    room="Py_ssize_t", length="long long", size="long long", head="Py_ssize_t",
)
cpdef Py_ssize_t read_rows(
    const unsigned char[::1] body, long long[::1] heads, Py_ssize_t frames, long long[::1] rows,
    long long[::1] totals
) except? -1


@cython.locals(
    position="Py_ssize_t", row="Py_ssize_t", head="Py_ssize_t", start="Py_ssize_t", size="Py_ssize_t",
    length="Py_ssize_t", at="Py_ssize_t",
)
cpdef Py_ssize_t write_rows(
    const unsigned char[::1] data, long long[::1] rows, Py_ssize_t count, int magic, unsigned char[::1] out
)
