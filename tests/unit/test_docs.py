"""The documentation says what the code does."""

import re
from pathlib import Path

import pytest

from docs.generate import FILES, generated
from millstream.broker.configs import BROKER_CONFIGS, TOPIC_CONFIGS
from millstream.sessions.kafka.table import HANDLERS

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("name", FILES)
def test_the_generated_parts_are_up_to_date(name: str) -> None:
    text = (ROOT / name).read_text()
    assert text == generated(text), "run `make docs`"


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs/configuration.md").read_text()
    assert [name for name in (*BROKER_CONFIGS, *TOPIC_CONFIGS) if f"`{name}`" not in text] == []


def test_every_api_is_documented() -> None:
    text = (ROOT / "docs/kafka.md").read_text()
    assert [handler.api.name for handler in HANDLERS.values() if f"| {handler.api.name} |" not in text] == []


def test_every_dependency_is_explained() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    wanted = set(re.findall(r'^    "([a-z0-9-]+)(?:\[.*?\])?[<>=]=?', project, re.MULTILINE)) - {"millstream"}
    text = (ROOT / "docs/dependencies.md").read_text().lower()
    assert sorted(name for name in wanted if name not in text) == []


def test_links_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/*.md")]
    links = [
        (page, target) for page in pages for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    ]
    assert [f"{page.name}: {target}" for page, target in links if not (page.parent / target).exists()] == []


def test_the_file_map_names_every_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {path.parent.name for path in (ROOT / "src").rglob("__init__.py")}
    packages -= {"millstream", "messages"}
    assert sorted(name for name in packages if f"{name}/" not in text) == []
