"""What a caller with roles at some places reads, compared with a caller with a role at the registry (ACC-72)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import httpx

from annals.domain.values.json_text import dumps
from bench import samples
from bench.figures import Figure, Want
from bench.places import Place, serving

#: Schemas of each group, and groups of one request that fills the registry.
EACH: Final = 100
TOGETHER: Final = 5
#: Requests of each caller, in turn, whose medians are compared.
ROUNDS: Final = 41
#: How many times as long an answer may take as without places.
BOUND: Final = 1.5
#: The callers by their places; `open` has a role at the registry.
OPEN: Final = "open"
CALLERS: Final[dict[str, dict[str, str]]] = {
    OPEN: {},
    "one Group": {"/schemagroups/group7": "reader"},
    "a beginning": {"/schemagroups/group1*": "reader"},
    "20 Groups": {f"/schemagroups/group{12 * number}": "reader" for number in range(20)},
}
TOKENS: Final[dict[str, Any]] = {
    "writer": {"name": "writer", "role": "writer"},
    **{
        f"token{number}": {"name": f"caller{number}", "groups": places}
        if places
        else {"name": "open", "role": "reader"}
        for number, places in enumerate(CALLERS.values())
    },
}
#: What is asked for. Each answer of a caller with places has at most as many entities as the open one.
ASKED: Final = {
    "List of Groups": "/schemagroups",
    "List of the Resources of a Group": "/schemagroups/group{}/schemas",
    "A Resource": "/schemagroups/group{}/schemas/schema7$details",
    "First page of Groups": "/schemagroups?limit=100",
    "First page of sorted Groups": "/schemagroups?limit=100&sort=name",
    "Page of the Resources of a Group": "/schemagroups/group{}/schemas?limit=20",
    "Filter of Groups by name": "/schemagroups?filter=name=Group 1*",
    "Filter of Groups by a label of Resources": "/schemagroups?filter=schemas.labels.team=team3",
    "Filter of the registry, inlined": "/?filter=schemagroups.schemas.name=Schema 7&inline=*",
    "GET /": "/",
}


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """One figure for each question and caller with places: its time compared with that of a caller without."""
    groups = 50 if quick else 500
    settings = {"ANNALS_TOKENS": dumps(TOKENS).decode()}
    with place.fresh() as (database, folder), serving(database, folder, **settings) as served:
        with _client(served.url, "writer") as client:
            for start in range(0, groups, TOGETHER):
                client.post("/schemagroups", content=samples.body(TOGETHER, EACH, start)).raise_for_status()
        clients = [_client(served.url, f"token{number}") for number, _ in enumerate(CALLERS)]
        size = f"{groups * (2 * EACH + 1):,} entities"
        for what, path in ASKED.items():
            times = _medians(clients, path)
            for caller, seconds in zip(CALLERS, times, strict=True):
                if caller != OPEN:
                    measured, floor = f"{1000 * seconds:.1f} ms", f"{1000 * times[0]:.1f} ms"
                    ratio = seconds / times[0]
                    yield Figure(
                        f"{what}, {caller}", place.name, size, measured, floor, ratio, Want.AT_MOST, BOUND, " x"
                    )
        for client in clients:
            client.close()


def _client(url: str, token: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {token}", "accept-encoding": "identity"}
    return httpx.Client(base_url=url, timeout=600, headers=headers)


def _medians(clients: list[httpx.Client], path: str) -> list[float]:
    """The median time of each client, which take turns. In a path, `{}` stands for a Group that each caller sees."""
    numbers = ["7", "7", "1", "12"]
    taken: list[list[float]] = [[] for _ in clients]
    for _ in range(ROUNDS):
        for times, client, number in zip(taken, clients, numbers, strict=True):
            began = time.perf_counter()
            client.get(path.format(number)).raise_for_status()
            times.append(time.perf_counter() - began)
    return [sorted(times)[ROUNDS // 2] for times in taken]
