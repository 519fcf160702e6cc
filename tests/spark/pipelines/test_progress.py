"""What Spark reports of a batch, and how it is shown on and off a terminal."""

import io
import json
from typing import Any

import pytest

from millstream.spark.pipelines.messages import one_line, place_of
from millstream.spark.pipelines.progress import Display, read_report

_OURS = "millstream.spark.errors.TopicMissing: there is no topic 'x'; create it\n\nSQLSTATE: 38000"


def report(**fields: Any) -> str:
    source = {
        "description": "x",
        "startOffset": {"t": {"0": 0}},
        "endOffset": {"t": {"0": 1000, "1": 10}},
        "latestOffset": {"t": {"0": 1500, "1": 10}},
        "numInputRows": 1010,
    }
    document = {
        "id": "a",
        "runId": "b",
        "name": "flow",
        "batchId": 4,
        "numInputRows": 1010,
        "durationMs": {"triggerExecution": 500, "addBatch": 400},
        "sources": [source],
    }
    return json.dumps(document | fields)


def test_a_report() -> None:
    found = read_report(report())
    assert (found.flow, found.run_id, found.batch, found.rows) == ("flow", "b", 4, 1010)
    assert (found.duration_s, found.rows_per_s, found.lag) == (0.5, 2020.0, 500)
    assert found.position == {"t": {0: 1000, 1: 10}}


def test_a_report_of_other_sources_has_no_lag() -> None:
    source = {"endOffset": 5, "latestOffset": None}
    found = read_report(report(name=None, sources=[source]))
    assert (found.flow, found.lag, found.position) == ("a", None, {})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_off_a_terminal() -> None:
    out = io.StringIO()
    with Display(out, "shop", {"flow": "table"}) as display:
        display.state("flow", "running")
        display.batch(read_report(report()))
        display.note("waiting")
        display.note("waiting")
    assert out.getvalue() == "batch\tflow\t4\t1010\t2020\t0.50\t500\nnote\twaiting\n"


def test_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    out = Terminal()
    with Display(out, "shop", {"flow": "table", "other": "place"}) as display:
        display.batch(read_report(report()))
        display.batch(read_report(report(batchId=5)))
        display.state("flow", "completed")
        display.note("waiting for new records")
    last = out.getvalue().rpartition("shop")[2]
    for word in ("flow", "table", "completed", "2,020", "0.50", "500", "other", "waiting for new records"):
        assert word in last


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[PYTHON_DATA_SOURCE_ERROR] Failed:\nTraceback (most recent call last):\n  File x\n" + _OURS,
            "there is no topic 'x'; create it",
        ),
        (
            "(org.apache.spark.SparkException) [A.B] Something is\nwrong. SQLSTATE: XXSC0\n\nJVM stacktrace:\nlong",
            "[A.B] Something is wrong.",
        ),
        ("It broke.\n=== Streaming Query ===\nIdentifier: x", "It broke."),
        ("plain", "plain"),
    ],
)
def test_one_line_out_of_what_spark_says(text: str, line: str) -> None:
    assert one_line(text) == line


def test_an_error_in_a_users_file_has_its_place(tmp_path: Any) -> None:
    path = tmp_path / "defs.py"
    path.write_text("import json\n\njson.loads('{')\n")
    with pytest.raises(ValueError, match="Expecting") as caught:
        exec(compile(path.read_text(), str(path), "exec"), {})
    assert place_of(caught.value, str(tmp_path)).startswith("defs.py:3: JSONDecodeError: Expecting")
    with pytest.raises(SyntaxError) as wrong:
        compile("a b", str(path), "exec")
    assert place_of(wrong.value, str(tmp_path)) == "defs.py:1: invalid syntax"
