# The C types of record_places.py, for the compiled module.
cimport cython


@cython.locals(
    position="Py_ssize_t", end="Py_ssize_t", index="Py_ssize_t", stop="Py_ssize_t", field="Py_ssize_t",
    length="long long", delta="long long", byte="long long", shift="int",
)
cpdef Py_ssize_t misplaced(const unsigned char[::1] body, Py_ssize_t count)
