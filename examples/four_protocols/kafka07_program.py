"""Says something in the topic `room`, and prints what all four have said. Kafka 0.7, of 2011, with a bare socket."""

import socket
import struct
import sys
import zlib

host, port = sys.argv[1].rsplit(":", 1)
connection = socket.create_connection((host, int(port)))
text = b"Kafka 0.7: hello from 2011"
message = struct.pack(">iBI", 5 + len(text), 0, zlib.crc32(text)) + text  # length, magic, checksum, payload
produce = struct.pack(">hh4sii", 0, 4, b"room", 0, len(message)) + message  # PRODUCE to partition 0
connection.sendall(struct.pack(">i", len(produce)) + produce)

heard, address = 0, 0  # addresses are bytes, not numbers of messages
while heard < 4:
    fetch = struct.pack(">hh4siqi", 1, 4, b"room", 0, address, 65536)  # FETCH from partition 0
    connection.sendall(struct.pack(">i", len(fetch)) + fetch)
    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    messages = connection.recv(size, socket.MSG_WAITALL)[2:]  # behind the error code
    while len(messages) >= 4 and len(messages) >= 4 + (length := struct.unpack_from(">i", messages)[0]):
        print(messages[9 : 4 + length].decode())
        heard, address, messages = heard + 1, address + 4 + length, messages[4 + length :]
