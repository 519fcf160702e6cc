"""User headers."""

import pytest

from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import HeaderKind, UserHeader, check_headers, read_headers, write_headers

HEADERS = [UserHeader(b"k%d" % kind, bytes([kind]) * kind, kind) for kind in HeaderKind]


@pytest.mark.parametrize("kinded_keys", [False, True])
def test_what_is_written_is_read(kinded_keys: bool) -> None:
    headers = [one._replace(key_kind=one.kind) for one in HEADERS] if kinded_keys else HEADERS
    block = memoryview(write_headers(headers, kinded_keys=kinded_keys))
    assert read_headers(block, kinded_keys=kinded_keys) == headers
    check_headers(block, kinded_keys=kinded_keys)


def test_the_documented_bytes() -> None:
    block = bytes.fromhex("02000000 6b31 02 02000000 7631")
    assert write_headers([UserHeader(b"k1", b"v1", HeaderKind.STRING)], kinded_keys=False) == block
    with_kind = bytes.fromhex("02 02000000 6b31 02 02000000 7631")
    assert write_headers([UserHeader(b"k1", b"v1", HeaderKind.STRING)], kinded_keys=True) == with_kind


@pytest.mark.parametrize("kinded_keys", [False, True])
def test_what_is_cut_off_is_refused(kinded_keys: bool) -> None:
    block = write_headers(HEADERS[:1], kinded_keys=kinded_keys)
    for size in range(1, len(block)):
        with pytest.raises(Refused):
            read_headers(memoryview(block[:size]), kinded_keys=kinded_keys)


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (UserHeader(b"", b"v"), 4018),
        (UserHeader(b"k" * 256, b"v"), 4018),
        (UserHeader(b"k", b""), 4019),
        (UserHeader(b"k", b"v" * 256), 4019),
        (UserHeader(b"k", b"v", 0), 4040),
        (UserHeader(b"k", b"v", 16), 4040),
        (UserHeader(b"k", b"v", 1, 16), 4040),
    ],
)
def test_what_is_refused(header: UserHeader, code: int) -> None:
    with pytest.raises(Refused) as refusal:
        read_headers(memoryview(write_headers([header], kinded_keys=True)), kinded_keys=True)
    assert refusal.value.code == code


def test_keys_that_are_no_text_where_all_keys_are() -> None:
    """Clients that know only text fail at a whole poll if a key is not UTF-8."""
    headers = [
        UserHeader(b"\xff\x01", b"a", key_kind=HeaderKind.RAW),
        UserHeader("ключ".encode(), b"b", key_kind=HeaderKind.RAW),
        UserHeader(b"\xff" * 127, b"c", key_kind=HeaderKind.RAW),
        UserHeader(b"\xff" * 128, b"d", key_kind=HeaderKind.RAW),
    ]
    block = memoryview(write_headers(headers, kinded_keys=False))
    assert check_headers(block, kinded_keys=False) == 3
    found = [(one.key, one.value) for one in read_headers(block, kinded_keys=False)]
    assert found == [(b"ff01", b"a"), ("ключ".encode(), b"b"), (b"ff" * 127, b"c")]


def test_a_key_that_is_no_text_is_refused_where_all_keys_are() -> None:
    block = memoryview(b"\x01\0\0\0\xff\x01\x01\0\0\0v")
    assert read_headers(block, kinded_keys=False)
    with pytest.raises(Refused) as refusal:
        check_headers(block, kinded_keys=False)
    assert refusal.value.code == 4018
