# The C types of entry_messages.py, for the compiled module.
cimport cython


@cython.locals(
    position="Py_ssize_t", index="Py_ssize_t", size="Py_ssize_t", id_bytes="int", body_bytes="int",
    start="Py_ssize_t", at="Py_ssize_t",
)
cpdef Py_ssize_t write_messages(
    const unsigned char[::1] entries, const long long[::1] starts, const long long[::1] entry_ids,
    const unsigned char[::1] of_consumer, const unsigned char[::1] of_ledger, const unsigned char[::1] behind,
    const unsigned char[::1] of_epoch, unsigned char[::1] out
) except? -1


@cython.locals(at="Py_ssize_t")
cdef Py_ssize_t _put(unsigned char[::1] out, Py_ssize_t position, const unsigned char[::1] data)


cdef void _put_size(unsigned char[::1] out, Py_ssize_t position, Py_ssize_t size)


cdef Py_ssize_t _put_varint(unsigned char[::1] out, Py_ssize_t position, unsigned long long value)


@cython.locals(count="int")
cdef int _varint_bytes(unsigned long long value)
