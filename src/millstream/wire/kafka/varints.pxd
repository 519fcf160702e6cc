# What varints.py does, in C. It is defined here and not declared, so that it becomes a part of each compiled loop that
# cimports it: the module itself is not compiled. The tests hold the loops to their Python sources, and so both to each
# other.
cdef inline (Py_ssize_t, long long) take_varint(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop
) noexcept:
    cdef unsigned long long value = 0
    cdef int shift = 0
    cdef int byte = 128
    while byte >= 128:
        if position >= stop or shift > 63:
            return -1, 0
        byte = data[position]
        if shift == 63 and byte > 1:
            return -1, 0
        position += 1
        value |= <unsigned long long>(byte & 127) << shift
        shift += 7
    return position, (-<long long>(value >> 1) - 1 if value & 1 else <long long>(value >> 1))
