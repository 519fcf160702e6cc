"""`millstream pipeline`: declared pipelines from topics to tables and topics, on Spark."""

__all__ = ["pipeline"]

import contextlib
import importlib.util
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Final

import typer

from millstream.cli.errors import CliError, warn
from millstream.cli.lazy import CommandGroup
from millstream.cli.output import print_json, print_rows, print_section
from millstream.spark.errors import PipelineError, SparkSourceError

pipeline = typer.Typer(
    name="pipeline",
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    help="Make, check and run pipelines on Spark, and see how they come along.",
)

ProjectArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROJECT]", help="Its directory or spark-pipeline.yml.  [default: this directory or one above]"
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Where Spark runs.  [default: as described, or this machine]"),
]

_INIT_EPILOG: Final = """\
\b
Examples:
  millstream pipeline init shop --topic orders
  cd shop && millstream pipeline run --until-drained
"""
_CHECK_EPILOG: Final = """\
Spark is started and resolves all definitions, but nothing is read or written. What could lose or double rows is
refused. Each line is a flow, where it goes, and where it is defined.

\b
Examples:
  millstream pipeline check
  millstream pipeline check shop --master spark://cluster:7077
"""
_RUN_EPILOG: Final = """\
A run goes on where the one before has ended, however that was. Ctrl-C or SIGTERM end it with the batches that are
going on; a second one at once. Definitions that could lose rows are refused, as by 'check'. When the output is no
terminal, each batch is a line: batch, flow, number, rows, rows/s, seconds, lag.

\b
Examples:
  millstream pipeline run
  millstream pipeline run shop --until-drained
  millstream pipeline run shop --once --full-refresh totals
"""
_STATUS_EPILOG: Final = """\
Spark need not run. Each line starts with its kind (pipeline, run, flow) when the output is not a terminal. A flow has
its last finished batch, the time of it, the rows it read in this run or the last, rows/s, and the records behind it.

\b
Examples:
  millstream pipeline status
  millstream pipeline status shop --json | jq '.flows[].lag'
"""


@pipeline.command("init", epilog=_INIT_EPILOG)
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the project, and of its directory.")],
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic that it reads.")] = "events",
    broker: Annotated[
        str, typer.Option("--broker", metavar="HOST:PORT", help="Where it reads that.")
    ] = "127.0.0.1:9092",
) -> None:
    """Make a new project that works at once."""
    from millstream.spark.pipelines.project import make_project

    with _spoken():
        for path in make_project(name, broker, topic):
            print(path)


@pipeline.command("check", epilog=_CHECK_EPILOG)
def check(project: ProjectArgument = None, master: MasterOption = None) -> None:
    """Look whether the definitions fit together and can lose nothing."""
    _check_spark()
    from millstream.spark.pipelines.engine import Engine
    from millstream.spark.pipelines.pipeline import load_safe
    from millstream.spark.pipelines.running import flow_targets

    with _spoken(), contextlib.ExitStack() as stack:
        spec = _spec(project)
        with _waiting("starting Spark"):
            engine = stack.enter_context(Engine(spec, master))
        with _waiting("loading the definitions"):
            graph = load_safe(engine, warn)
        with _waiting("resolving the flows"):
            engine.run(lambda _: None, dry=True)
    targets = flow_targets(graph, spec.root)
    print_rows(("flow", "to", "defined at"), [(flow.name, targets[flow.name], flow.where) for flow in graph.flows])


@pipeline.command("run", epilog=_RUN_EPILOG)
def run(
    project: ProjectArgument = None,
    until_drained: Annotated[
        bool, typer.Option("--until-drained", "--once", help="End with what there is when the run begins.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="How often to look for new records.")
    ] = 1.0,
    full_refresh: Annotated[
        list[str] | None,
        typer.Option("--full-refresh", metavar="TABLE", help="Begin a table or sink anew; may be repeated."),
    ] = None,
    full_refresh_all: Annotated[bool, typer.Option("--full-refresh-all", help="Begin all of them anew.")] = False,
    master: MasterOption = None,
) -> None:
    """Run a pipeline until it is stopped, or until it has read all there is."""
    _check_spark()
    from millstream.spark.pipelines.pipeline import Pipeline
    from millstream.spark.pipelines.stopping import StopWish

    with _spoken(), contextlib.ExitStack() as stack:
        chosen = Pipeline(project, master=master, warn=warn)
        stop = stack.enter_context(StopWish())
        start_s = time.monotonic()
        with _waiting("starting Spark"):
            stack.enter_context(chosen)
        with _waiting("loading the definitions"):
            chosen.load()
        end = chosen.run(
            until_drained=until_drained,
            interval_s=interval,
            full_refresh=full_refresh or [],
            full_refresh_all=full_refresh_all,
            stop=stop,
        )
    print_rows(("", "rows", "seconds"), [(end.state, end.rows, round(time.monotonic() - start_s))])


@pipeline.command("status", epilog=_STATUS_EPILOG)
def status(
    project: ProjectArgument = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            "-X",
            metavar="KEY=VALUE",
            help="What its brokers want to know and the run log does not: sasl.password=... Repeatable.",
        ),
    ] = None,
) -> None:
    """Show the last runs of a pipeline, and how far each flow has come."""
    from millstream.cli.spark_options import server_options
    from millstream.spark.pipelines.status import status_of

    with _spoken():
        found = status_of(_spec(project), server_options(properties, "--property"))
    for problem in found.problems:
        warn(problem)
    runs = [
        {
            "run": one.id,
            "state": one.state,
            "started": _time(one.started),
            "ended": _time(one.ended),
            "rows": one.rows,
            "error": one.error,
        }
        for one in found.runs
    ]
    flows: list[dict[str, Any]] = [
        {
            "flow": one.checkpoint.flow,
            "target": one.checkpoint.target,
            "batch": one.checkpoint.batch,
            "finished": _time(one.checkpoint.finished),
            "rows_per_s": one.rows_per_s,
            "lag": one.lag,
            "is_open": one.checkpoint.is_open,
            "position": one.checkpoint.position,
        }
        for one in found.flows
    ]
    if as_json:
        print_json({"name": found.name, "is_running": found.is_running, "runs": runs, "flows": flows})
        return
    print_section("pipeline", ("pipeline", "state"), [(found.name, "running" if found.is_running else "not running")])
    print_section("run", ("run", "state", "started", "ended", "rows", "error"), [tuple(one.values()) for one in runs])
    columns = ("flow", "target", "batch", "finished", "rows/s", "lag")
    print_section("flow", columns, [tuple(one.values())[: len(columns)] for one in flows])


def _check_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise CliError("Spark is not installed", "run pip install 'millstream[spark]'")


def _spec(project: str | None) -> Any:
    from millstream.spark.pipelines.spec import find_spec, load_spec

    return load_spec(find_spec(project))


@contextlib.contextmanager
def _spoken() -> Iterator[None]:
    """Turn the errors of pipelines into those of the command line."""
    try:
        yield
    except PipelineError as error:
        raise CliError(error.what, error.remedy) from None
    except SparkSourceError as error:
        what, _, remedy = str(error).rpartition("; ")
        raise CliError(what or str(error), remedy if what else "see 'millstream pipeline --help'") from None


@contextlib.contextmanager
def _waiting(what: str) -> Iterator[None]:
    """Say on a terminal what is waited for."""
    if not sys.stdout.isatty():
        yield
        return
    from rich.console import Console

    with Console().status(f"{what} ..."):
        yield


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")
