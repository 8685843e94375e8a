"""Network namespaces: a registry runs in its own, over a connection that can silently lose all packets.

Nothing of a cut shows but silence: connections, addresses and routes stay, and TCP waits longer with every attempt.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NoReturn

import pytest

from tests.support.registries.restarted import Location

#: Set aside for trying out networks (RFC 2544): the first half is cut, by the second one tests look on meanwhile.
_ADDRESSES: Final = "198.18.0.0/15"
_HALVES: Final = ("198.18", "198.19")
#: Of the namespace that the tests run in, on every line; those that end here are told apart by their other end.
_HERE: Final = 1
#: The device of a line inside a namespace; that outside has the number of the namespace behind it.
_DEVICE: Final = "annals"
#: A device that nobody has: what is sent to it is lost on the way.
_NOBODY: Final = "02:00:00:00:00:00"
#: A registry that runs where the tests do, for those in namespaces; it may be served once there is one of them.
_ADDRESS: Final = f"{_HALVES[0]}.0.{_HERE}"
HERE: Final = Location(_ADDRESS, _ADDRESS, _ADDRESS, reaches=_ADDRESSES)


class Namespace:
    """A network namespace with a line to the one that the tests run in. place: a registry's in it."""

    def __init__(self, process: int, number: int) -> None:
        """process: one that runs in it. number: which no other namespace has."""
        self._within = ("nsenter", f"--net=/proc/{process}/ns/net")
        self._device = f"{_DEVICE}{number}"
        self._there = [f"{half}.{number >> 8}.{number & 255}" for half in _HALVES]
        host, near = self._there
        self.place = Location(host, near, listens="0.0.0.0", reaches=_ADDRESSES, within=self._within)

    def cut(self) -> None:
        """Has all be lost that goes over the line from now on, in both directions."""
        _ip(f"neigh replace {self._there[0]} lladdr {_NOBODY} nud permanent dev {self._device}")
        _ip(f"neigh replace {HERE.host} lladdr {_NOBODY} nud permanent dev {_DEVICE}", within=self._within)

    def mend(self) -> None:
        """Has it arrive again."""
        _ip(f"neigh delete {self._there[0]} dev {self._device}")
        _ip(f"neigh delete {HERE.host} dev {_DEVICE}", within=self._within)

    def _join(self) -> None:
        """Gives both ends of the line their addresses."""
        here = [f"{half}.0.{_HERE}" for half in _HALVES]
        ends = [(self._device, here, self._there, ()), (_DEVICE, self._there, here, self._within)]
        for device, own, other, within in ends:
            addresses = [f"address add {one} peer {two}/32 dev {device}" for one, two in zip(own, other, strict=True)]
            _ip(*addresses, f"link set {device} up", within=within)


@contextmanager
def namespaces(count: int) -> Iterator[list[Namespace]]:
    """Namespaces that end with the block. Skips the test where there can be none."""
    with ExitStack() as stack:
        yield [stack.enter_context(_namespace()) for _ in range(count)]


@contextmanager
def _namespace() -> Iterator[Namespace]:
    for program, package in (("ip", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux")):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: apt-get install {package}, or put {program} on PATH")
    # A namespace lasts as long as somebody is in it: this one for as long as the tests, even when they are killed.
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
    """Lays a line to the namespace of a process; gives a number that it shares with no other one.

    Several runs of tests share a machine: the kernel gives a name away once, so the first one to ask has the number.
    """
    for number in range(_HERE + 1, 1 << 16):
        made = _run(f"link add {_DEVICE}{number} type veth peer name {_DEVICE} netns {process}\n", ())
        if not made.returncode:
            return number
        if "File exists" not in made.stderr:
            _unavailable(made.stderr)
    raise AssertionError("there are as many namespaces as addresses")


def _unavailable(said: str) -> NoReturn:
    pytest.skip(f"no network namespaces: they need root with CAP_SYS_ADMIN and CAP_NET_ADMIN ({said.strip()})")


def _ip(*commands: str, within: tuple[str, ...] = ()) -> None:
    done = _run("".join(f"{command}\n" for command in commands), within)
    assert not done.returncode, done.stderr


def _run(commands: str, within: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*within, "ip", "-batch", "-"], input=commands, capture_output=True, text=True)
