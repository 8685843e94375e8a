"""Whether a sink wants events at all: when it is asked, and what its answer allows (SUB-711 to 714)."""

from __future__ import annotations

from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from projections.subscriptions.hub import Hub
    from projections.subscriptions.line import Line

#: Seconds between two times that a sink is asked, and that a callback's secret is good for.
DAY: Final = 86400.0
#: Refusals in a row after which a sink that has consented has not.
REFUSALS: Final = 3


class Consents:
    """The consent of one line's sink. callbacks: hashes of secrets and their ends, yet to be written."""

    def __init__(self, hub: Hub, line: Line) -> None:
        self._hub = hub
        self._line = line
        self._asking = False
        self._wanted = False
        self.callbacks: list[tuple[str, float]] = []

    @property
    def matters(self) -> bool:
        """Whether sinks are asked."""
        ports = self._hub.ports
        return ports.policy != "off" and ports.validator is not None and self._line.plan.validates

    @property
    def awaited(self) -> bool:
        """Whether nothing is attempted before the sink has consented, or before it was asked for the first time."""
        consent = self._line.facts.consent
        return self.matters and consent != "validated" and (not consent or self._hub.ports.policy == "required")

    @property
    def unlimited(self) -> bool:
        """Whether there may be any number of requests."""
        facts = self._line.facts
        return not self.matters or (facts.consent == "validated" and not facts.rate)

    @property
    def origin(self) -> str:
        """What deliveries say in `WebHook-Request-Origin`: nothing as long as the sink has not consented."""
        return self._hub.ports.origin if self._line.facts.consent == "validated" else ""

    def ask(self) -> None:
        """Has the sink asked soon."""
        self._wanted = True

    def see_to(self) -> None:
        """Asks the sink where it is time to."""
        if not self.matters or self._asking:
            return
        facts, now = self._line.facts, self._hub.ports.time.now()
        due = facts.checked + DAY
        if self._wanted or not facts.consent or due <= now:
            self._asking, self._wanted = True, False
            self._hub.start(self._ask())
        else:
            self._line.pace.wait(due)

    def granted(self, rate: int | None) -> None:
        """The sink has consented by itself, to a rate or to the one that was asked for."""
        self._settle(True, rate if rate is not None else self._line.plan.rate)

    def written(self, count: int) -> None:
        """Says how many of the callbacks are in the tables."""
        del self.callbacks[:count]

    async def _ask(self) -> None:
        line, ports = self._line, self._hub.ports
        plan = line.plan
        try:
            target = plan.target(await line.access.revealed(line), ports.origin)
            assert ports.validator is not None
            found = await ports.validator.validate(target, plan.rate, self._callback())
            allowed, rate = found.allowed, found.rate
        except Exception:
            allowed, rate = False, None
        finally:
            self._asking = False
        if plan.sink == line.plan.sink:
            line.facts.checked = ports.time.now()
            self._settle(allowed, rate)
        line.pump()

    def _settle(self, allowed: bool, rate: int | None) -> None:
        facts = self._line.facts
        before = facts.consent
        if allowed:
            facts.consent, facts.rate, facts.refusals = "validated", rate or 0, 0
        else:
            facts.refusals += 1
            if before != "validated" or facts.refusals >= REFUSALS:
                facts.consent, facts.rate = "unvalidated", 0
        if facts.consent != before:
            self._line.access.forget()  # deliveries say another origin now
        self._hub.changed(self._line)
        self._hub.hungry(self._line)

    def _callback(self) -> str | None:
        """Where the sink may consent later, with a secret of 192 bits that is good once."""
        make = self._hub.ports.callback
        if make is None:
            return None
        secret = token_urlsafe(24)
        self.callbacks.append((digest(secret), self._hub.ports.time.now() + DAY))
        self._hub.changed(self._line)
        return make(self._line.id, secret)


def digest(secret: str) -> str:
    """As a secret is kept."""
    return sha256(secret.encode()).hexdigest()
