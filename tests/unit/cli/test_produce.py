"""Input to records, and options of produce that are refused before a broker is asked."""

import io
from pathlib import Path

import pytest
from typer.testing import CliRunner

from millstream.cli.app import app
from millstream.cli.errors import CliError
from millstream.cli.produce import _from_files, _from_json_lines, _from_lines, _Shape
from millstream.cli.record_json import Headers, Outgoing


def shape(
    *,
    key: bytes | None = None,
    key_separator: bytes | None = None,
    headers: Headers | None = None,
    partition: int | None = None,
    keep_partition: bool = False,
) -> _Shape:
    return _Shape(
        key=key,
        key_separator=key_separator,
        headers=headers or [],
        partition=partition,
        keep_partition=keep_partition,
    )


def pairs(text: bytes, how: _Shape) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in _from_lines(io.BytesIO(text), how)]


def test_lines() -> None:
    assert pairs(b"a\n\nb\xff\r\nlast", shape()) == [(None, b"a"), (None, b""), (None, b"b\xff\r"), (None, b"last")]
    assert pairs(b"", shape()) == []
    assert pairs(b"a\n", shape(key=b"")) == [(b"", b"a")]


def test_keys_in_lines() -> None:
    assert pairs(b"k=v\nk=v=w\n=v\nk=\nnone\n", shape(key_separator=b"=")) == [
        (b"k", b"v"),
        (b"k", b"v=w"),
        (b"", b"v"),
        (b"k", b""),
        (None, b"none"),
    ]


def test_headers_and_partition_go_to_every_record() -> None:
    [record] = _from_lines(io.BytesIO(b"x"), shape(headers=[("a", b"1")], partition=2))
    assert record == Outgoing(value=b"x", headers=[("a", b"1")], partition=2)


def test_json_lines() -> None:
    text = b'{"value": "x", "key": "k", "timestamp": 5, "partition": 1, "headers": [["a", "1"]]}\n\n{"value": null}\n'
    first, second = _from_json_lines(io.BytesIO(text), shape(headers=[("b", b"2")]))
    assert first == Outgoing(value=b"x", key=b"k", timestamp_ms=5, headers=[("a", b"1"), ("b", b"2")])
    assert second == Outgoing(value=None, headers=[("b", b"2")])


def test_json_lines_keep_their_partition_when_asked() -> None:
    text = b'{"value": "x", "partition": 1}'
    [record] = _from_json_lines(io.BytesIO(text), shape(keep_partition=True))
    assert record.partition == 1


def test_a_bad_json_line_is_named() -> None:
    with pytest.raises(CliError, match="line 2 is not a record"):
        list(_from_json_lines(io.BytesIO(b'{"value": "x"}\nnonsense\n'), shape()))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "cat"
    path.write_bytes(b"a\nb\n\0")
    [record] = _from_files([str(path)], shape(key=b"k"))
    assert (record.key, record.value) == (b"k", b"a\nb\n\0")
    with pytest.raises(CliError, match="no such file"):
        list(_from_files([str(tmp_path / "dog")], shape()))
    with pytest.raises(CliError, match="is a directory"):
        list(_from_files([str(tmp_path)], shape()))


def test_a_line_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.cli.produce._RECORD_SIZE_BYTES_MAX", 4)
    assert pairs(b"abcd\n", shape()) == [(None, b"abcd")]
    with pytest.raises(CliError, match="line 2 is larger"):
        pairs(b"abc\nabcdefgh\n", shape())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--key", "k", "--key-separator", ":"], "--key and --key-separator exclude each other"),
        (["--key", "k", "--jsonl"], "--key and --jsonl exclude each other"),
        (["--file", "x", "--jsonl"], "--file and --jsonl exclude each other"),
        (["--partition", "1", "--keep-partition"], "--partition and --keep-partition exclude each other"),
        (["--idempotent", "--acks", "1"], "--idempotent needs --acks all"),
        (["--key-separator", ""], "--key-separator is empty"),
        (["--key-separator", "\\q"], "--key-separator: there is no escape \\q"),
        (["--header", "x"], "--header 'x' is not KEY=VALUE"),
        (["--partition", "-1"], "invalid value for '--partition'"),
        (["--compression", "rar"], "invalid value for '--compression'"),
    ],
)
def test_refused(args: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["produce", "orders", *args], prog_name="millstream", input=b"")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1
