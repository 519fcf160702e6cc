"""The root command: help, lazy loading, and errors as one line."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from millstream.cli.app import _Millstream, app
from millstream.cli.serve import serve

runner = CliRunner()

_HEAVY = ("confluent_kafka", "rich", "sqlalchemy", "asyncio", "typer")


def loaded_after(*args: str) -> set[str]:
    """Return which heavy modules a fresh interpreter has imported after running the command."""
    program = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('loaded', *[name for name in {_HEAVY!r} if name in sys.modules]))\n"
        "from millstream.cli.main import main\n"
        f"sys.argv = ['millstream', *{list(args)!r}]\n"
        "main()\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in result.stderr, result.stderr
    return set(result.stdout.splitlines()[-1].split()[1:])


def test_help_lists_every_command_without_loading_one() -> None:
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    for name in ("serve", "topic", "produce", "consume", "group"):
        assert f"\n  {name} " in result.stdout
    assert loaded_after("--help") == {"typer"}


def test_a_usage_error_loads_nothing() -> None:
    assert loaded_after("no-such-command") == {"typer"}


@pytest.mark.parametrize("command", [["topic", "create"], ["topic", "list"], ["topic", "describe"],
                                     ["topic", "delete"], ["produce"], ["consume"], ["group", "list"],
                                     ["group", "describe"]])  # fmt: skip
def test_every_command_has_a_one_line_summary_and_examples(command: list[str]) -> None:
    result = runner.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    usage, _, summary, *_ = result.stdout.splitlines()
    assert usage.startswith("Usage: millstream " + " ".join(command))
    assert summary.strip().endswith(".")
    assert "\n  Examples:\n    " in result.stdout
    assert f"millstream {' '.join(command)} " in result.stdout.partition("Examples:")[2] + " "
    assert "MILLSTREAM_BROKER" in result.stdout


def test_a_command_is_loaded_when_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "standin.py").write_text(
        '"""Stands in for a command."""\n'
        "from typing import Annotated\n"
        "import typer\n"
        'EPILOG = "Where it all ends."\n'
        'def produce(topic: Annotated[str, typer.Option("--topic")] = "here") -> None:\n'
        '    """Run a stand-in."""\n'
        '    print("to", topic)\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(_Millstream.modules, "produce", "standin")
    result = runner.invoke(app, ["produce", "--topic", "there"])
    assert (result.exit_code, result.stdout) == (0, "to there\n")
    described = runner.invoke(app, ["produce", "--help"]).stdout
    assert "Run a stand-in." in described
    assert "Where it all ends." in described


def test_serve_goes_without_the_framework_of_the_others() -> None:
    assert "typer" not in loaded_after("serve", "--help")
    assert "typer" in loaded_after("--help")


def test_the_help_of_serve_is_the_same_either_way(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        serve(["--help"])
    assert end.value.code == 0
    assert runner.invoke(app, ["serve", "--help"]).stdout == capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--nothing"], "error: unrecognized arguments: --nothing; see 'millstream serve --help'\n"),
        (["--log-level", "loud"], "error: argument --log-level: invalid choice: 'loud'"),
        (["--data-dir"], "error: argument --data-dir: expected one argument; see 'millstream serve --help'\n"),
    ],
)
def test_usage_errors_of_serve(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        serve(args)
    told = capsys.readouterr()
    assert (end.value.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert told.err.startswith(message)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["tpic"], "error: no such command 'tpic'. Did you mean 'topic'?; see 'millstream --help'\n"),
        (["topic", "create"], "error: missing argument 'NAME'; see 'millstream topic create --help'\n"),
        (["topic", "list", "--jsn"], "error: no such option: --jsn"),
        (["topic", "create", "t", "--partitions", "x"], "error: invalid value for '--partitions'"),
        (["topic", "create", "t", "--partitions", "0"], "error: invalid value for '--partitions'"),
        (["produce", "t", "--acks", "2"], "error: invalid value for '--acks'"),
        (["topic", "list", "--broker", "nowhere"], "error: 'nowhere' is not a broker's address"),
        (["topic", "list", "--broker", "host:70000"], "error: 'host:70000' is not a broker's address"),
        (["topic", "create", "t", "--config", "x"], "error: --config 'x' is not KEY=VALUE"),
    ],
)
def test_usage_errors_are_one_line_and_status_2(args: list[str], message: str) -> None:
    result = runner.invoke(app, args, prog_name="millstream")
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize("args", [[], ["topic"], ["group"]])
def test_a_bare_group_explains_itself(args: list[str]) -> None:
    result = runner.invoke(app, args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Commands:" in result.stderr


def test_version() -> None:
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("millstream ")
