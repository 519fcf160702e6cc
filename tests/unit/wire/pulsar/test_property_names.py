"""Which names of properties are copied as they are, compiled and as Python runs it."""

from collections.abc import Callable

import pytest

from millstream.wire.pulsar import property_names
from tests.support.twins import twin

BOTH = [property_names.is_plain_name, twin("wire.pulsar.property_names").is_plain_name]
PLAIN = ["", "a", "trace:id", "b64", ":b6", ":tex", ":texts", "x:b640", "nüll", "text", "null", "a:text:"]
OTHERS = [":b64", "a:b64", ":text", "a:text", ":null", "a:null", "ü:null"]


@pytest.mark.parametrize("is_plain_name", BOTH, ids=["compiled", "python"])
@pytest.mark.parametrize("name", PLAIN + OTHERS)
def test_plain_names(is_plain_name: Callable[..., bool], name: str) -> None:
    data = name.encode()
    assert bool(is_plain_name(memoryview(b"ab" + data + b"l"), 2, len(data))) is (name in PLAIN)


@pytest.mark.parametrize("is_plain_name", BOTH, ids=["compiled", "python"])
def test_what_is_no_text(is_plain_name: Callable[..., bool]) -> None:
    assert not is_plain_name(memoryview(b"a\xff"), 0, 2)
