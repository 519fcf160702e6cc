# The C types of polled_rows.py, for the compiled module.
cimport cython


cdef class PolledRows:
    cdef const unsigned char[::1] data
    cdef const long long[::1] rows
    cdef const long long[::1] headers
    cdef Py_ssize_t count
    cdef long long base_offset
    cdef bint appended
    cdef Py_ssize_t head
    cdef const long long[::1] heads
    cdef long long partition
    cdef object describe
    cdef Py_ssize_t batches_max
    cdef public bytearray out
    cdef unsigned char[::1] target
    cdef object view
    cdef bytearray seeded
    cdef unsigned char[::1] seeds
    cdef object sums_view
    cdef unsigned char[::1] sums
    cdef public object starts
    cdef long long[::1] starts_view
    cdef public object firsts
    cdef long long[::1] firsts_view
    cdef bytes names
    cdef bytes described
    cdef public Py_ssize_t batches
    cdef Py_ssize_t row
    cdef Py_ssize_t header
    cdef Py_ssize_t header_stop
    cdef long long offset
    cdef long long time_us
    cdef unsigned long long origin
    cdef Py_ssize_t batch
    cdef Py_ssize_t batch_first
    cdef long long batch_offset
    cdef long long batch_us
    cdef unsigned long long batch_origin
    cdef int layout

    @cython.locals(position="Py_ssize_t", batches="Py_ssize_t", index="Py_ssize_t")
    cpdef Py_ssize_t write(self, int layout) except? -1

    @cython.locals(time_ms="long long", at="Py_ssize_t", special="int")
    cdef void _identify(self, Py_ssize_t index) except *

    @cython.locals(size="long long")
    cdef int _special(self, Py_ssize_t at)

    @cython.locals(at="Py_ssize_t")
    cdef bint _is_name(self, Py_ssize_t start, Py_ssize_t name, Py_ssize_t size)

    @cython.locals(start="Py_ssize_t", size="Py_ssize_t", value="long long", place="Py_ssize_t", digit="int")
    cdef bint _take_origin(self, Py_ssize_t at)

    @cython.locals(start="Py_ssize_t", place="Py_ssize_t")
    cdef bint _is_id(self, Py_ssize_t at)

    cdef bint _goes_on(self)

    cdef void _begin_batch(self, Py_ssize_t position, Py_ssize_t index)

    @cython.locals(count="Py_ssize_t", at="Py_ssize_t")
    cdef void _finish_batch(self, Py_ssize_t stop, Py_ssize_t index) except *

    @cython.locals(size="Py_ssize_t", block="Py_ssize_t", payload="Py_ssize_t")
    cdef Py_ssize_t _put_plain(self, Py_ssize_t position) except -1

    @cython.locals(
        layout="int", size="Py_ssize_t", payload="Py_ssize_t", lengths="Py_ssize_t", block="Py_ssize_t",
        stop="Py_ssize_t", digest="unsigned long long",
    )
    cdef Py_ssize_t _put_message(self, Py_ssize_t position, Py_ssize_t index) except -1

    @cython.locals(
        at="Py_ssize_t", found="Py_ssize_t", last="Py_ssize_t", rest="unsigned long long", digest="bytes"
    )
    cdef void _put_id(self, Py_ssize_t position) except *

    @cython.locals(
        size="Py_ssize_t", at="Py_ssize_t", start="Py_ssize_t", counted="long long", key_bytes="Py_ssize_t",
        name_bytes="Py_ssize_t",
    )
    cdef Py_ssize_t _put_headers(self, Py_ssize_t position, bint kinded_keys) except -1

    cdef Py_ssize_t _put_name(self, Py_ssize_t position, bint kinded_keys, Py_ssize_t size)

    cdef Py_ssize_t _put_value(self, Py_ssize_t position, Py_ssize_t start, Py_ssize_t size)


@cython.locals(at="Py_ssize_t")
cdef void _copy(
    unsigned char[::1] target, Py_ssize_t position, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t size
)


@cython.locals(at="int")
cdef void _put_number(unsigned char[::1] target, Py_ssize_t position, unsigned long long value, int size)


cdef int _digit(int byte)
