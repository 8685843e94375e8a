"""Follows a page of the documentation as a reader does: runs its commands and programs, and compares their output.

Blocks `sh` and `python` are run. A block `text` directly below is the expected output; in it, `…` stands for any text.
Blocks of other languages, such as `console` and `py`, are not run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.polling import until
from tests.support.ports import free_port
from tests.support.serving import ROOT, Served, environment, serving

#: The languages whose blocks are run.
RUN: Final = ("sh", "python")
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
#: A block that starts a registry: assignments of settings, then the command.
_START: Final = re.compile(
    r"(?P<settings>(?:ANNALS_\w+=(?:\$\([^)]*\)|\S+)[ \\\n]+)*)(?:make run|\S*annals serve)(?P<options>.*)"
)
#: Blocks that only read. They are repeated until they print the expected output.
_LOOKS: Final = re.compile(
    r"curl -s (?:--cacert \S+ )?'?http|\.venv/bin/annals (?:replicate status|subscriptions list)"
)
_HERE: Final = "http://127.0.0.1:8080"


class Block(NamedTuple):
    """A block of a page. output: its expected output; empty if the page does not show it."""

    language: str
    text: str
    output: str


def blocks_of(text: str) -> list[Block]:
    """All blocks of a page, in order. An output block belongs to the block above it."""
    return [
        Block(language, body, (output or "") if language in RUN else "")
        for language, body, output in _BLOCK.findall(text)
    ]


def pattern(output: str) -> str:
    """A regular expression for the expected output of a block."""
    return r"\n+".join(re.escape(line).replace("…", ".*") for line in output.strip().splitlines())


class Guide:
    """A page that is being followed in a folder.

    names: texts of the page, such as addresses and ports, with their replacements in the test. settings: environment
    variables of the commands.
    """

    def __init__(self, text: str, folder: Path, stack: ExitStack, names: dict[str, str]) -> None:
        self.folder = folder
        self.names = names
        self.settings: dict[str, str] = {}
        self.servers: dict[str, Served] = {}
        #: Blocks `text` that are not directly below commands, such as the output of a program run by `running`.
        self.shown = [block.text for block in blocks_of(text) if block.language == "text"]
        self._left = [block for block in blocks_of(text) if block.language in RUN]
        self._stack = stack
        self._closing: dict[str, ExitStack] = {}

    @property
    def left(self) -> list[Block]:
        """The blocks that have not been run."""
        return self._left

    def follow(self, python: Callable[[Block], None] | None = None) -> None:
        """Runs the rest of the page. python: handles a Python block; by default it is run until it ends."""
        while self._left:
            block = self._left.pop(0)
            if block.language == "python":
                (python or self.run_program)(block)
            elif start := _START.fullmatch(block.text.strip()):
                self.serve(start["options"], **self._evaluated(start["settings"]))
            else:
                self._run_commands(block)

    def serve(self, options: str = "", **settings: str) -> Served:
        """Starts or restarts the registry at a port that the page names. settings: of its environment."""
        port = (re.findall(r"--port (\d+)", options) or ["8080"])[0]
        name = (re.findall(r"--database sqlite:///(\S+)", options) or ["annals.db"])[0]
        database = self.names.get(f"sqlite:///{name}") or f"sqlite:///{self.folder / name}"
        home = self.folder if port == "8080" else self.folder / port
        home.mkdir(exist_ok=True)
        if port in self._closing:
            self._closing[port].close()
        self._closing[port] = self._stack.enter_context(ExitStack())
        served = self._closing[port].enter_context(_served_here(database, home, settings))
        scheme = served.url.partition(":")[0]
        self.names |= {f"{scheme}://127.0.0.1:{port}": served.url, f"sqlite:///{name}": database}
        if port == "8080":
            self.settings = {"ANNALS_DATABASE": database, "ANNALS_PUBLIC_URL": served.url, **settings}
        return served

    def run_program(self, block: Block) -> None:
        """Runs a program until it ends."""
        command = [sys.executable, "-W", "ignore", "-c", self.real(block.text)]
        self._compare(block, lambda: self._printed(command))

    @contextmanager
    def running(self, program: str) -> Iterator[Path]:
        """Runs a program during the block; yields the file with its output."""
        path, output = self.folder / "program.py", self.folder / "program.out"
        path.write_text(self.real(program))
        with (
            output.open("wb") as file,
            subprocess.Popen([sys.executable, "-W", "ignore", str(path)], cwd=self.folder, stdout=file) as process,
        ):
            try:
                yield output
            finally:
                process.kill()

    def real(self, text: str) -> str:
        """A text of the page with the names of the test."""
        for shown, real in self.names.items():
            text = text.replace(shown, real)
        return text

    def _run_commands(self, block: Block) -> None:
        commands = self.real(block.text).replace("curl -s", "curl -sS -w '\\n'")
        commands = commands.replace(".venv/bin/annals", f"{sys.executable} -m annals")
        self._compare(block, lambda: self._printed(["bash", "-euo", "pipefail", "-c", commands]))

    def _compare(self, block: Block, run: Callable[[], str]) -> None:
        expected, printed = pattern(block.output), run()

        def agrees() -> bool:
            nonlocal printed
            if re.fullmatch(expected, printed.strip()):
                return True
            assert _LOOKS.match(block.text), f"{block.text}\nprints\n{printed}"
            printed = run()
            return False

        until(agrees, 60)

    def _printed(self, command: list[str]) -> str:
        env = environment(**self.settings)
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
        printed = done.stdout
        for shown, real in self.names.items():
            printed = printed.replace(real, shown)
        return printed

    def _evaluated(self, settings: str) -> dict[str, str]:
        """The assigned settings as a shell evaluates them, and the earlier ones; a public URL only if assigned here."""
        lines = self._printed(["bash", "-euc", f"{settings} env"]) if settings else ""
        found = dict(re.findall(r"^(ANNALS_(?!DATABASE)\w+)=(.*)$", lines, re.MULTILINE))
        if "ANNALS_PUBLIC_URL=" not in settings:
            found.pop("ANNALS_PUBLIC_URL", None)
        return {name: self.real(value) for name, value in found.items()}


@contextmanager
def _served_here(database: str, home: Path, settings: dict[str, str]) -> Iterator[Served]:
    """A served registry with its local address, whatever its public URL is."""
    if "ANNALS_PUBLIC_URL" not in settings:
        with serving(database, home, **settings) as served:
            yield served
        return
    port, scheme = free_port(), "https" if "ANNALS_TLS_CERT" in settings else "http"
    with serving(database, home, "--port", str(port), **settings) as served:
        yield served._replace(url=f"{scheme}://127.0.0.1:{port}")


@contextmanager
def followed(page: str, folder: Path, names: dict[str, str] | None = None) -> Iterator[Guide]:
    """Follows a page, such as `guides/backup.md`. At the end all of its blocks must have been run."""
    with following((ROOT / "docs" / page).read_text(), folder, names) as guide:
        yield guide


@contextmanager
def following(text: str, folder: Path, names: dict[str, str] | None = None) -> Iterator[Guide]:
    """Follows the text of a page. At the end all of its blocks must have been run."""
    with ExitStack() as stack:
        guide = Guide(text, folder, stack, dict(names or {}))
        yield guide
        assert guide.left == [], "these blocks were not run"


def port_names(*ports: int) -> dict[str, str]:
    """`names` that replace ports of a page with free ports."""
    return names_of({port: free_port() for port in ports})


def names_of(ports: dict[int, int]) -> dict[str, str]:
    """`names` that replace ports of a page with other ports."""
    forms = ("127.0.0.1:{}", '"127.0.0.1", {}')
    return {form.format(shown): form.format(real) for shown, real in ports.items() for form in forms}
