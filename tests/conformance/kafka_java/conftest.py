"""The Java client of Apache Kafka 4: scenarios in `java/`, built once with what Maven brings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.java_scenarios import JavaScenarios, Play, Start
from tests.support.maven_classes import class_path_of


@pytest.fixture(scope="session")
def class_path() -> str:
    """Where the scenarios and the client are."""
    return class_path_of(Path(__file__).parent)


@pytest.fixture
def scenarios(class_path: str) -> Iterator[JavaScenarios]:
    """What starts and plays them."""
    with JavaScenarios(class_path, lambda server: server.kafka, 256) as one:
        yield one


@pytest.fixture
def start(scenarios: JavaScenarios) -> Start:
    """Starts a scenario against a server: `start(server, scenario, stem)`."""
    return scenarios.start


@pytest.fixture
def play(scenarios: JavaScenarios) -> Play:
    """Runs a scenario to its end, and gives what it printed: `play(server, scenario, stem)`."""
    return scenarios.play
