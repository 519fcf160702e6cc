"""Writes the parts of the documentation that follow from the code; `make docs` runs it, a test holds it true.

A part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; everything else in the files is written by hand.
"""

import importlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

from typer.testing import CliRunner

from millstream.broker.configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigKey
from millstream.cli.app import app
from millstream.sessions.iggy.table import ENTRIES as IGGY_ENTRIES
from millstream.sessions.iggy.topic_options import TOPIC_OPTIONS
from millstream.sessions.kafka.table import HANDLERS
from millstream.sessions.pulsar.table import HANDLERS as PULSAR_HANDLERS
from millstream.wire.iggy.commands import NON_REPLICATED, Command
from millstream.wire.iggy.dialects import Dialect

ROOT = Path(__file__).resolve().parent.parent
FILES = (
    "README.md",
    "docs/configuration.md",
    "docs/kafka.md",
    "docs/pulsar.md",
    "docs/iggy.md",
    "docs/http.md",
    "docs/command-line.md",
    "docs/matrix.md",
)
HTTP_FAMILIES = {
    "health": "Health",
    "metrics": "Metrics",
    "lookup": "Lookup",
    "clusters": "Cluster and broker",
    "tenants": "Tenants",
    "namespaces": "Namespaces",
    "policies": "Policies of a namespace",
    "topic_policies": "Policies of a topic",
    "topics": "Topics",
    "stats": "Figures",
    "subscriptions": "Subscriptions",
    "schemas": "Schemas",
    "volatile": "Non-persistent topics",
}
MATRIX_NAMES = {"kafka": "Kafka", "kafka07": "Kafka 0.7", "pulsar": "Pulsar", "iggy": "Iggy", "spark": "Spark"}
COMMANDS = (
    "",
    "serve",
    "topic",
    "topic create",
    "topic list",
    "topic describe",
    "topic delete",
    "produce",
    "consume",
    "group",
    "group list",
    "group describe",
    "group delete",
    "table",
    "table describe",
    "table compact",
    "table expire",
    "pipeline",
    "pipeline init",
    "pipeline check",
    "pipeline run",
    "pipeline status",
    "job",
    "job archive",
    "job replay",
    "job backfill",
    "job compact",
    "job repartition",
    "job copy",
)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    lines = [list(head)]
    lines.append(["---"] * len(lines[0]))
    lines += [list(row) for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _values(key: ConfigKey) -> str:
    if key.choices:
        return ", ".join(key.choices)
    return key.kind.value


def topic_settings() -> str:
    """Every setting of a topic."""
    rows = (
        (f"`{key.name}`", f"`{key.default}`", _values(key), "" if key.obeyed else "kept only", key.doc)
        for key in TOPIC_CONFIGS.values()
    )
    return table(("setting", "default", "values", "", "what it does"), rows)


def server_settings() -> str:
    """Every setting of the server that is not the default of a topic's."""
    defaults = {key.server_name for key in TOPIC_CONFIGS.values()}
    rows = (
        (f"`{key.name}`", f"`{key.default}`" if key.default else "", _values(key), key.doc)
        for key in BROKER_CONFIGS.values()
        if key.name not in defaults
    )
    return table(("setting", "default", "values", "what it does"), rows)


def topic_defaults() -> str:
    """The settings of the server that are the defaults of a topic's."""
    rows = ((f"`{key.server_name}`", f"`{key.name}`") for key in TOPIC_CONFIGS.values())
    return table(("server setting", "is the default of the topic setting"), rows)


def kafka_apis() -> str:
    """Every Kafka API that is served, with its versions."""
    rows = (
        (
            str(handler.key),
            handler.api.name,
            f"{handler.api.versions.start} to {min(handler.api.versions.stop, handler.advertised.stop) - 1}",
        )
        for handler in sorted(HANDLERS.values(), key=lambda handler: handler.key)
    )
    return table(("key", "API", "versions"), rows)


def pulsar_commands() -> str:
    """Every Pulsar command that is served, with what it does."""
    rows = (
        (str(handler.type), handler.name, (handler.handle.__doc__ or "").split("\n", 1)[0])
        for handler in sorted(PULSAR_HANDLERS.values(), key=lambda handler: handler.type)
    )
    return table(("type", "command", "what the server does"), rows)


def iggy_commands() -> str:
    """Every Iggy command that is served, with how it travels in dialect D, and in which dialects it is."""
    rows = (
        (str(code), entry.command.name, _in_dialect_d(entry.command), _dialects(entry.command))
        for code, entry in sorted(IGGY_ENTRIES.items())
    )
    return table(("code", "command", "in D", "dialects"), rows)


def _in_dialect_d(command: Command) -> str:
    if not command.in_dialect(Dialect.D):
        return "-"
    return "code" if command.operation == NON_REPLICATED else f"operation {command.operation}"


def _dialects(command: Command) -> str:
    those = [dialect.name for dialect in Dialect if command.in_dialect(dialect)]
    return f"{those[0]} to {those[-1]}"


def iggy_options() -> str:
    """Every option of a topic in Iggy's dialect D."""
    rows = (
        (f"`{option.key}`", option.kind.name.lower(), f"`{option.default}`", option.doc)
        for option in TOPIC_OPTIONS.values()
    )
    return table(("option", "kind", "default", "what it does"), rows)


def http_calls() -> str:
    """Every HTTP call of Pulsar's kind, a table for each file of routes."""
    parts = []
    for name, title in HTTP_FAMILIES.items():
        routes = importlib.import_module(f"millstream.server.http.{name}").router.routes
        rows = (
            (
                f"{', '.join(sorted(route.methods))} `{route.path.removeprefix('/admin/v2')}`",
                (route.description or "").split("\n", 1)[0].strip(),
            )
            for route in routes
            if route.include_in_schema
        )
        parts.append(f"### {title}\n\n{table(('call', 'what it does'), rows)}")
    return "\n\n".join(parts)


def matrix() -> str:
    """What arrives of a message, a table for each protocol that writes."""
    words = {"carried": "✓", "lost": "—", "empty": "as empty", "base64": "in base64", "ms": "✓, in ms"}
    words |= {"first": "the first", "last": "the last"}

    def told(word: str) -> str:
        return ", ".join(words.get(one, f"`{one}`") for one in word.split(", "))

    parts = []
    for writer, facts in tomllib.loads((ROOT / "docs" / "matrix.toml").read_text()).items():
        rows = ((name, *(told(row[reader]) for reader in MATRIX_NAMES)) for name, row in facts.items())
        head = ("", *(f"{name} reads" for name in MATRIX_NAMES.values()))
        parts.append(f"### {MATRIX_NAMES[writer]} writes\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def matrix_speed() -> str:
    """How many records a second one core reads, by writer and reader: what the tests of the matrix have measured."""
    told = json.loads((ROOT / "docs" / "matrix-speed.json").read_text())
    parts = []
    for size, batches in told["batches"].items():
        written = "in batches of one" if size == "1" else f"in batches of {size}"
        for kind, title in (("first", "the first reader"), ("ten", "ten readers in turns, all together")):
            rows = (
                (f"{MATRIX_NAMES[writer]} wrote", *(f"{figures[reader] / 1e6:.2g}" for reader in batches[kind]))
                for writer, figures in batches[kind].items()
            )
            head = (
                f"{written}, {title}".capitalize(),
                *(f"{MATRIX_NAMES[reader]} reads" for reader in batches[kind]),
            )
            parts.append(table(head, rows))
    return "\n\n".join(parts)


def help_texts() -> str:
    """The help of every command."""
    parts = []
    for command in COMMANDS:
        words = [*command.split(), "--help"]
        result = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke(app, words, prog_name="millstream")
        lines = "\n".join(line.rstrip() for line in result.output.strip("\n").splitlines())
        parts.append(f"## `millstream {command}".rstrip() + f"`\n\n```text\n{lines}\n```")
    return "\n\n".join(parts)


PARTS: dict[str, Callable[[], str]] = {
    "topic settings": topic_settings,
    "server settings": server_settings,
    "topic defaults": topic_defaults,
    "kafka apis": kafka_apis,
    "pulsar commands": pulsar_commands,
    "iggy commands": iggy_commands,
    "iggy options": iggy_options,
    "http calls": http_calls,
    "help texts": help_texts,
    "matrix": matrix,
    "matrix speed": matrix_speed,
}


def generated(text: str) -> str:
    """A file's text with every part written anew."""

    def write(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"<!-- begin {name} -->\n{PARTS[name]()}\n<!-- end {name} -->"

    return re.sub(r"<!-- begin ([a-z ]+) -->\n.*?<!-- end \1 -->", write, text, flags=re.DOTALL)


def main() -> None:
    """Write all files anew."""
    for name in FILES:
        path = ROOT / name
        path.write_text(generated(path.read_text()))


if __name__ == "__main__":
    main()
