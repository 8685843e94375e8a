"""Network namespaces, one for each registry, with a line to the tests that can silently lose all packets.

While a line is cut, connections, addresses and routes stay, no error is reported, and TCP retries at longer intervals.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NoReturn

import pytest

from tests.support.left_out import leave_out
from tests.support.registries.restarted import Location

#: Reserved for network tests (RFC 2544). Registries use the first half, which can be cut; tests use the second half.
_ADDRESSES: Final = "198.18.0.0/15"
_HALVES: Final = ("198.18", "198.19")
#: The last byte of the tests' own addresses, the same on every line: lines differ by the address of their other end.
_HERE: Final = 1
#: The device of a line inside a namespace. Outside, its name is followed by the number of the namespace.
_DEVICE: Final = "annals"
#: A link-layer address of no device: packets to it are lost.
_NO_DEVICE: Final = "02:00:00:00:00:00"
#: The location of a registry in the namespace of the tests. It can start as soon as there is one other namespace.
_ADDRESS: Final = f"{_HALVES[0]}.0.{_HERE}"
HERE: Final = Location(_ADDRESS, _ADDRESS, _ADDRESS, reaches=_ADDRESSES)


class Namespace:
    """A network namespace with a line to the namespace of the tests. place: the location of a registry in it."""

    def __init__(self, process: int, number: int) -> None:
        """process: a process id in the namespace. number: unique for each namespace."""
        self._within = ("nsenter", f"--net=/proc/{process}/ns/net")
        self._device = f"{_DEVICE}{number}"
        self._there = [f"{half}.{number >> 8}.{number & 255}" for half in _HALVES]
        host, near = self._there
        self.place = Location(host, near, listens="0.0.0.0", reaches=_ADDRESSES, within=self._within)

    def cut(self) -> None:
        """Drops all packets on the line, in both directions, from now on."""
        _ip(f"neigh replace {self._there[0]} lladdr {_NO_DEVICE} nud permanent dev {self._device}")
        _ip(f"neigh replace {HERE.host} lladdr {_NO_DEVICE} nud permanent dev {_DEVICE}", within=self._within)

    def mend(self) -> None:
        """Delivers packets again."""
        _ip(f"neigh delete {self._there[0]} dev {self._device}")
        _ip(f"neigh delete {HERE.host} dev {_DEVICE}", within=self._within)

    def _join(self) -> None:
        """Sets the addresses of both ends of the line."""
        here = [f"{half}.0.{_HERE}" for half in _HALVES]
        ends = [(self._device, here, self._there, ()), (_DEVICE, self._there, here, self._within)]
        for device, own, other, within in ends:
            addresses = [f"address add {one} peer {two}/32 dev {device}" for one, two in zip(own, other, strict=True)]
            _ip(*addresses, f"link set {device} up", within=within)


@contextmanager
def namespaces(count: int) -> Iterator[list[Namespace]]:
    """Namespaces that are removed after the block. Skips the test if the system does not allow namespaces."""
    with ExitStack() as stack:
        yield [stack.enter_context(_namespace()) for _ in range(count)]


@contextmanager
def _namespace() -> Iterator[Namespace]:
    for program, package in (("ip", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux")):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: apt-get install {package}, or put {program} on PATH")
    # A namespace exists as long as a process runs in it. `cat` ends with the tests, even if they are killed.
    pipe = subprocess.PIPE
    with subprocess.Popen(["unshare", "--net", "cat"], stdin=pipe, stdout=pipe, stderr=pipe) as holder:
        try:
            yield _joined(holder)
        finally:
            holder.kill()


def _joined(holder: subprocess.Popen[bytes]) -> Namespace:
    assert holder.stdin is not None and holder.stdout is not None and holder.stderr is not None
    try:
        holder.stdin.write(b"here\n")
        holder.stdin.flush()
    except BrokenPipeError:
        pass
    if not holder.stdout.readline():
        _unavailable(holder.stderr.read().decode())
    namespace = Namespace(holder.pid, _connect(holder.pid))
    namespace._join()
    return namespace


def _connect(process: int) -> int:
    """Creates a line to the namespace of a process; returns a unique number.

    Several test runs may share a machine: the kernel creates a device name only once, so the first run gets the number.
    """
    for number in range(_HERE + 1, 1 << 16):
        made = _run(f"link add {_DEVICE}{number} type veth peer name {_DEVICE} netns {process}\n", ())
        if not made.returncode:
            return number
        if "File exists" not in made.stderr:
            _unavailable(made.stderr)
    raise AssertionError("there are as many namespaces as addresses")


def _unavailable(reason: str) -> NoReturn:
    leave_out(f"no network namespaces: they need root with CAP_SYS_ADMIN and CAP_NET_ADMIN ({reason.strip()})")


def _ip(*commands: str, within: tuple[str, ...] = ()) -> None:
    done = _run("".join(f"{command}\n" for command in commands), within)
    assert not done.returncode, done.stderr


def _run(commands: str, within: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*within, "ip", "-batch", "-"], input=commands, capture_output=True, text=True)
