# The C types of texts.py, for the compiled module.
cimport cython


@cython.locals(at="Py_ssize_t")
cpdef bint is_text(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop) except -1
