"""Names each failed test at once, so that a run that is cut off shows its failures, too."""

from __future__ import annotations

import pytest


class FailuresAtOnce:
    """Prints a line for each failure in the reporting process: the test, and the last line of its error."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    # After the reporter of the terminal, whose letter then precedes the line.
    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and isinstance(terminal, pytest.TerminalReporter):
            terminal.line(f"\nFAILED {report.nodeid} ({report.when}): {_reason(report)}"[:500], red=True)


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).splitlines()
    return lines[0] if lines else ""
