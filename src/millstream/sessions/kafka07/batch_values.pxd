# The C types of batch_values.py, for the compiled module.
cimport cython


@cython.locals(
    position="Py_ssize_t", size="Py_ssize_t", end="Py_ssize_t", head="Py_ssize_t", stop="Py_ssize_t",
    length="long long", value="long long", shift="int", byte="long long", field="int", magic="int",
)
cpdef Py_ssize_t lay_out(const unsigned char[::1] body, Py_ssize_t count, int magic, unsigned char[::1] out)
