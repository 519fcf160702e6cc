"""python -m bench: measure Millstream and the peers found on this machine."""

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console

from bench import machine
from bench.lines import LINES, Sizes
from bench.load import SHAPES
from bench.report import OURS, print_line, print_systems, write_chart, write_json
from bench.results import Results
from bench.run import find, measure_line
from bench.systems import DEFAULT_SYSTEMS, SYSTEMS

_RESULTS: Final = Path(__file__).parent / "results"
# Of a table written to a file or a pipe, which wraps nothing.
_WIDTH: Final = 250

_FULL: Final = Sizes(
    seconds=0.35,
    fill_bytes=32_000_000,
    record_bytes=(100, 1_000),
    shape_names=tuple(shape.name for shape in SHAPES),
    rate=500,
    rate_seconds=4.0,
)
_QUICK: Final = Sizes(
    seconds=0.12,
    fill_bytes=4_000_000,
    record_bytes=(100,),
    shape_names=("1 record", "100 records", "128 KB"),
    rate=500,
    rate_seconds=1.0,
)
_FULL_REPETITIONS: Final = 3


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run of under a minute; not for quoting")
    parser.add_argument(
        "--only",
        action="append",
        choices=list(LINES),
        metavar="LINE",
        help="measure this line (repeat for more): %(choices)s",
    )
    parser.add_argument(
        "--peer",
        action="append",
        choices=list(SYSTEMS),
        metavar="NAME",
        help="compare with this system (repeat for more): %(choices)s",
    )
    parser.add_argument(
        "--repetitions", type=int, help=f"of every measurement (default {_FULL_REPETITIONS}, quick: 1)"
    )
    parser.add_argument("--seconds", type=float, help=f"of one throughput measurement (default {_FULL.seconds})")
    parser.add_argument("--rate", type=int, help=f"records per second of the latency line (default {_FULL.rate})")
    parser.add_argument(
        "--rate-seconds", type=float, help=f"length of the latency line (default {_FULL.rate_seconds})"
    )
    parser.add_argument("--directory", type=Path, help="where the servers keep their data (default: a temporary one)")
    parser.add_argument("--output", type=Path, default=_RESULTS, help="where the results go (default: bench/results)")
    return parser.parse_args()


def _sizes(arguments: argparse.Namespace) -> Sizes:
    base = _QUICK if arguments.quick else _FULL
    return Sizes(
        seconds=arguments.seconds or base.seconds,
        fill_bytes=base.fill_bytes,
        record_bytes=base.record_bytes,
        shape_names=base.shape_names,
        rate=arguments.rate or base.rate,
        rate_seconds=arguments.rate_seconds or base.rate_seconds,
    )


def main() -> int:
    """Run what the command line asks for and return the exit status."""
    arguments = _arguments()
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
    progress = Console(stderr=True)
    names = [name for name in SYSTEMS if name in (arguments.peer or DEFAULT_SYSTEMS) or name.startswith(OURS)]
    repetitions = arguments.repetitions or (1 if arguments.quick else _FULL_REPETITIONS)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as temporary:
        root = Path(temporary)
        candidates = {name: SYSTEMS[name]() for name in names}
        results = Results(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=machine.describe(root),
            settings={"quick": arguments.quick, "repetitions": repetitions, "sizes": _sizes(arguments)},
            systems=[find(system, root) for system in candidates.values()],
        )
        print_systems(console, results)
        systems = [candidates[name] for name in results.measured()]
        with progress.status("") as status:
            for name in LINES:
                if arguments.only is None or name in arguments.only:
                    line = LINES[name](_sizes(arguments))
                    results.lines.append(measure_line(line, systems, root, repetitions, status.update))
                    print_line(console, results, results.lines[-1])
    if OURS in results.measured():
        console.print(
            f"Median (min-max) of {repetitions}. 'x PEER' is how many times better {OURS} is: above 1 it is."
        )
    arguments.output.mkdir(parents=True, exist_ok=True)
    stem = arguments.output / f"bench-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    write_json(results, stem.with_suffix(".json"))
    drawn = write_chart(results, stem.with_suffix(".png"))
    console.print(
        f"{time.perf_counter() - began:.0f} s; {stem}.json"
        + (f", {stem}.png" if drawn else "; no matplotlib, no chart")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
