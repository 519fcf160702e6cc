"""Names and options as they are kept."""

import pytest

from millstream.sessions.iggy.names import check_name, stored_options, told_options
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import HeaderKind, UserHeader


@pytest.mark.parametrize("name", ["a", "é" * 127, "x" * 255, "with space"])
def test_names(name: str) -> None:
    check_name(name, ErrorCode.INVALID_STREAM_NAME)


@pytest.mark.parametrize("name", ["", " ", "é" * 128, "x" * 256])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(Refused) as refusal:
        check_name(name, ErrorCode.INVALID_STREAM_NAME)
    assert refusal.value.code is ErrorCode.INVALID_STREAM_NAME


def test_options_are_told_as_they_were_given() -> None:
    options = [UserHeader(b"key", b"\x00\xff", HeaderKind.RAW), UserHeader(b"n", b"\1\0\0\0", HeaderKind.UINT32)]
    assert told_options(stored_options(options)) == options
