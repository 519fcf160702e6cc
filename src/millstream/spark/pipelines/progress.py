"""How a pipeline comes along: what Spark reports of each batch, and how it is shown.

On a terminal there is one table with a row for each flow, which changes as it goes. Anywhere else a line is printed
for each batch: `batch`, flow, number, rows, rows/s, seconds, lag, with tabs between them and `-` for what is not
known.
"""

import json
import time
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self

from millstream.spark.pipelines.checkpoints import Position, rows_between, topics_in

__all__ = ["Display", "Report", "read_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One finished batch.

    Args:
        flow: its name.
        run_id: of the query, which changes with every start.
        batch: its number.
        rows: that it read.
        duration_s: how long it took.
        lag: rows of its topics that are behind it; None if the sources do not tell.
        position: where it ends, in topics.
    """

    flow: str
    run_id: str
    batch: int
    rows: int
    duration_s: float
    lag: int | None
    position: Position

    @property
    def rows_per_s(self) -> float:
        """Rows read in a second."""
        return self.rows / self.duration_s if self.duration_s else 0.0


def read_report(text: str) -> Report:
    """Read a progress report of Spark's, in JSON."""
    document: dict[str, Any] = json.loads(text)
    position: Position = {}
    lag: int | None = None
    for source in document["sources"]:
        end, latest = topics_in(source["endOffset"]), topics_in(source["latestOffset"])
        for topic, parts in end.items():
            position.setdefault(topic, {}).update(parts)
        if end and latest:
            lag = (lag or 0) + rows_between(end, latest)
    return Report(
        flow=document["name"] or document["id"],
        run_id=document["runId"],
        batch=document["batchId"],
        rows=document["numInputRows"],
        duration_s=document["durationMs"].get("triggerExecution", 0) / 1000,
        lag=lag,
        position=position,
    )


@dataclass(slots=True)
class _Row:
    target: str
    state: str = "waiting"
    rows: int = 0
    last: Report | None = None


class Display:
    """Shows progress while it is a context.

    Args:
        out: where to; a terminal gets a table.
        title: above the table.
        flows: where each goes, by its name.
    """

    def __init__(self, out: IO[str], title: str, flows: dict[str, str]) -> None:
        self._out = out
        self._title = title
        self._rows = {flow: _Row(target) for flow, target in flows.items()}
        self._start_s = time.monotonic()
        self._note = ""
        self._live: Any = None
        if out.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=out), get_renderable=self._table, refresh_per_second=4)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def batch(self, report: Report) -> None:
        """Show a finished batch."""
        row = self._rows.setdefault(report.flow, _Row("-"))
        row.rows += report.rows
        row.last = report
        if self._live is None:
            lag = "-" if report.lag is None else report.lag
            words = ("batch", report.flow, report.batch, report.rows, round(report.rows_per_s))
            print(*words, f"{report.duration_s:.2f}", lag, sep="\t", file=self._out, flush=True)

    def state(self, flow: str, state: str) -> None:
        """Show what a flow does now."""
        self._rows.setdefault(flow, _Row("-")).state = state

    def note(self, text: str) -> None:
        """Show what all of them wait for; empty for nothing."""
        if self._live is None and text and text != self._note:
            print("note", text, sep="\t", file=self._out, flush=True)
        self._note = text

    def _table(self) -> Any:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        seconds = int(time.monotonic() - self._start_s)
        caption = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}  {self._note}"
        table = Table(
            box=SIMPLE_HEAD,
            title=self._title,
            title_justify="left",
            title_style="bold",
            caption=caption,
            caption_justify="left",
            pad_edge=False,
        )
        table.add_column("flow", overflow="fold")
        table.add_column("to", overflow="fold")
        table.add_column("state")
        for name in ("batch", "rows", "rows/s", "batch s", "lag"):
            table.add_column(name, justify="right", no_wrap=True)
        for flow, row in self._rows.items():
            table.add_row(flow, row.target, row.state, *_figures(row))
        return table


def _figures(row: _Row) -> tuple[str, ...]:
    last = row.last
    if last is None:
        return ("-",) * 5
    lag = "-" if last.lag is None else f"{last.lag:,}"
    return str(last.batch), f"{row.rows:,}", f"{last.rows_per_s:,.0f}", f"{last.duration_s:.2f}", lag
