"""Rows for scripts, tables for people."""

import io
import json
import sys

import pytest

from millstream.cli.output import print_json, print_rows, print_section


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_rows_for_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("topic", "partitions"), [("a", 1), ("tab\there", None)])
    print_section("config", ("name", "value"), [("k", "line\nfeed\\")])
    assert capsys.readouterr().out == "a\t1\ntab\\there\t-\nconfig\tk\tline\\nfeed\\\\\n"


def test_a_table_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", terminal)
    print_section("partition", ("topic", "records"), [("[red]a", 1), ("b", None)])
    shown = terminal.getvalue()
    assert "partition" in shown
    assert "records" in shown
    assert "[red]a" in shown


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"name": "é"}])
    out = capsys.readouterr().out
    assert "é" in out
    assert json.loads(out) == [{"name": "é"}]
