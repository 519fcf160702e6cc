"""Sizes as the Iggy HTTP API tells them."""

import pytest

from millstream.server.http.iggy_forms import size_text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 KB"),
        (1024, "1 KiB"),
        (1500, "1.5 KB"),
        (1555, "1.555 KB"),
        (10240, "10 KiB"),
        (3211776, "3136.5 KiB"),
        (1234567, "1234.567 KB"),
        (2**30, "1 GiB"),
        (2**64 - 1, "18446744073709551.615 KB"),
    ],
)
def test_a_size_is_told_in_the_largest_unit_that_tells_it_exactly(size_bytes: int, text: str) -> None:
    """The examples are those of the library that Iggy's server uses for it."""
    assert size_text(size_bytes) == text
