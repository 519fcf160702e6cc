"""The tables, the JSON file and the chart of a run."""

import json
import math
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.lines import Metric
from bench.results import Cell, LineResult, Results

__all__ = ["OURS", "print_line", "print_systems", "write_chart", "write_json"]

OURS: Final = "millstream"


def number(value: float) -> str:
    """Print a number with three significant digits, from ten thousand on in thousands (k) or millions (M)."""
    for limit, divisor, suffix in ((1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= limit:
            return number(value / divisor) + suffix
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _cell(cell: Cell, key: str) -> str:
    spread = cell.spread(key)
    if spread is None:
        return "failed" if cell.failures else cell.note
    if len(cell.samples) == 1:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.low)}-{number(spread.high)})"


def print_systems(console: Console, results: Results) -> None:
    """Print what was found and what was not, and the machine."""
    table = Table(title="Systems", title_justify="left")
    for heading in ("system", "version", "a record is acknowledged when"):
        table.add_column(heading)
    for system in results.systems:
        found = f"not found: {system.missing}" if system.missing else system.version
        table.add_row(system.name, found, system.promise)
    console.print(table)
    for name, value in results.machine.items():
        console.print(f"{name}: {value}", highlight=False)


def print_line(console: Console, results: Results, line: LineResult) -> None:
    """Print one line: median (min-max) of each system, and how many times better ours is than each peer."""
    systems = line.measured()
    peers = [name for name in systems if OURS in systems and not name.startswith(OURS)]
    table = Table(title=line.title, title_justify="left")
    table.add_column("case", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for name in systems:
        table.add_column(name, justify="right", no_wrap=True)
    for name in peers:
        table.add_column(f"x {name}", justify="right", no_wrap=True)
    for case, cells in line.cells.items():
        for metric in line.metrics:
            ratios = [line.ratio(case, metric, OURS, peer) for peer in peers]
            table.add_row(
                case,
                metric.unit,
                *[_cell(cells[name], metric.key) for name in systems],
                *["" if ratio is None else f"{ratio:.2f}" for ratio in ratios],
            )
    console.print(table)
    for case, cells in line.cells.items():
        for name, cell in cells.items():
            if cell.failures:
                console.print(f"  {case}, {name}: {cell.note}", markup=False, highlight=False)


def write_json(results: Results, path: Path) -> None:
    """Write the whole run, every sample included."""
    path.write_text(json.dumps(results.as_json(), indent=1) + "\n")


def write_chart(results: Results, path: Path) -> bool:
    """Draw the first metric of every line as bars, one panel a line.

    Returns:
        Whether matplotlib is installed; without it there is no chart.
    """
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = 2
    rows = -(-len(results.lines) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(15, 4.2 * rows), squeeze=False, layout="constrained")
    systems = results.measured()
    for index, axis in enumerate(axes.flat):
        if index >= len(results.lines):
            axis.set_axis_off()
            continue
        _draw_line(axis, results.lines[index], systems)
    by_label = {
        label: bar for axis in axes.flat for bar, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(by_label.values(), by_label, loc="outside upper center", ncols=len(systems))
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True


def _draw_line(axis: Any, line: LineResult, systems: list[str]) -> None:
    """Draw grouped bars: a group for each case and metric, a bar for each system, whiskers from min to max."""
    # Throughput is charted by bytes only; where there are percentiles or stages, all are shown.
    metrics = line.metrics[:1] if line.metrics[0].higher_is_better else line.metrics
    groups = [(case, metric) for case in line.cells for metric in metrics]
    its_systems = line.measured()
    width = 0.8 / max(len(its_systems), 1)
    for at, name in enumerate(its_systems):
        spreads = [line.cells[case][name].spread(metric.key) for case, metric in groups]
        heights = [spread.median if spread else 0.0 for spread in spreads]
        below = [spread.median - spread.low if spread else 0.0 for spread in spreads]
        above = [spread.high - spread.median if spread else 0.0 for spread in spreads]
        positions = [group + (at - (len(its_systems) - 1) / 2) * width for group in range(len(groups))]
        color = f"C{systems.index(name)}"
        axis.bar(positions, heights, width, label=name, color=color, yerr=[below, above], error_kw={"linewidth": 0.8})
    axis.set_xticks(range(len(groups)), [_label(line, case, metric) for case, metric in groups], fontsize=8)
    axis.tick_params(axis="x", labelrotation=20)
    if line.metrics[0].higher_is_better or len(line.cells) > 1 < len(metrics):
        # These span decades. Bars need a common floor, so the axis begins at a power of ten.
        lowest = min((bar.get_height() for bar in axis.patches if bar.get_height() > 0), default=1.0)
        axis.set_yscale("log")
        axis.set_ylim(bottom=10.0 ** math.floor(math.log10(lowest)))
    direction = "higher is better" if metrics[0].higher_is_better else "lower is better"
    axis.set_title(f"{line.title}\n{metrics[0].unit.split()[0].rstrip(',')}, {direction}", fontsize=10)
    axis.grid(axis="y", alpha=0.3)


def _label(line: LineResult, case: str, metric: Metric) -> str:
    """Name a group of bars by what tells it from the others."""
    if metric.higher_is_better or len(line.metrics) == 1:
        return case
    return metric.unit if len(line.cells) == 1 else f"{metric.unit.split()[-1]}\n{case}".replace(", ", "\n")
