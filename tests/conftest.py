"""What all tests have in common."""

import pytest

from tests.support.quick_java import use_quick_java


def pytest_configure(config: pytest.Config) -> None:
    """Have all Java start quickly."""
    use_quick_java(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show why a test failed that was then run again: the summary alone would only name it."""
    reruns = terminalreporter.stats.get("rerun", [])
    if reruns:
        terminalreporter.section("FIRST FAILURES")
    for report in reruns:
        terminalreporter.section(report.nodeid, sep="_")
        terminalreporter.write_line(report.longreprtext)
