"""The main job on real data, from start to end: `make demo`, or python examples/flights/demo.py.

A broker is started on a temporary data directory; the flights of 2013 from New York's airports and the weather there
go into two topics through a Kafka client; Spark joins the topics and writes a Parquet table; a table and a chart show
what comes out.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaException
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from examples.flights import job, load
from examples.flights.broker import BrokerFailed, broker
from examples.flights.session import spark_session
from millstream.spark.java import JavaMissing

_DEFAULT_OUTPUT = "demo-output"
_INTERRUPTED = 130


class Stages:
    """Says what is going on, and how long each stage took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start_s = time.monotonic()

    @contextlib.contextmanager
    def stage(self, name: str, *, shows_progress: bool = False) -> Iterator[None]:
        """One stage; it tells of its end if the block is left without an error."""
        start_s = time.monotonic()
        waiting = contextlib.nullcontext() if shows_progress else self._console.status(f"{name} ...")
        with waiting:
            yield
        self._console.print(f"[green]✓[/] {name:<58} [dim]{time.monotonic() - start_s:6.1f} s[/]")

    def finish(self) -> None:
        """Tell how long it took in all."""
        self._console.print(f"  {'all together':<58} [dim]{time.monotonic() - self._start_s:6.1f} s[/]")


def main() -> int:
    """Run the demo; returns the exit status."""
    parser = argparse.ArgumentParser(description="Flights and weather through topics into a Spark job.")
    parser.add_argument("--output", default=_DEFAULT_OUTPUT, metavar="DIR", help="where results go [%(default)s]")
    output = parser.parse_args().output
    console = Console(highlight=False)
    try:
        run(console, output)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return _INTERRUPTED
    except (JavaMissing, BrokerFailed, load.DataMissing, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KafkaException as error:
        print(f"error: the broker answered: {error.args[0].str()}", file=sys.stderr)
        return 1
    return 0


def run(console: Console, output: str) -> None:
    """The stages, one after the other."""
    os.makedirs(output, exist_ok=True)
    table_path, chart_path = os.path.join(output, "flights_with_weather"), os.path.join(output, "delays.png")
    stages = Stages(console)
    with contextlib.ExitStack() as stack:
        data_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="millstream-demo-"))
        with stages.stage("start a broker"):
            servers = stack.enter_context(broker(data_dir, os.path.join(output, "broker.log")))
        with stages.stage("send flights and weather to their topics", shows_progress=True):
            _send(console, servers)
        with stages.stage("start Spark"):
            spark = stack.enter_context(spark_session("flights", os.path.join(output, "spark.log")))
        with stages.stage("join both topics into a Parquet table"):
            flights = job.flights_of(_topic(spark, servers, load.FLIGHTS.topic))
            weather = job.weather_of(_topic(spark, servers, load.WEATHER.topic))
            job.with_weather(flights, weather).write.mode("overwrite").parquet(table_path)
        with stages.stage("count delays by carrier, hour and weather"):
            table = spark.read.parquet(table_path)
            carriers = job.delays_by_carrier(table).collect()
            hours = job.delays_by_hour(table).collect()
            conditions = job.delays_by_conditions(table).collect()
        with stages.stage("draw a chart"):
            from examples.flights import chart

            names = load.carrier_names()
            chart.draw(hours, carriers, conditions, names, chart_path)
        with stages.stage("stop Spark and the broker, remove its data"):
            stack.close()
    stages.finish()
    _show(console, carriers, conditions, names)
    _say_what_next(console, table_path, chart_path)


def _send(console: Console, servers: str) -> None:
    sources = [load.WEATHER, load.FLIGHTS]
    load.create_topics(servers, sources)
    columns = (TextColumn("  {task.description:<8}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        for source in sources:
            task = progress.add_task(source.topic, total=source.records)

            def delivered(count: int, task: Any = task) -> None:
                progress.update(task, completed=count)

            load.send(servers, source, delivered)


def _topic(spark: Any, servers: str, topic: str) -> Any:
    """A topic as a table."""
    reader = spark.read.format("millstream").option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", topic).option("columns", "value").load()


def _show(console: Console, carriers: list[Any], conditions: list[Any], names: dict[str, str]) -> None:
    late = f"{job.LATE_MINUTES}+ min late"
    found = {row.conditions: row for row in conditions}
    groups = [
        ("carriers, the five latest", [(names.get(row.carrier, row.carrier), row) for row in carriers[:5]]),
        ("weather at departure", [(name, found[name]) for name in job.WEATHER_CONDITIONS if name in found]),
    ]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in ("", "flights", "mean delay", late, "cancelled"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for group, rows in groups:
        table.add_row(f"[bold]{group}[/]")
        for name, row in rows:
            table.add_row(
                f" {name}",
                f"{row.flights:,}",
                f"{row.mean_delay_minutes:.1f} min",
                f"{row.late_percent:.1f} %",
                f"{row.cancelled_percent:.1f} %",
            )
        table.add_section()
    console.print("\n[bold]Departures from New York in 2013[/]")
    console.print(table)


def _say_what_next(console: Console, table_path: str, chart_path: str) -> None:
    python = os.path.relpath(sys.executable)
    command = os.path.join(os.path.dirname(python), "millstream")
    console.print(f"\nThe chart is [bold]{chart_path}[/], the table [bold]{table_path}[/].")
    console.print("The topics went with the broker. Fill them again in one that stays, and look into them:\n")
    for line in (
        f"{command} serve &",
        f"{python} {os.path.relpath(load.__file__)}",
        f"{command} topic describe flights",
        f"{command} consume flights --from 2013-07-04T12:00 --count 3",
        f"{command} consume weather --from -1 --until-end --json",
    ):
        console.print(f"  {line}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
