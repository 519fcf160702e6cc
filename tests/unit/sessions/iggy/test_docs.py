"""The guide for Iggy's users lists what is served, and nothing else."""

import re
from pathlib import Path

from millstream.sessions.iggy.table import ENTRIES
from millstream.sessions.iggy.topic_options import TOPIC_OPTIONS

GUIDE = (Path(__file__).parents[4] / "docs" / "iggy.md").read_text()


def test_every_command_is_listed() -> None:
    listed = {int(code): name for code, name in re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", GUIDE, re.MULTILINE)}
    assert listed == {code: entry.command.name for code, entry in ENTRIES.items()}


def test_every_option_is_listed() -> None:
    for option in TOPIC_OPTIONS.values():
        assert f"| `{option.key}` | {option.kind.name.lower()} | `{option.default}` | {option.doc} |" in GUIDE
