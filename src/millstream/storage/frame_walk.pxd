# The C types of frame_walk.py, for the compiled module.
cimport cython


@cython.locals(
    position="Py_ssize_t", needed="long long", start="Py_ssize_t", end="Py_ssize_t", length="long long",
    size="long long", magic="int", reason="int", checksum="unsigned long long",
)
cpdef int walk(
    const unsigned char[::1] data, object view, long long expected_offset, long long wanted_offset,
    long long max_bytes, long long[::1] walked
) except -1


@cython.locals(value="unsigned long long", at="Py_ssize_t")
cdef long long _number(const unsigned char[::1] data, Py_ssize_t position, int size)
