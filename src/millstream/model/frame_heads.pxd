# The C types of frame_heads.py, for the compiled module.
cimport cython


@cython.locals(
    first="Py_ssize_t", magic="int", count="Py_ssize_t", records="long long", digest="unsigned long long",
    head="Py_ssize_t", base="long long", expected="long long", offset="long long", size="Py_ssize_t",
    attributes="int", record_count="long long", joins="bint",
)
cpdef Py_ssize_t take_heads(
    const unsigned char[::1] data, Py_ssize_t position, long long end_offset, long long records_max,
    long long bytes_max, long long[::1] heads, long long[::1] totals
) except? -1


cpdef Py_ssize_t own_frames(const unsigned char[::1] data, Py_ssize_t position, int magic) except? -1


@cython.locals(value="unsigned long long", at="Py_ssize_t")
cdef long long _number(const unsigned char[::1] data, Py_ssize_t position, int size)


@cython.locals(value="long long")
cdef long long _signed(const unsigned char[::1] data, Py_ssize_t position)


cdef unsigned long long _mixed(unsigned long long digest, unsigned long long crc)
