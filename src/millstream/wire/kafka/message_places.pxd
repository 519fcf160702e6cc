# The C types of message_places.py, for the compiled module.
cimport cython


cdef class RecordsTail:
    cdef public Py_ssize_t written_bytes
    cdef public Py_ssize_t count
    cdef public long long first_ms
    cdef public long long latest_ms
    cdef public bint append_time


cdef class RecordSpan:
    cdef public Py_ssize_t count
    cdef public long long base_offset
    cdef public long long from_delta
    cdef public bint is_relative
    cdef public Py_ssize_t index
    cdef public Py_ssize_t position
    cdef public long long last_delta
    cdef public long long latest_ms
    cdef public Py_ssize_t needed_bytes


@cython.locals(
    octets="const unsigned char[::1]", target="unsigned char[::1]", end="Py_ssize_t", written="Py_ssize_t",
    count="Py_ssize_t", first_ms="long long", latest_ms="long long", size="Py_ssize_t", following="Py_ssize_t",
    magic="int", attributes="int", field="Py_ssize_t", time_ms="long long", value_at="Py_ssize_t",
)
cpdef Py_ssize_t write_records(
    object messages, Py_ssize_t position, Py_ssize_t stop, bytearray out, RecordsTail tail
) except -1


@cython.locals(size="long long", value_at="Py_ssize_t")
cdef Py_ssize_t _value_place(const unsigned char[::1] octets, Py_ssize_t position, Py_ssize_t following)


@cython.locals(
    delta="unsigned long long", place="unsigned long long", key_size="Py_ssize_t", value_size="Py_ssize_t",
    key_bytes="Py_ssize_t", value_bytes="Py_ssize_t", content="Py_ssize_t",
)
cdef Py_ssize_t _put_record(
    unsigned char[::1] target, Py_ssize_t written, long long time_delta, Py_ssize_t index,
    const unsigned char[::1] octets, Py_ssize_t key_at, Py_ssize_t value_at
)


@cython.locals(
    octets="const unsigned char[::1]", target="unsigned char[::1]", overhead="Py_ssize_t", position="Py_ssize_t",
    written="Py_ssize_t", end="Py_ssize_t", length="long long", following="Py_ssize_t", time_ms="long long",
    delta="long long", key_size="long long", key_at="Py_ssize_t", key_bytes="Py_ssize_t", value_size="long long",
    value_at="Py_ssize_t", value_bytes="Py_ssize_t", size="Py_ssize_t", field="Py_ssize_t", room="Py_ssize_t",
)
cpdef Py_ssize_t write_messages(
    object body, RecordSpan span, long long first_ms, long long append_ms, int magic, bytearray out
) except -1


cdef Py_ssize_t _put_head(
    unsigned char[::1] target, Py_ssize_t position, int magic, long long append_ms, long long time_ms
)


cdef Py_ssize_t _put_bytes(
    unsigned char[::1] target, Py_ssize_t position, const unsigned char[::1] octets, Py_ssize_t start, Py_ssize_t size
)


@cython.locals(value="unsigned long long", shift="int", byte="int")
cdef unsigned long long _varint(const unsigned char[::1] octets, Py_ssize_t position, Py_ssize_t end)


cdef Py_ssize_t _behind_varint(const unsigned char[::1] octets, Py_ssize_t position, Py_ssize_t end)


@cython.locals(value="long long")
cdef long long _int32(const unsigned char[::1] octets, Py_ssize_t position)


@cython.locals(low="long long")
cdef long long _int64(const unsigned char[::1] octets, Py_ssize_t position)


cdef unsigned long long _zigzag(long long value)


cdef long long _unzigzag(unsigned long long value)


cdef unsigned long long _shifted(unsigned long long value, int shift)


@cython.locals(count="int")
cdef int _varint_bytes(unsigned long long value)


cdef Py_ssize_t _put_varint(unsigned char[::1] target, Py_ssize_t position, unsigned long long value)


cdef void _put_int32(unsigned char[::1] target, Py_ssize_t position, long long value)


cdef void _put_int64(unsigned char[::1] target, Py_ssize_t position, long long value)
