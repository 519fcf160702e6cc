"""Which protocol a connection speaks: the first bytes of real clients, and those that could be mistaken."""

import pytest

from millstream.server.recognition import recognise

FIRST_BYTES = {
    "http": [b"GET /health HTTP/1.1\r\n", b"PUT /admin/v2/x HTTP/1.1\r\n", b"DELETE /a HTTP/1.1\r\n"],
    "kafka": [
        # ApiVersions of librdkafka; a SaslHandshake; a Produce without a client id; a Metadata of the first version
        bytes.fromhex("0000002f 0012 0003 00000001 0007 72646b61666b61 00"),
        bytes.fromhex("00000018 0011 0001 00000000 0000"),
        bytes.fromhex("00000050 0000 0009 00000003 ffff"),
        bytes.fromhex("00000012 0003 0000 00000000 0000 00000000"),
    ],
    "kafka07": [
        # as in the captures: kafka-python 0.1, brod, pykafka, the two kinds with several parts
        bytes.fromhex("0000002d 0000 0003 6b7079 ffffffff 0000001e"),
        bytes.fromhex("00000018 0004 0004 62726f64 00000000 ffffffffffffffff 00000003"),
        bytes.fromhex("00000017 0001 0003 70796b 00000000 0000000000000000 00100000"),
        bytes.fromhex("00000032 0002 0002 0005 73616d7361 00000000"),
        bytes.fromhex("00000042 0003 0002 0003 6b7079 00000000 00000012"),
    ],
    "pulsar": [bytes.fromhex("00000035 00000031 0802 1a 2d 0a")],
    "iggy": [
        bytes.fromhex("14000000 26000000 04 69676779 04"),  # LOGIN_USER of the dialects with short headers
        bytes.fromhex("04000000 01000000"),  # PING
        bytes.fromhex("00010000 26000000 04 69676779 04"),  # a LOGIN_USER of 256 bytes
        bytes(64),  # the first fields of a 256-byte header are zero
    ],
}


@pytest.mark.parametrize(("name", "head"), [(name, head) for name, heads in FIRST_BYTES.items() for head in heads])
def test_the_first_bytes_tell(name: str, head: bytes) -> None:
    assert recognise(head) == name


@pytest.mark.parametrize(("name", "head"), [(name, head) for name, heads in FIRST_BYTES.items() for head in heads])
def test_fewer_bytes_tell_the_same_or_nothing(name: str, head: bytes) -> None:
    assert {recognise(head[:count]) for count in range(len(head))} <= {None, name}
