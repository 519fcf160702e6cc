# The C types of plain_sends.py, for the compiled module.
cimport cython


@cython.locals(
    end="Py_ssize_t", entry="Py_ssize_t", position="Py_ssize_t", stop="Py_ssize_t", seen="long long", room="long long",
)
cpdef Py_ssize_t read_plain_send(const unsigned char[::1] frame, unsigned long long[::1] values)


@cython.locals(
    seen="long long", key="int", number="int", byte="int", shift="int", value="long long", behind="Py_ssize_t",
)
cdef long long _scan(
    const unsigned char[::1] frame, Py_ssize_t position, Py_ssize_t stop, unsigned long long[::1] values,
    Py_ssize_t at, long long numbers, long long texts, long long blobs, long long pairs,
)
