"""Dialects: what tells them."""

import pytest

from millstream.wire.iggy.dialects import LOGIN_DIALECTS, Dialect, of_protocol_version, of_sdk_version
from millstream.wire.iggy.error_codes import ErrorCode, status_of


@pytest.mark.parametrize(
    ("version", "dialect"),
    [
        ("0.3.9", Dialect.B1),
        ("0.5.0", Dialect.B2),
        ("0.6.12", Dialect.B3),
        ("0.7.0", Dialect.C1),
        ("0.8.1-edge.2", Dialect.C2),
        ("0.9.0", Dialect.C3),
        ("0.10.1", Dialect.C3),
        ("0.11.0-edge.1", Dialect.C3),
        ("1.0.0", Dialect.C3),
        ("", None),
        ("rust", None),
        ("a.b", None),
        ("7", None),
    ],
)
def test_versions_of_sdks(version: str, dialect: Dialect | None) -> None:
    assert of_sdk_version(version) is dialect


@pytest.mark.parametrize(
    ("version", "dialect"),
    [
        (10 << 10 | 3, Dialect.D0),
        (11 << 10, Dialect.D),
        (12 << 10 | 1, Dialect.D12),
        (9 << 10, None),
        (1 << 20, None),
    ],
)
def test_versions_of_the_protocol(version: int, dialect: Dialect | None) -> None:
    assert of_protocol_version(version) is dialect


def test_what_sets_dialects_apart() -> None:
    assert [one for one in Dialect if one.first_id] == list(Dialect)[:5]
    assert [one for one in Dialect if not one.has_login] == [Dialect.A]
    assert [one for one in Dialect if one.long_headers] == [Dialect.D0, Dialect.D, Dialect.D12]
    assert [one for one in Dialect if one.folds_names] == list(Dialect)[:4]
    assert not any(one.long_headers for one in LOGIN_DIALECTS)


def test_dialect_a_has_numbers_of_its_own() -> None:
    assert status_of(ErrorCode.CONSUMER_GROUP_NAME_NOT_FOUND, Dialect.A) == 5000
    assert status_of(ErrorCode.CONSUMER_GROUP_NAME_NOT_FOUND, Dialect.B1) == 5003
    assert status_of(ErrorCode.NOT_CONNECTED, Dialect.A) == 51
