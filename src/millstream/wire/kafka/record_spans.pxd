# The C types of record_spans.py, for the compiled module.
cimport cython

from millstream.wire.kafka cimport varints


@cython.locals(span="Py_ssize_t")
cpdef Py_ssize_t find_spans(
    const unsigned char[::1] body, Py_ssize_t position, long long offset, long long end_offset, Py_ssize_t count,
    long long[::1] spans
)


@cython.locals(stop="Py_ssize_t", end="Py_ssize_t", field="int", number="long long")
cdef Py_ssize_t _read_span(const unsigned char[::1] body, Py_ssize_t position, long long[::1] spans, Py_ssize_t span)
