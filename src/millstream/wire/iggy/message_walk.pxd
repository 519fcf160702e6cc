# The C types of message_walk.py, for the compiled module.
cimport cython


@cython.locals(
    end="Py_ssize_t", with_headers="Py_ssize_t", index="Py_ssize_t", at="Py_ssize_t", delta="long long",
    headers="long long", payload="long long",
)
cpdef Py_ssize_t walk(
    const unsigned char[::1] batch, Py_ssize_t position, Py_ssize_t count, long long payload_bytes_max,
    long long headers_bytes_max, long long[::1] starts, unsigned char[::1] checksums,
)
