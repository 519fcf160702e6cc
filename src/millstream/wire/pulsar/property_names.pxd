# The C types of property_names.py, for the compiled module.
cimport cython

from millstream.wire.texts cimport is_text


@cython.locals(stop="Py_ssize_t")
cpdef bint is_plain_name(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t size) except -1
