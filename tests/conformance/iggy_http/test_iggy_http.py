"""The Python package of Iggy's current release, whose client speaks HTTP too."""

from collections.abc import Callable

from tests.conformance.iggy_http.conftest import Script


def test_all_that_the_client_can_do_over_http(script: Script, unique: Callable[[str], str]) -> None:
    script("everything", unique("http"))


def test_what_is_written_one_way_is_read_the_other_way(script: Script, unique: Callable[[str], str]) -> None:
    script("crossing", unique("crossing"))
