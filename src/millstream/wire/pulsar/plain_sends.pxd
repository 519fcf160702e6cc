# The C types of plain_sends.py, for the compiled module.
cimport cython


@cython.locals(
    end="Py_ssize_t", entry="Py_ssize_t", position="Py_ssize_t", stop="Py_ssize_t", seen="long long", room="long long",
    at="Py_ssize_t", checksum="unsigned long long",
)
cpdef Py_ssize_t read_plain_send(const unsigned char[::1] frame, unsigned long long[::1] values)


@cython.locals(
    seen="long long", key="int", number="int", byte="long long", shift="int", value="long long", behind="Py_ssize_t",
)
cdef long long _scan(
    const unsigned char[::1] frame, Py_ssize_t position, Py_ssize_t stop, unsigned long long[::1] values,
    Py_ssize_t at, long long numbers, long long texts, long long blobs, long long pairs,
)


@cython.locals(position="Py_ssize_t", start="Py_ssize_t", length_at="Py_ssize_t", index="Py_ssize_t")
cpdef Py_ssize_t write_receipts(
    unsigned char[::1] out, unsigned long long producer_id, unsigned long long ledger_id, unsigned long long entry_id,
    long long partition, Py_ssize_t count, const unsigned long long[::1] sequence_ids,
    const unsigned long long[::1] highest_sequence_ids, const unsigned long long[::1] message_counts,
)


cdef Py_ssize_t _number(unsigned char[::1] out, Py_ssize_t position, int key, unsigned long long value)
