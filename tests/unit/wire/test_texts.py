"""What is text, compiled and as Python runs it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.wire import texts
from tests.support.twins import twin

BOTH = [texts.is_text, twin("wire.texts").is_text]


@pytest.mark.parametrize("is_text", BOTH, ids=["compiled", "python"])
@given(before=st.binary(max_size=3), data=st.one_of(st.binary(max_size=9), st.text(max_size=9).map(str.encode)))
def test_text_is_what_python_decodes(is_text: Callable[..., bool], before: bytes, data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        decodes = False
    else:
        decodes = True
    whole = memoryview(before + data + b"\xff")
    assert bool(is_text(whole, len(before), len(before) + len(data))) is decodes
