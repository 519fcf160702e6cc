"""How results are printed: tables for a person, tab-separated columns for a script, JSON on request."""

__all__ = ["print_json", "print_rows", "print_section"]

import json
import sys
from collections.abc import Iterable, Sequence

Cell = str | int | None


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table with headings on a terminal, and bare tab-separated rows anywhere else.

    Args:
        columns: headings.
        rows: one cell per column. None stands for "not known" and is printed as "-".
    """
    if sys.stdout.isatty():
        _print_table(None, columns, rows)
    else:
        _print_plain((), rows)


def print_section(kind: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print one of several tables of a description.

    Anywhere but on a terminal, each row starts with `kind`, so that a script can tell the sections apart.
    """
    if sys.stdout.isatty():
        _print_table(kind, columns, rows)
    else:
        _print_plain((kind,), rows)


def print_json(document: object) -> None:
    """Print one JSON document, indented."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def _print_plain(prefix: Sequence[Cell], rows: Iterable[Sequence[Cell]]) -> None:
    for row in rows:
        print("\t".join(_plain(cell) for cell in (*prefix, *row)))


def _plain(cell: Cell) -> str:
    if cell is None:
        return "-"
    # A tab or a line feed inside a cell would look like a column or a row of its own.
    return str(cell).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def _print_table(title: str | None, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [list(row) for row in rows]
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        numeric = bool(cells) and all(isinstance(row[index], int | None) for row in cells)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text("-" if cell is None else str(cell)) for cell in row))
    Console().print(table)
