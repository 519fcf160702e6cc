# The C types of message_walk.py, for the compiled module.
cimport cython


@cython.locals(
    length="unsigned int", start="Py_ssize_t", stop="Py_ssize_t", at="Py_ssize_t", crc="unsigned int",
    count="Py_ssize_t",
)
cdef tuple _pass_over(
    const unsigned char[::1] body, Py_ssize_t position, Py_ssize_t end, Py_ssize_t payload_bytes_max,
    const unsigned int[::1] tables, bint compiled, unsigned char[::1] sealed,
)
