"""Where the files of a table lie, and what they are called.

    <table>/rows-....parquet, <table>/day=2026-01-31/rows-....parquet     rows (an Iceberg table: under data/)
    <table>/0-schema-....parquet                                          the schema of a Parquet table, without rows
    <table>/_spark_metadata/  _delta_log/  metadata/                      what says which files the table consists of
    <table>/_millstream/staging/<application>/<batch>/rows-....parquet    written by a task, not published
    <table>/_millstream/intents/<application>~<batch>.json                files on their way from there into the table
    <table>/_millstream/catalog.db                                        Iceberg's catalog, unless another is given

Readers that list directories, Spark's included, pass over names that begin with an underscore.
"""

import os
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from millstream.spark.errors import BadOption

__all__ = [
    "INTENTS",
    "NULL_PARTITION",
    "OWN",
    "ROWS_PREFIX",
    "SCHEMA_PREFIX",
    "STAGING",
    "directory_name",
    "partition_directory",
    "plain_partition_directory",
    "table_root",
]

OWN: Final = "_millstream"
STAGING: Final = f"{OWN}/staging"
INTENTS: Final = f"{OWN}/intents"
ROWS_PREFIX: Final = "rows-"
SCHEMA_PREFIX: Final = "0-schema-"
"""Sorts before ROWS_PREFIX and before names of columns: Spark takes the schema of the first file, by name."""

NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""How Hive and Spark spell a missing value in the name of a directory."""

_MOST_NAME_CHARACTERS: Final = 200
"""Of an application's directory: file systems take 255 bytes, and the number of a batch is added in places."""

_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(32)}
"""What Spark escapes in names of partition directories. Source: ExternalCatalogUtils.charToEscape."""


def table_root(path: str) -> str:
    """The directory of a table, absolute.

    Args:
        path: the option path: a local path, or a URI of scheme file.

    Raises:
        BadOption: another scheme. Publishing needs a rename and a link that are atomic, which object stores lack.
    """
    parts = urlsplit(path)
    if parts.scheme == "file":
        if parts.netloc not in {"", "localhost"}:
            raise BadOption(f"path takes file:///DIRECTORY, not {path!r}")
        path = unquote(parts.path)
    elif "://" in path:
        raise BadOption(f"path takes a directory of a local or shared file system, not {path!r}")
    if not path.strip():
        raise BadOption("the option path is missing: the directory of the table")
    return os.path.abspath(path)


def directory_name(application: str) -> str:
    """The name of the directory of an application.

    Raises:
        BadOption: it would be too long.
    """
    name = quote(application, safe=" ").replace(".", "%2E")
    if not name or len(name) > _MOST_NAME_CHARACTERS:
        raise BadOption(f"applicationId takes 1 to {_MOST_NAME_CHARACTERS} characters, not {application[:40]!r}...")
    return name


def partition_directory(values: tuple[tuple[str, str | None], ...]) -> str:
    """The directory of a partition as Spark and Hive name it, `day=2026-01-31/city=K%3Aln`; empty without columns."""
    return "/".join(f"{_escaped(name)}={NULL_PARTITION if not value else _escaped(value)}" for name, value in values)


def plain_partition_directory(values: tuple[tuple[str, str | None], ...]) -> str:
    """The same for people's eyes only, in characters that mean themselves everywhere (Delta, Iceberg)."""
    return "/".join(f"{_plain(name)}={NULL_PARTITION if value is None else _plain(value)}" for name, value in values)


def _escaped(text: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def _plain(text: str) -> str:
    # Files have names of their own, so it does no harm that two values may come out alike.
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in text[:80])
