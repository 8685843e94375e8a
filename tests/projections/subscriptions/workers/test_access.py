"""Credentials, renewed tokens, consents and rates, on a real store."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cloudevents.core.v1.event import CloudEvent

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome, SinkTarget
from annals.projections.subscriptions.ports import RenewedTokens
from tests.support.delivery_rig import Clock, Rig, advance_until, until

UNAUTHORIZED = Outcome(DeliveryResult.UNAUTHORIZED, "401", "who is pass-marker")
START = Clock().now


def utc(seconds: float) -> str:
    return datetime.fromtimestamp(START + seconds, UTC).isoformat().replace("+00:00", "Z")


TOKEN = {"credentialtype": "ACCESSTOKEN", "accesstokenexpiresutc": utc(1000), "accesstokentype": "bearer"}
REFRESH = TOKEN | {"credentialtype": "REFRESHTOKEN", "refreshtokenendpoint": "https://tokens.example/"}


class SecretsInMemory:
    """Secrets in memory, by name, for all subscriptions."""

    def __init__(self, **values: str) -> None:
        self.values = {f"sinkcredential.{name}": value for name, value in values.items()}

    def reveal(self, subscription: Subscription) -> Mapping[str, str]:
        return {name: self.values[name] for name in subscription.secrets}

    def replace(self, subscription: Subscription, values: Mapping[str, str]) -> None:
        self.values |= values


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def subscribe(rig: Rig, credential: dict[str, Any], *names: str, **members: Any) -> None:
    """A subscription whose credential has some secrets."""
    rig.secrets = {f"sinkcredential.{name}": f"r-{name}" for name in names}
    rig.subscribe(sinkcredential=credential, **members)


def tokens_of(rig: Rig) -> list[str]:
    return [target.credential.token for target in rig.receiver.targets if target.credential]


def test_a_token_is_renewed_before_it_ends(sqlite_url: str) -> None:
    # SUB-307, 913: a minute before; the new token and the new refresh token replace the stored ones
    renewals: list[tuple[str, str]] = []

    async def renew(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        renewals.append((endpoint, refreshtoken))
        return RenewedTokens(f"token{len(renewals)}", START + 1000 * (len(renewals) + 1), f"refresh{len(renewals)}")

    secrets = SecretsInMemory(accesstoken="token0", refreshtoken="refresh0")
    rig = Rig(sqlite_url, secrets=secrets, renew_tokens=renew)

    async def deliver() -> None:
        subscribe(rig, REFRESH, "accesstoken", "refreshtoken")
        async with rig.delivering():
            for seconds in (0, 900, 45, 1000):
                rig.clock.move(seconds)
                count = len(rig.receiver.arrived["s"])
                rig.groups("a")
                await until(partial(lambda count: len(rig.receiver.arrived["s"]) == count + 1, count))
            await asyncio.sleep(0.3)
        async with rig.delivering():
            rig.groups("a")
            await until(lambda: len(rig.receiver.arrived["s"]) == 5)

    run(deliver)
    assert tokens_of(rig) == ["token0", "token1", "token2", "token2"]
    assert renewals == [("https://tokens.example/", "refresh0"), ("https://tokens.example/", "refresh1")]
    assert secrets.values["sinkcredential.refreshtoken"] == "refresh2"
    rig.close()


def test_a_token_is_renewed_once_after_a_refusal(sqlite_url: str) -> None:
    # SUB-307, 8.3: the event is sent again at once; if it is refused again, it waits, in state `unauthorized`
    renewed: list[str] = []

    async def renew(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        renewed.append(refreshtoken)
        return RenewedTokens(f"new{len(renewed)}", START + 5000)

    rig = Rig(sqlite_url, secrets=SecretsInMemory(accesstoken="pass-marker", refreshtoken="r"), renew_tokens=renew)
    good = {"new1"}

    def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        return DELIVERED if tokens_of(rig)[-1] in good else UNAUTHORIZED

    rig.receiver.answer = answer

    async def deliver() -> None:
        subscribe(rig, REFRESH, "accesstoken", "refreshtoken", ordering="source")
        async with rig.delivering():
            rig.groups("a")
            await until(lambda: len(rig.receiver.arrived["s"]) == 1)
            assert len(rig.receiver.attempts["s"]) == 2
            good.clear()
            rig.groups("b")
            await until(lambda: rig.status()["state"] == "unauthorized")
            assert len(renewed) == 2
            good.add("new3")
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 2)
            await until(lambda: rig.status()["state"] == "active")

    run(deliver)
    rig.close()


def test_what_cannot_be_renewed_waits(sqlite_url: str) -> None:
    # SUB-307, 308, 303: in state `credentialexpired` nothing is attempted or lost; the renewal is retried later
    works: list[RenewedTokens] = []

    async def renew(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        return works[0] if works else None

    rig = Rig(sqlite_url, secrets=SecretsInMemory(accesstoken="t", refreshtoken="r"), renew_tokens=renew)

    async def deliver() -> None:
        subscribe(rig, REFRESH, "accesstoken", "refreshtoken")
        rig.clock.move(2000)
        async with rig.delivering():
            rig.groups("a", "b")
            await until(lambda: rig.status()["state"] == "credentialexpired")
            assert not rig.receiver.attempts["s"]
            works.append(RenewedTokens("new", rig.clock.now + 5000))
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 2)
            await until(lambda: rig.status()["state"] == "active")

    run(deliver)
    rig.close()


def test_an_access_token_that_has_ended_waits_for_an_update(sqlite_url: str) -> None:
    # SUB-308, 914: the same if the secret is missing
    secrets = SecretsInMemory(accesstoken="t")
    rig = Rig(sqlite_url, secrets=secrets)

    async def deliver() -> None:
        subscribe(rig, TOKEN, "accesstoken")
        rig.clock.move(1001)
        async with rig.delivering():
            rig.groups("a")
            await until(lambda: rig.status()["state"] == "credentialexpired")
            subscribe(rig, TOKEN | {"accesstokenexpiresutc": utc(9000)}, "accesstoken")
            await until(lambda: len(rig.receiver.arrived["s"]) == 1)
            secrets.values.clear()
            subscribe(rig, TOKEN | {"accesstokenexpiresutc": utc(9001)}, "accesstoken")
            rig.groups("b")
            await until(lambda: rig.status()["state"] == "credentialexpired")
            assert len(rig.receiver.attempts["s"]) == 1

    run(deliver)
    rig.close()


def test_stored_sink_responses_have_no_secrets(sqlite_url: str) -> None:
    # SUB-303, 823: at most a kilobyte, in the status and in dead letters; the secret is masked in any case and encoding
    rig = Rig(sqlite_url, secrets=SecretsInMemory(secret="pass-marker"))
    repeated = f"no pass-marker PASS-marker {base64.b64encode(b'pass-marker').decode()} "
    rig.receiver.answer = lambda id, events: Outcome(DeliveryResult.REJECTED, "400", repeated * 100)

    async def deliver() -> None:
        subscribe(rig, {"credentialtype": "PLAIN", "identifier": "me"}, "secret")
        async with rig.delivering():
            rig.groups("a")
            await until(lambda: rig.deadletters())

    run(deliver)
    for message in (rig.status()["lasterror"]["message"], rig.deadletters()[0]["message"]):
        assert message.startswith("no *** *** *** no *** *** *** no")
        assert "pass-marker" not in message
        assert len(message) <= 1024
    credential = rig.receiver.targets[0].credential
    assert credential is not None and (credential.identifier, credential.secret) == ("me", "pass-marker")
    rig.close()


@dataclass
class ConsentAnswer:
    is_allowed: bool
    rate: int | None = None
    reason: str = ""


class Handshakes:
    """A validator that gives its answers in turn, the last one for ever."""

    def __init__(self, *answers: ConsentAnswer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[SinkTarget, int | None, str | None]] = []

    async def validate(self, target: SinkTarget, rate: int | None, callback: str | None) -> ConsentAnswer:
        self.asked.append((target, rate, callback))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_a_sink_is_asked_first(sqlite_url: str) -> None:
    # SUB-711 to 713, walk-through 1: after it consents, deliveries name the origin, and keep to its rate
    handshakes = Handshakes(ConsentAnswer(True, 120))
    rig = Rig(sqlite_url, validator=handshakes, policy="required", origin="registry.example")

    async def deliver() -> None:
        rig.subscribe(requestrate=500, ordering="source")
        rig.groups("a", "b", "c", "d", "e")
        async with rig.delivering():
            began = rig.clock.now
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 5)
            # Two at once, then one each half of a second.
            assert 1.4 <= rig.clock.now - began <= 1.7
            await until(lambda: rig.status().get("lastsuccess"))
        async with rig.delivering():  # the bucket keeps its level
            began = rig.clock.now
            rig.groups("f", "g")
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 7)
            assert 0.9 <= rig.clock.now - began <= 1.2

    run(deliver)
    assert [rate for _, rate, _ in handshakes.asked] == [500]
    assert {target.origin for target in rig.receiver.targets} == {"registry.example"}
    assert rig.status()["validation"] == {"state": "validated", "allowedrate": 120}
    rig.close()


def test_without_consent(sqlite_url: str) -> None:
    # SUB-711, 712: with policy `required`, deliveries wait until consent is requested again and given
    handshakes = Handshakes(ConsentAnswer(False), ConsentAnswer(True))
    rig = Rig(sqlite_url, validator=handshakes, policy="required", origin="o")

    async def deliver() -> None:
        rig.subscribe()
        rig.groups("a")
        async with rig.delivering():
            await until(lambda: rig.status()["state"] == "pendingvalidation" and handshakes.asked)
            rig.clock.move(3600)
            await asyncio.sleep(0.2)
            assert not rig.receiver.attempts["s"] and len(handshakes.asked) == 1
            rig.act("verify")
            await until(lambda: len(rig.receiver.arrived["s"]) == 1)

    run(deliver)
    rig.close()


def test_few_without_consent(sqlite_url: str) -> None:
    # SUB-711: 20 at once, then 10 a minute, without naming the origin
    rig = Rig(sqlite_url, validator=Handshakes(ConsentAnswer(False)), policy="optional", origin="o")

    async def deliver() -> None:
        rig.subscribe()
        rig.groups(*(f"g{number}" for number in range(25)))
        async with rig.delivering():
            await until(lambda: len(rig.receiver.arrived["s"]) == 20)
            await asyncio.sleep(0.2)
            assert len(rig.receiver.attempts["s"]) == 20
            began = rig.clock.now
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 25)
            assert 29 <= rig.clock.now - began <= 31

    run(deliver)
    assert {target.origin for target in rig.receiver.targets} == {""}
    assert rig.status()["validation"] == {"state": "unvalidated"}
    rig.close()


def test_one_refusal_stops_nothing(sqlite_url: str) -> None:
    # SUB-712: consent is requested once a day; three refusals in a row withdraw it
    handshakes = Handshakes(
        ConsentAnswer(True),
        ConsentAnswer(False),
        ConsentAnswer(True),
        ConsentAnswer(False),
        ConsentAnswer(False),
        ConsentAnswer(False),
    )
    rig = Rig(sqlite_url, validator=handshakes, policy="required", origin="o")
    states: list[str] = []

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            for days in range(6):
                await until(partial(lambda days: len(handshakes.asked) == days + 1, days))
                await asyncio.sleep(0.25)
                states.append(rig.status()["state"])
                rig.clock.move(86400)

    run(deliver)
    assert states == ["active"] * 5 + ["pendingvalidation"]
    rig.close()


def test_consent_comes_later(store_url: str) -> None:
    # SUB-714: a callback's secret is valid once, for a day, and for its own subscription
    handshakes = Handshakes(ConsentAnswer(False))
    rig = Rig(store_url, validator=handshakes, policy="required", build_callback=lambda id, secret: secret)

    async def deliver() -> None:
        rig.subscribe()
        rig.groups("a")
        async with rig.delivering():
            await until(lambda: handshakes.asked)
            secret = handshakes.asked[0][2]
            assert secret is not None and len(secret) >= 32
            assert not rig.deliveries.consent("s", "no" + secret, None)
            assert not rig.deliveries.consent("t", secret, None)
            await until(lambda: rig.deliveries.consent("s", secret, 300))
            assert not rig.deliveries.consent("s", secret, None)
            await until(lambda: len(rig.receiver.arrived["s"]) == 1)
            await until(lambda: rig.status()["validation"] == {"state": "validated", "allowedrate": 300})
            rig.act("verify")
            await until(lambda: len(handshakes.asked) == 2)
            await asyncio.sleep(0.3)
            rig.clock.move(86401)
            assert not rig.deliveries.consent("s", str(handshakes.asked[1][2]), None)

    run(deliver)
    rig.close()


def test_a_callback_that_comes_while_others_are_written(sqlite_url: str) -> None:
    # SUB-714: it is stored with the next write, not lost
    rig = Rig(sqlite_url)

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering() as deliverer:
            worker = await until(lambda: deliverer.workers.get("s"))
            worker.state.callbacks.append(("first", 1.0))
            update = worker.state_update()
            worker.state.callbacks.append(("second", 1.0))
            worker.mark_written(update)
            assert (update.callbacks, worker.state.callbacks) == ((("first", 1.0),), [("second", 1.0)])

    run(deliver)
    rig.close()


def test_a_new_sink_needs_a_new_consent(sqlite_url: str) -> None:
    # SUB-712: a change of `sink` requires it, and no other change does
    handshakes = Handshakes(ConsentAnswer(True))
    rig = Rig(sqlite_url, validator=handshakes, policy="required", origin="o")

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            await until(lambda: len(handshakes.asked) == 1)
            rig.subscribe(types=["io.xregistry.group.created"])
            rig.groups("a")
            await until(lambda: len(rig.receiver.arrived["s"]) == 1)
            assert len(handshakes.asked) == 1
            rig.subscribe(sink="https://other.example/")
            await until(lambda: len(handshakes.asked) == 2)
            rig.subscribe(sink="mqtt://other.example/", protocol="MQTT5")
            rig.groups("a")
            await until(lambda: len(rig.receiver.arrived["s"]) == 2)
            assert len(handshakes.asked) == 2

    run(deliver)
    rig.close()
