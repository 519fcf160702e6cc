"""`millstream table`: describe tables that Spark wrote, and keep them in shape."""

__all__ = ["table"]

import importlib.util
import re
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from millstream.cli.errors import USAGE, CliError
from millstream.cli.lazy import CommandGroup
from millstream.cli.output import print_json, print_rows, print_section
from millstream.model.errors import MillstreamError

table = typer.Typer(
    name="table",
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    help="Describe, compact and expire tables that Spark writes.",
)

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_UNITS_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

_DESCRIBE_EPILOG: Final = """\
Small files are those that a compaction would replace. Staged files are written, but not published. Each line starts
with its kind (table, column) when the output is not a terminal.

\b
Examples:
  millstream table describe /data/flights
  millstream table describe /data/flights --json | jq .rows
"""
_COMPACT_EPILOG: Final = """\
The columns are files, bytes and rows, before and after. A stream may write to the table meanwhile.

\b
Examples:
  millstream table compact /data/flights
  millstream table compact /data/flights --file-size 512M --compression zstd
"""
_EXPIRE_EPILOG: Final = """\
The columns are earlier states given up, files removed, and their bytes. A query that has begun to read an earlier
state fails if its files go: --older-than should be more than the longest query takes, and --leftovers-older-than more
than the longest micro-batch and the longest compaction.

\b
Examples:
  millstream table expire /data/flights
  millstream table expire /data/flights --older-than 12h
"""

PathArgument = Annotated[str, typer.Argument(metavar="PATH", help="Directory of the table.")]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help="parquet, delta or iceberg; by default what is there."),
]
CatalogOption = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog", metavar="KEY=VALUE", help="A property of Iceberg's catalog; may be given several times."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print a JSON object.")]


@table.command("describe", epilog=_DESCRIBE_EPILOG)
def describe(
    path: PathArgument, table_format: FormatOption = None, catalog: CatalogOption = None, as_json: JsonOption = False
) -> None:
    """Show the columns of a table, its files and rows."""
    tables = _tables()
    found = _done(tables.describe, path, _format(table_format), _catalog(catalog))
    document = {**asdict(found), "columns": dict(found.columns)}
    if as_json:
        print_json(document)
        return
    heads = ("format", "version", "files", "rows", "bytes", "small_files", "staged_files")
    print_section("table", [head.replace("_", " ") for head in heads], [[document[head] for head in heads]])
    rows = [(name, kind, "yes" if name in found.partition_by else "no") for name, kind in found.columns]
    print_section("column", ("column", "type", "partition"), rows)


@table.command("compact", epilog=_COMPACT_EPILOG)
def compact(
    path: PathArgument,
    table_format: FormatOption = None,
    catalog: CatalogOption = None,
    file_size: Annotated[str, typer.Option(metavar="BYTES", help="About how large files become; K, M, G.")] = "128M",
    compression: Annotated[str, typer.Option(help="Codec of the new files.")] = "snappy",
    as_json: JsonOption = False,
) -> None:
    """Replace small files by larger ones. The rows stay the same."""
    tables = _tables()
    done = _done(
        tables.compact,
        path,
        _format(table_format),
        _catalog(catalog),
        file_bytes=_quantity("--file-size", file_size, _UNITS_BYTES),
        compression=compression,
    )
    _print(asdict(done), as_json)


@table.command("expire", epilog=_EXPIRE_EPILOG)
def expire(
    path: PathArgument,
    table_format: FormatOption = None,
    catalog: CatalogOption = None,
    older_than: Annotated[str, typer.Option(metavar="TIME", help="States replaced before; s, m, h, d.")] = "7d",
    leftovers_older_than: Annotated[
        str, typer.Option(metavar="TIME", help="Files of attempts that failed; s, m, h, d.")
    ] = "1d",
    as_json: JsonOption = False,
) -> None:
    """Remove the files that the table needs no more, and those of attempts that failed."""
    tables = _tables()
    done = _done(
        tables.expire,
        path,
        _format(table_format),
        _catalog(catalog),
        older_than_s=_quantity("--older-than", older_than, _UNITS_S),
        leftovers_older_than_s=_quantity("--leftovers-older-than", leftovers_older_than, _UNITS_S),
    )
    _print(asdict(done), as_json)


def _tables() -> Any:
    """What does the work; it needs the libraries of the extra `spark`."""
    if importlib.util.find_spec("pyarrow") is None:
        raise CliError("pyarrow is not installed", "pip install 'millstream[spark]'")
    from millstream.spark import tables

    return tables


def _done(function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except MillstreamError as error:
        what, _, remedy = str(error).partition("; ")
        raise CliError(what, remedy or "see the option path") from None
    except OSError as error:
        raise CliError(str(error), "make room, or change the permissions, and run it again") from None


def _print(document: dict[str, int], as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_rows([name.replace("_", " ") for name in document], [list(document.values())])


def _format(text: str | None) -> Any:
    from millstream.spark.tables import TableFormat

    if text is None:
        return None
    if text not in set(TableFormat):
        raise CliError(f"there is no format {text!r}", f"give --format one of {', '.join(TableFormat)}", status=USAGE)
    return TableFormat(text)


def _catalog(properties: list[str] | None) -> dict[str, str]:
    pairs = [text.partition("=") for text in properties or ()]
    if any(not name or not equals for name, equals, _ in pairs):
        raise CliError("--catalog takes KEY=VALUE", "as in --catalog type=rest", status=USAGE)
    return {name: value for name, _, value in pairs}


def _quantity(option: str, text: str, units: dict[str, int]) -> int:
    found = re.fullmatch(r"(\d+)([a-zA-Z]?)", text)
    if found is None or found[2] not in units:
        shown = ", ".join(filter(None, units))
        raise CliError(
            f"{option} takes a number with a unit ({shown}), not {text!r}", f"change {option}", status=USAGE
        )
    return int(found[1]) * units[found[2]]
