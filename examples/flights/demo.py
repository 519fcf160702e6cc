"""The main job on real data, from start to end: `make demo`, or python examples/flights/demo.py.

A broker is started on a temporary data directory. The flights of 2013 from New York's airports and the weather there
go into two topics through four protocols at once, some records of them broken. A declared pipeline takes the topics
apart into two tables and a quarantine; Spark joins the tables into one more, of Parquet; figures and a chart show
what comes out.
"""

import argparse
import contextlib
import itertools
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from confluent_kafka import KafkaException
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from examples.flights import job, load, senders
from examples.flights.broker import BrokerFailed, broker
from millstream.spark.errors import SparkSourceError
from millstream.spark.pipelines.pipeline import Pipeline
from millstream.spark.pipelines.running import DRAINED
from millstream.spark.tables import read_live

_DEFAULT_OUTPUT: Final = "demo-output"
_PIPELINE: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pipeline")
_SPEC: Final = "spark-pipeline.yml"
_USUAL_BROKER: Final = "127.0.0.1:9092"
_INTERRUPTED: Final = 130


class DemoFailed(Exception):
    """A stage went wrong."""


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
    parser = argparse.ArgumentParser(description="Flights and weather through topics and a pipeline into a chart.")
    parser.add_argument("--output", default=_DEFAULT_OUTPUT, metavar="DIR", help="where results go [%(default)s]")
    parser.add_argument(
        "--flights", type=int, default=load.FLIGHTS.records, metavar="N", help="only the first N flights of the year"
    )
    given = parser.parse_args()
    console = Console(highlight=False)
    try:
        run(console, given.output, given.flights)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return _INTERRUPTED
    except (BrokerFailed, DemoFailed, senders.SendingFailed, SparkSourceError, load.DataMissing, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KafkaException as error:
        print(f"error: the broker answered: {error.args[0].str()}", file=sys.stderr)
        return 1
    return 0


def run(console: Console, output: str, flights_max: int) -> None:
    """The stages, one after the other."""
    os.makedirs(output, exist_ok=True)
    project, chart_path = os.path.join(output, "pipeline"), os.path.join(output, "delays.png")
    departures_path = os.path.join(output, "departures.parquet")
    tables = os.path.join(project, "tables")
    stages = Stages(console)
    with contextlib.ExitStack() as stack:
        data_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="millstream-demo-"))
        with stages.stage("start a broker"):
            addresses = stack.enter_context(broker(data_dir, os.path.join(output, "broker.log")))
        _copy_pipeline(project, addresses["kafka"])
        started = stack.enter_context(_started_meanwhile(Pipeline(project)))
        with stages.stage("read a year of flights and weather"):
            records = _records(flights_max)
        with stages.stage("send them through four protocols at once", shows_progress=True):
            _send(console, addresses, records)
        with stages.stage("start Spark, begun with the broker"):
            pipeline = started()
        with stages.stage("load the pipeline: two topics, two tables, a quarantine"):
            pipeline.load()
        with stages.stage("run the pipeline", shows_progress=True):
            if pipeline.run(until_drained=True).state != DRAINED:
                raise KeyboardInterrupt
        with stages.stage("join the tables, write the result, count delays"):
            spark = pipeline.session
            flights, weather = (read_live(spark, os.path.join(tables, name)) for name in ("flights", "weather"))
            job.with_weather(flights, weather).write.mode("overwrite").parquet(os.path.abspath(departures_path))
            departures = spark.read.parquet(os.path.abspath(departures_path))
            carriers = job.delays_by_carrier(departures).collect()
            hours = job.delays_by_hour(departures).collect()
            conditions = job.delays_by_conditions(departures).collect()
            faults = job.faults(read_live(spark, os.path.join(tables, "quarantine"))).collect()
        with stages.stage("draw a chart"):
            from examples.flights import chart

            names = load.carrier_names()
            chart.draw(hours, carriers, conditions, names, chart_path)
        with stages.stage("stop Spark and the broker, remove its data"):
            stack.close()
    stages.finish()
    _show(console, carriers, conditions, names)
    _show_faults(console, faults)
    _say_what_next(console, project, chart_path, departures_path)


def _records(flights_max: int) -> dict[str, list[load.Row]]:
    """What is sent, by the name of the way."""
    flights = list(itertools.islice(load.FLIGHTS.rows(), flights_max))
    rows = {load.FLIGHTS.topic: flights, load.WEATHER.topic: list(load.WEATHER.rows())}
    return {
        way.name: list(senders.with_faults(row for row in rows[way.topic] if row.origin in way.origins))
        for way in senders.WAYS
    }


def _send(console: Console, addresses: dict[str, str], records: dict[str, list[load.Row]]) -> None:
    """Send everything, each way on a thread of its own."""
    load.create_topics(addresses["kafka"], [load.WEATHER, load.FLIGHTS])
    failures: list[Exception] = []
    columns = (TextColumn("  {task.description:<26}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:

        def go(way: senders.Way, task: Any) -> None:
            try:
                way.send(
                    addresses[way.listener],
                    way.topic,
                    records[way.name],
                    lambda count: progress.update(task, completed=count),
                )
            except (KafkaException, OSError, senders.SendingFailed) as error:
                failures.append(error)

        threads = []
        for way in senders.WAYS:
            name = f"{way.name}: {way.topic}" + (f" from {way.origins[0]}" if len(way.origins) == 1 else "")
            task = progress.add_task(name, total=len(records[way.name]))
            threads.append(threading.Thread(target=go, args=(way, task)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def _copy_pipeline(project: str, servers: str) -> None:
    """Put the pipeline's definitions into a new project that reads from this broker."""
    if os.path.exists(project):
        if not os.path.exists(os.path.join(project, _SPEC)):
            raise DemoFailed(f"{project} is there and is no pipeline; remove it, or choose another --output")
        shutil.rmtree(project)
    shutil.copytree(_PIPELINE, project, ignore=shutil.ignore_patterns("__pycache__", "storage", "tables"))
    path = os.path.join(project, _SPEC)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(_USUAL_BROKER, servers))


@contextlib.contextmanager
def _started_meanwhile(pipeline: Pipeline) -> Iterator[Callable[[], Pipeline]]:
    """Start a pipeline's Spark beside what goes on in the block; gives a function that waits for it."""
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(pipeline.__enter__)
        try:
            yield starting.result
        finally:
            if starting.exception() is None:
                pipeline.__exit__(None, None, None)


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


def _show_faults(console: Console, faults: list[Any]) -> None:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in ("in quarantine from", "why", "records"):
        table.add_column(heading, justify="right" if heading == "records" else "left", max_width=64)
    for row in faults:
        table.add_row(row.topic, row.reason, f"{row.records:,}")
    console.print(table)


def _say_what_next(console: Console, project: str, chart_path: str, departures_path: str) -> None:
    python = os.path.relpath(sys.executable)
    command = os.path.join(os.path.dirname(python), "millstream")
    path = os.path.join(project, _SPEC)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"127\.0\.0\.1:\d+", _USUAL_BROKER, text))
    console.print("\nWhat is there now:\n")
    for place, what in (
        (chart_path, "the chart"),
        (departures_path, "all departures with their weather, a Parquet table"),
        (project, "the pipeline, with its tables"),
    ):
        console.print(f"  [bold]{place:<32}[/] {what}", soft_wrap=True)
    console.print(
        "\nThe topics went with the broker. Fill them again in one that stays, and let the pipeline follow it:\n"
    )
    for line in (
        f"{command} serve &",
        f"{python} {os.path.relpath(load.__file__)}",
        f"{command} consume flights --from 2013-07-04T12:00 --count 3",
        f"rm -r {project}/storage {project}/tables",
        f"{command} pipeline run {project}",
        f"{command} pipeline status {project}",
    ):
        console.print(f"  {line}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
