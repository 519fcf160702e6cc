# The C types of record_places.py, for the compiled module.
cimport cython


@cython.locals(
    position="Py_ssize_t", end="Py_ssize_t", index="Py_ssize_t", stop="Py_ssize_t", length="long long", byte="int",
    shift="int",
)
cpdef Py_ssize_t misplaced(const unsigned char[::1] body, Py_ssize_t count)


@cython.locals(delta="long long", value="long long", lengths="long long", byte="int", shift="int", counted="bint")
cdef bint _whole(const unsigned char[::1] body, Py_ssize_t position, Py_ssize_t stop, Py_ssize_t index)
