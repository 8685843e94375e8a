"""A process that writes to a store and prints one line for each interaction that is durable.

python -m tests.commands.writer <store url> <name> [<interactions>]
"""

from __future__ import annotations

import os
import sys
from threading import Thread

from annals.commands.command_bus import CommandBus
from annals.commands.store.log import Store
from tests.support.small_decider import decide, write


def main(url: str, name: str, interactions: str = "1000000") -> None:
    command_bus = CommandBus(Store(url), [], decide)

    def call(number: int) -> None:
        for turn in range(int(interactions) // 4):
            command = write(
                "/dirs/shared", f"/dirs/{name}{number}", turn=turn, document=f"{name} {number} {turn}".encode()
            )
            recorded = command_bus.submit(command).result()
            line = f"{recorded.xregcorrelationid} {recorded.events[0][0]} {recorded.position}\n"
            # Bypasses Python's buffer, in which lines of several threads would mix.
            os.write(sys.stdout.fileno(), line.encode())

    callers = [Thread(target=call, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    command_bus.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
