"""`/compat`: the two older APIs, Schema Registry 0.2 and Message Catalog 0.1.

Rules LEG-101 to LEG-109, LEG-200.
"""

from __future__ import annotations

from starlette.types import Receive

from api.answer import Answer
from api.compat.description import description
from api.compat.paths import Kind, Target, locate
from api.compat.reading import Reading
from api.compat.writing import Writing
from api.cross_origin import check_form
from api.moments import Moments
from api.problem import COMPAT, root_link
from api.request import Request
from api.rules import NotAllowed
from api.wiring import Registry
from commands.address import UNCONFIGURED
from domain import problems

__all__ = ["COMPAT", "Compat"]


class Compat:
    """The surface of all paths below `/compat`.

    most: bytes that the body of a request may have. inbound: whether writes may carry the authority of another
    registry.
    """

    def __init__(self, registry: Registry, most: int, inbound: bool = True) -> None:
        self._quick = registry.readers.quick
        self._latest = latest = registry.latest
        root = registry.store.public_url or UNCONFIGURED
        self._reading = Reading(registry, Moments(registry.readers, latest, registry.store.clock), root)
        self._writing = Writing(registry, latest, root, most, inbound)

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`."""
        target = locate(request.raw)
        if request.method == "OPTIONS":
            allow = _allow(target).encode()
            headers = [(b"allow", allow), (b"access-control-allow-methods", allow)]
            return Answer(204, [root_link(request.base), *headers])
        if request.method != "HEAD" and request.method not in target.methods:
            raise NotAllowed(problems.ActionNotSupported(action=request.method), _allow(target))
        if target.kind is Kind.DESCRIPTION:
            return description(request, target.family)
        if "entities" not in self._latest.current(self._quick()).capabilities.available:
            raise problems.NotAvailable("/entities")
        if request.reads:
            return await self._reading.answer(request, target)
        if target.kind is not Kind.CHILD:
            check_form(request)
        return await self._writing.answer(request, target, receive)


def _allow(target: Target) -> str:
    first, *others = target.methods
    return ", ".join((first, "HEAD", "OPTIONS", *others))
