"""What all tests have in common."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show why a test failed that was then run again: the summary alone would only name it."""
    reruns = terminalreporter.stats.get("rerun", [])
    if reruns:
        terminalreporter.section("FIRST FAILURES")
    for report in reruns:
        terminalreporter.section(report.nodeid, sep="_")
        terminalreporter.write_line(report.longreprtext)
