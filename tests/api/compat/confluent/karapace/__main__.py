"""Runs Karapace's own integration tests of the HTTP API against this registry, and prints the results.

    python -m tests.api.compat.confluent.karapace CHECKOUT --python PYTHON [PYTEST_ARGUMENT ...]

CHECKOUT is a clone of Karapace's repository. PYTHON is an interpreter whose environment has the packages that its tests
import (`requirements/requirements-dev.txt`; `avro` from PyPI is sufficient, and Karapace need not be installed). The
script downloads nothing. Each test gets a registry without schemas. A failure of a test in `decisions.yaml` is a
decision of this project. The exit code is 1 if fewer than 97 % of the other tests pass, or if a named test passes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

import yaml

from tests.support.confluent import serving_confluent

HERE: Final = Path(__file__).parent
#: Modules of `tests/integration` that send requests and need neither Kafka nor Karapace's own programs.
MODULES: Final = (
    *("schema", "schema_avro_references", "schema_compatibility", "schema_protobuf", "schema_registry_mode"),
    *("jsonschema", "dependencies_compatibility_protobuf", "client", "client_protobuf"),
)
NEEDED_SHARE: Final = 0.97


class Outcome(NamedTuple):
    """The outcome of one test. name: module and test with its parameters. message: why it failed, or empty."""

    name: str
    is_passed: bool
    message: str


def main(arguments: Sequence[str]) -> int:
    """Runs the tests and prints the counts. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.api.compat.confluent.karapace")
    parser.add_argument("checkout", type=Path, help="a clone of Karapace's repository")
    parser.add_argument("--python", type=Path, required=True, help="an interpreter with what Karapace's tests import")
    options, others = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as scratch, new_registries(Path(scratch)) as control:
        outcomes = run_tests(options.checkout.resolve(), options.python.absolute(), control, others, Path(scratch))
    return report(outcomes, yaml.safe_load((HERE / "decisions.yaml").read_text()))


@contextmanager
def new_registries(place: Path) -> Iterator[str]:
    """A URL that starts a new registry at each request, returns its address, and stops the previous registry."""
    running = ExitStack()

    class Control(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            running.close()
            folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir=place)))
            address = running.enter_context(serving_confluent(f"sqlite:///{folder / 'annals.db'}", folder))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(address.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            """Logs nothing: pytest prints the running test."""

    server = HTTPServer(("127.0.0.1", 0), Control)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        running.close()


def run_tests(checkout: Path, python: Path, control: str, others: Sequence[str], place: Path) -> list[Outcome]:
    """The outcome of each test. pytest prints its progress."""
    written = place / "outcomes.xml"
    modules = [f"tests/integration/test_{name}.py" for name in MODULES]
    unused = ("--registry-url", "http://127.0.0.1:9", "--kafka-bootstrap-servers", "127.0.0.1:9")
    # Karapace's own options would start several workers, which would need a registry each.
    options = ("-q", "-o", "addopts=", "--import-mode=importlib", "--tb=no", "--no-summary", "--junitxml", str(written))
    call = [str(python), "-m", "pytest", "-p", "karapace_plugin", *options, *unused, *modules, *others]
    path = os.pathsep.join([str(checkout / "src"), str(HERE)])
    subprocess.run(call, cwd=checkout, env={**os.environ, "PYTHONPATH": path, "NEW_REGISTRY": control}, check=False)
    if not written.exists():
        sys.exit("Karapace's tests did not start; see above")
    return [_outcome(case) for case in ElementTree.parse(written).iter("testcase") if case.find("skipped") is None]


def _outcome(case: ElementTree.Element) -> Outcome:
    failures = [each for each in case if each.tag in ("failure", "error")]
    name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
    # The first parameter is the event loop, which is always the same.
    return Outcome(re.sub(r"\[pyloop-?", "[", name).removesuffix("[]"), not failures, _message(failures))


def _message(failures: Sequence[ElementTree.Element]) -> str:
    return " ".join(failures[0].get("message", "").split())[:300] if failures else ""


def report(outcomes: Sequence[Outcome], decisions: dict[str, list[str]]) -> int:
    """Prints the counts and every failure. Returns the exit code. decisions: from reasons to names of tests."""
    reasons = {test: reason for reason, tests in decisions.items() for test in tests}
    decided = [(outcome, reason) for outcome in outcomes if (reason := _reason(outcome, reasons))]
    others = [outcome for outcome in outcomes if not _reason(outcome, reasons)]
    for outcome, reason in decided:
        print(f"{'PASSES, though decided' if outcome.is_passed else 'decided'}  {outcome.name}: {reason}")
    for outcome in others:
        if not outcome.is_passed:
            print(f"FAILED   {outcome.name}: {outcome.message}")
    passed = sum(outcome.is_passed for outcome in others)
    share = passed / len(others) if others else 0.0
    failed = len(others) - passed
    print(f"{passed} passed, {failed} failed, {len(decided)} are decisions; {share:.1%} of the others pass")
    return int(share < NEEDED_SHARE or any(outcome.is_passed for outcome, _ in decided))


def _reason(outcome: Outcome, reasons: dict[str, str]) -> str:
    """The reason in `decisions.yaml` for a test, or empty: by its name, without parameters, or by `test[*end]`."""
    test, _, parameters = outcome.name.partition("[")
    found = reasons.get(outcome.name) or reasons.get(test)
    ends = (reason for name, reason in reasons.items() if name.startswith(f"{test}[*") and _ends(parameters, name))
    return found or next(ends, "")


def _ends(parameters: str, name: str) -> bool:
    return parameters.endswith(name.partition("[*")[2])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
