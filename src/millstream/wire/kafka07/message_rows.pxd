# The C types of message_rows.py, for the compiled module.
cimport cython


@cython.locals(end="Py_ssize_t", length="long long", magic="int")
cpdef Py_ssize_t plain_run(const unsigned char[::1] body, Py_ssize_t position)


@cython.locals(
    position="Py_ssize_t", row="Py_ssize_t", values="long long", count="Py_ssize_t", end="Py_ssize_t",
    room="Py_ssize_t", length="long long", size="long long",
)
cpdef Py_ssize_t read_rows(
    const unsigned char[::1] body, long long time_ms, long long[::1] rows, long long[::1] totals
)


@cython.locals(
    position="Py_ssize_t", row="Py_ssize_t", head="Py_ssize_t", start="Py_ssize_t", size="Py_ssize_t",
    length="Py_ssize_t", at="Py_ssize_t",
)
cpdef Py_ssize_t write_rows(
    const unsigned char[::1] data, long long[::1] rows, Py_ssize_t count, int magic, unsigned char[::1] out
)
