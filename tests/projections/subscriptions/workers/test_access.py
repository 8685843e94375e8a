"""Credentials, renewed tokens, consents and rates, on a real store."""

from __future__ import annotations

import asyncio
import base64
import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from threading import Event
from typing import Any

import pytest
from cloudevents.core.v1.event import CloudEvent
from prometheus_client import generate_latest

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.database.state_database import StateDatabase, create_tables
from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome, SinkTarget
from annals.projections.subscriptions.ports import RenewedTokens
from annals.projections.subscriptions.state import delivery_queries, tables
from tests.support.delivery_rig import Clock, Rig, advance_until, until

UNAUTHORIZED = Outcome(DeliveryResult.UNAUTHORIZED, "401", "who is pass-marker")
REJECTED = Outcome(DeliveryResult.REJECTED, "413", "too much")
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


def test_a_renewed_token_outlives_a_failure_of_the_store(sqlite_url: str) -> None:
    # SUB-307: a provider takes each refresh token once, so the next one must not be lost while it cannot be stored
    valid = ["refresh0"]

    async def renew(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        if refreshtoken != valid[-1]:
            return None
        valid.append(f"refresh{len(valid)}")
        return RenewedTokens(f"token{len(valid) - 1}", START + 1000 * len(valid), valid[-1])

    class BusySecrets(SecretsInMemory):
        """The database is locked at the first write."""

        failures = 1

        def replace(self, subscription: Subscription, values: Mapping[str, str]) -> None:
            if self.failures:
                self.failures -= 1
                raise sqlite3.OperationalError("database is locked")
            super().replace(subscription, values)

    secrets = BusySecrets(accesstoken="token0", refreshtoken="refresh0")
    rig = Rig(sqlite_url, secrets=secrets, renew_tokens=renew)

    async def deliver() -> None:
        subscribe(rig, REFRESH, "accesstoken", "refreshtoken")
        async with rig.delivering():
            rig.clock.move(960)
            rig.groups("a")
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 1)

    run(deliver)
    assert rig.status()["state"] == "active"
    assert secrets.values["sinkcredential.refreshtoken"] == valid[-1]
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


@pytest.mark.parametrize("is_resumed", [False, True])
def test_what_cannot_be_renewed_waits(sqlite_url: str, is_resumed: bool) -> None:
    # SUB-307, 308, 303: in state `credentialexpired` nothing is attempted or lost; the renewal is retried later, or at
    # once if the owner resumes the subscription
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
            if is_resumed:
                rig.act("resume")
            else:
                await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 2)
            await until(lambda: len(rig.receiver.arrived["s"]) == 2)
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
            assert rig.status()["lasterror"]["message"] == "the access token has expired"
            rig.groups("c")
            rig.act("resume")  # it cannot renew the token
            await asyncio.sleep(0.2)
            assert rig.status()["state"] == "credentialexpired"
            subscribe(rig, TOKEN | {"accesstokenexpiresutc": utc(9000)}, "accesstoken")
            await until(lambda: len(rig.receiver.arrived["s"]) == 2)
            await until(lambda: rig.status()["state"] == "active")
            secrets.values.clear()
            subscribe(rig, TOKEN | {"accesstokenexpiresutc": utc(9001)}, "accesstoken")
            rig.groups("b")
            await until(lambda: rig.status()["state"] == "credentialexpired")
            assert rig.status()["lasterror"]["code"] == "credentialexpired"
            assert len(rig.receiver.attempts["s"]) == 2

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
    is_answered: bool = True


NO_ANSWER = ConsentAnswer(False, reason="no connection", is_answered=False)


class Handshakes:
    """A validator that gives its answers in turn, the last one for ever."""

    def __init__(self, *answers: ConsentAnswer | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[SinkTarget, int | None, str | None]] = []

    async def validate(self, target: SinkTarget, rate: int | None, callback: str | None) -> ConsentAnswer:
        self.asked.append((target, rate, callback))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


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


def record_times(rig: Rig, answer: Callable[[Sequence[CloudEvent]], Outcome]) -> list[float]:
    """The times of requests that are answered so, which grow."""
    times: list[float] = []

    def note(id: str, events: Sequence[CloudEvent]) -> Outcome:
        times.append(rig.clock.now)
        return answer(events)

    rig.receiver.answer = note
    return times


async def pass_minutes(rig: Rig, holds: Callable[[], Any]) -> None:
    """Moves the clock to the next time within a minute that deliveries wait for, again and again until it holds."""
    while not holds():
        await until(lambda: holds() or (rig.clock.next is not None and rig.clock.next - rig.clock.now <= 60))
        if not holds() and rig.clock.next is not None:
            rig.clock.move(max(0.0, rig.clock.next - rig.clock.now))


def test_halves_of_a_batch_keep_to_the_rate(sqlite_url: str) -> None:
    # SUB-713: each is a request; while they wait, the batch is not sent as a whole again
    rig = Rig(sqlite_url, validator=Handshakes(ConsentAnswer(True, 1)), policy="required", origin="o")
    times = record_times(rig, lambda events: REJECTED if len(events) > 2 else DELIVERED)

    async def deliver() -> None:
        rig.subscribe(contentmode="batched", maxbatchsize=8, maxbatchwait=5000)
        rig.groups(*"abcdefgh")
        async with rig.delivering():
            await pass_minutes(rig, lambda: len(rig.receiver.arrived["s"]) == 8)

    run(deliver)
    assert [len(events) for events in rig.receiver.attempts["s"]][:4] == [8, 4, 2, 4]
    assert rig.receiver.subjects() == [f"/dirs/{id}" for id in "abcdefgh"]
    assert all(later - earlier >= 60 for earlier, later in pairwise(times))
    rig.close()


@pytest.mark.parametrize("is_accepted", [True, False])
def test_a_request_with_a_renewed_token_keeps_to_the_rate(sqlite_url: str, is_accepted: bool) -> None:
    # SUB-713, 307, 821: it waits like any other request; attempts end although each renewal works
    async def renew(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        return RenewedTokens("new", START + 5000)

    rig = Rig(
        sqlite_url,
        secrets=SecretsInMemory(accesstoken="old", refreshtoken="r"),
        renew_tokens=renew,
        validator=Handshakes(ConsentAnswer(True, 1)),
        policy="required",
        origin="o",
    )
    times = record_times(rig, lambda events: DELIVERED if is_accepted and tokens_of(rig)[-1] == "new" else UNAUTHORIZED)

    async def deliver() -> None:
        subscribe(rig, REFRESH, "accesstoken", "refreshtoken", retry={"maxattempts": 2})
        rig.groups("a")
        async with rig.delivering():
            await pass_minutes(rig, lambda: len(times) == 2)
            await until(lambda: len(rig.deadletters()) == (not is_accepted))

    run(deliver)
    assert len(rig.receiver.arrived["s"]) == is_accepted
    assert times[0] == START and times[1] >= START + 60
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


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(NO_ANSWER, "no connection"), (OSError("pass-marker"), "the sink was not asked: OSError")],
)
def test_a_sink_that_does_not_answer_is_asked_again(
    sqlite_url: str, answer: ConsentAnswer | Exception, reason: str
) -> None:
    # SUB-711, 712: soon, with growing delays; the owner sees why there is no consent
    handshakes = Handshakes(*[answer] * 11, ConsentAnswer(True))
    rig = Rig(sqlite_url, validator=handshakes, policy="required", origin="o")
    times: list[float] = []

    async def deliver() -> None:
        rig.subscribe()
        rig.groups("a")
        async with rig.delivering():
            for count in range(1, 12):
                await advance_until(rig.clock, partial(lambda count: len(handshakes.asked) >= count, count))
                times.append(rig.clock.now)
            await until(lambda: rig.status()["state"] == "pendingvalidation")
            assert rig.status()["validation"] == {"state": "unvalidated", "reason": reason}
            await advance_until(rig.clock, lambda: rig.receiver.arrived["s"])
            await until(lambda: rig.status()["validation"] == {"state": "validated"})

    run(deliver)
    delays = [round(later - earlier) for earlier, later in pairwise(times)]
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    rig.close()


def test_a_paused_subscription_does_not_ask_again(sqlite_url: str) -> None:
    # SUB-712: until it is resumed
    handshakes = Handshakes(NO_ANSWER)
    rig = Rig(sqlite_url, validator=handshakes, policy="required", origin="o")

    async def deliver() -> None:
        rig.subscribe()
        rig.act("pause")
        async with rig.delivering():
            await until(lambda: handshakes.asked)
            await until(lambda: "reason" in rig.status()["validation"])
            rig.clock.move(3600)
            await asyncio.sleep(0.2)
            assert len(handshakes.asked) == 1
            rig.act("resume")
            await until(lambda: len(handshakes.asked) == 2)

    run(deliver)
    rig.close()


def test_days_without_an_answer_withdraw_a_consent(sqlite_url: str) -> None:
    # SUB-712, 7.1: a day counts as one refusal, however often the sink was asked in it
    rig = Rig(sqlite_url, validator=Handshakes(ConsentAnswer(True), NO_ANSWER), policy="required", origin="o")

    def is_asked_again_soon() -> bool:
        return rig.clock.next is not None and 0 < rig.clock.next - rig.clock.now <= 300

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            await until(lambda: rig.status()["validation"]["state"] == "validated")
            for _ in range(3):
                for seconds in (86400, 2):
                    rig.clock.move(seconds)
                    await until(is_asked_again_soon)
                await asyncio.sleep(0.2)
                assert rig.status()["validation"]["state"] == "validated"
            rig.clock.move(86400)
            await until(lambda: rig.status()["validation"]["state"] == "unvalidated")

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

    def is_asked_again_tomorrow() -> bool:
        return rig.clock.next is not None and 80_000 < rig.clock.next - rig.clock.now <= 86_400

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            for days in range(5):
                await until(partial(lambda days: len(handshakes.asked) == days + 1, days))
                await until(is_asked_again_tomorrow)
                await asyncio.sleep(0.25)
                assert rig.status()["state"] == "active"
                rig.clock.move(86400)
            await until(lambda: rig.status()["state"] == "pendingvalidation")
            assert len(handshakes.asked) == 6

    run(deliver)
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


def test_consent_before_a_crash(store_url: str) -> None:
    # SUB-714: it is not lost if the process that delivers ends before it has stored it
    handshakes = Handshakes(ConsentAnswer(False))
    rig = Rig(store_url, validator=handshakes, policy="required", build_callback=lambda id, secret: secret)
    reader = StateDatabase(store_url)

    def is_taken() -> bool:
        with reader.reading() as db:
            return db.one("SELECT 1 FROM delivery_request") is None

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering(crash=True):
            await until(lambda: handshakes.asked)
            await until(lambda: rig.deliveries.consent("s", str(handshakes.asked[0][2]), 300))
            await until(is_taken)
        async with rig.delivering():
            await until(lambda: rig.status()["validation"] == {"state": "validated", "allowedrate": 300})

    run(deliver)
    reader.close()
    rig.close()


def test_a_newer_request_stays(store_url: str) -> None:
    # SUB-714: the consent of another sink, which comes while an earlier one is stored, is not deleted with that one
    rig = Rig(store_url)
    create_tables(store_url, tables.METADATA)
    with closing(StateDatabase(store_url)) as state, state.writing() as db:
        db.upsert(tables.request, [("s", "consent", "one")])
        earlier = delivery_queries.read_requests(db, ["s"])
        db.upsert(tables.request, [("s", "consent", "other")])
        delivery_queries.delete_requests(db, earlier)
        assert [each.value for each in delivery_queries.read_requests(db, ["s"])] == ["other"]
    rig.close()


def test_a_callback_of_the_previous_sink(sqlite_url: str) -> None:
    # SUB-711, 714: it does not consent for the sink that replaced it, also if it comes before the update is applied
    handshakes = Handshakes(ConsentAnswer(False))
    rig = Rig(sqlite_url, validator=handshakes, policy="required", build_callback=lambda id, secret: secret)

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            await until(lambda: rig.status()["validation"]["state"] == "unvalidated")
            rig.act("verify")
            await until(lambda: len(handshakes.asked) == 2)
            await asyncio.sleep(0.3)
            before_update, after_update = (str(secret) for _, _, secret in handshakes.asked)
            rig.subscribe(sink="https://other.example/")
            rig.deliveries.consent("s", before_update, None)  # the update is in the log and not applied yet
            await until(lambda: len(handshakes.asked) == 3)
            await asyncio.sleep(1.2)  # time for requests of other processes
            assert not rig.deliveries.consent("s", after_update, None)
            assert rig.status()["validation"]["state"] == "unvalidated"
            await until(lambda: rig.deliveries.consent("s", str(handshakes.asked[2][2]), None))
            await until(lambda: rig.status()["validation"]["state"] == "validated")

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


def test_a_deleted_subscription_asks_its_sink_no_more(sqlite_url: str) -> None:
    # SUB-504, 842: when its last attempt ends, it plans no check for consent and leaves no metrics
    handshakes, gate = Handshakes(ConsentAnswer(True)), asyncio.Event()
    rig = Rig(sqlite_url, validator=handshakes, policy="required", origin="o")

    async def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        await gate.wait()
        return DELIVERED

    rig.receiver.answer = answer

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering() as deliverer:
            rig.groups("a")
            await until(lambda: rig.receiver.attempts["s"])
            rig.unsubscribe()
            await until(lambda: not deliverer.workers)
            gate.set()
            await until(lambda: rig.receiver.arrived["s"])
            await asyncio.sleep(0.1)
            rig.clock.move(2 * 86400)
            await asyncio.sleep(0.1)
            assert b'subscription="s"' not in generate_latest(deliverer.metrics.registry)

    run(deliver)
    assert len(handshakes.asked) == 1
    rig.close()


def test_a_consent_during_an_attempt(sqlite_url: str) -> None:
    # SUB-713: the sink is opened again, and the attempt that has the previous one can still use it
    handshakes, gate = Handshakes(ConsentAnswer(False), ConsentAnswer(True)), asyncio.Event()
    rig = Rig(sqlite_url, validator=handshakes, policy="optional", origin="o")
    closed: dict[str, int] = {}

    def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        closed[str(events[0].get_subject())] = rig.receiver.closed
        return DELIVERED

    rig.receiver.answer = answer

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering() as deliverer:
            is_waiting, catch_up = asyncio.Event(), deliverer.catch_up

            async def catch_up_slowly() -> None:
                if not is_waiting.is_set():
                    is_waiting.set()
                    await gate.wait()
                await catch_up()

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(deliverer, "catch_up", catch_up_slowly)
                rig.groups("a")
                await until(is_waiting.is_set)
                rig.act("verify")
                await until(lambda: rig.status()["validation"]["state"] == "validated")
                rig.groups("b")
                await until(lambda: rig.receiver.subjects() == ["/dirs/b"])
                gate.set()
                await until(lambda: len(rig.receiver.arrived["s"]) == 2)

    run(deliver)
    assert closed == {"/dirs/a": 0, "/dirs/b": 0}
    assert [target.origin for target in rig.receiver.targets] == ["", "o"]
    rig.close()


def test_a_token_is_renewed_once_for_all_refused_requests(sqlite_url: str) -> None:
    # SUB-307: also if a refusal arrives only after the renewal
    renewed: list[str] = []

    async def renew(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        renewed.append(refreshtoken)
        return RenewedTokens(f"new{len(renewed)}", START + 5000)

    rig = Rig(sqlite_url, secrets=SecretsInMemory(accesstoken="old", refreshtoken="r"), renew_tokens=renew)

    async def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        if tokens_of(rig)[-1] != "old" or events[0].get_subject() == "/dirs/first":
            return DELIVERED
        if events[0].get_subject() == "/dirs/b":
            await until(lambda: "/dirs/a" in rig.receiver.subjects())
        return UNAUTHORIZED

    rig.receiver.answer = answer

    async def deliver() -> None:
        subscribe(rig, REFRESH, "accesstoken", "refreshtoken")
        async with rig.delivering():
            rig.groups("first")
            await until(lambda: rig.receiver.arrived["s"])
            rig.record(("/dirs/a", {"n": 1}), ("/dirs/b", {"n": 1}))
            await until(lambda: rig.receiver.subjects() == ["/dirs/first", "/dirs/a", "/dirs/b"])

    run(deliver)
    assert (renewed, tokens_of(rig)) == (["r"], ["old", "new1"])
    rig.close()


def test_a_credential_that_is_replaced_while_it_is_read(sqlite_url: str) -> None:
    # SUB-308, 914: a missing secret of the previous settings does not stop the new ones
    is_reading, gate = Event(), Event()

    class SlowSecrets(SecretsInMemory):
        def reveal(self, subscription: Subscription) -> Mapping[str, str]:
            if is_reading.is_set():
                return super().reveal(subscription)
            is_reading.set()
            gate.wait()
            raise LookupError("sinkcredential.accesstoken")

    rig = Rig(sqlite_url, secrets=SlowSecrets(accesstoken="t"))

    async def deliver() -> None:
        subscribe(rig, TOKEN, "accesstoken")
        async with rig.delivering() as deliverer:
            rig.groups("a")
            await until(is_reading.is_set)
            subscribe(rig, TOKEN | {"accesstokenexpiresutc": utc(9000)}, "accesstoken")
            await until(lambda: deliverer.workers["s"].state.plan.position == rig.position)
            gate.set()
            await until(lambda: rig.receiver.subjects() == ["/dirs/a"])
            await until(lambda: rig.status()["state"] == "active")

    run(deliver)
    rig.close()


@pytest.mark.parametrize("renewed", [None, RenewedTokens("other", START + 2100)], ids=["failed", "renewed"])
def test_a_credential_that_is_replaced_while_it_is_renewed(sqlite_url: str, renewed: RenewedTokens | None) -> None:
    # SUB-307, 308: the new credential does not wait, and has its own expiry
    is_renewing, gate = asyncio.Event(), asyncio.Event()

    async def renew(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        is_renewing.set()
        await gate.wait()
        return renewed

    rig = Rig(sqlite_url, secrets=SecretsInMemory(accesstoken="t", refreshtoken="r"), renew_tokens=renew)

    async def deliver() -> None:
        subscribe(rig, REFRESH, "accesstoken", "refreshtoken")
        rig.clock.move(2000)
        async with rig.delivering() as deliverer:
            rig.groups("a")
            await until(is_renewing.is_set)
            subscribe(rig, TOKEN | {"accesstokenexpiresutc": utc(9000)}, "accesstoken")
            await until(lambda: deliverer.workers["s"].state.plan.position == rig.position)
            gate.set()
            await until(lambda: rig.receiver.subjects() == ["/dirs/a"])
            rig.clock.move(200)
            rig.groups("b")
            await until(lambda: rig.receiver.subjects() == ["/dirs/a", "/dirs/b"])

    run(deliver)
    rig.close()


def test_a_sink_that_is_gone_while_its_token_is_renewed(sqlite_url: str) -> None:
    # 8.3: a failed renewal does not hide that only the owner can resume deliveries
    is_renewing, has_answered, has_failed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def renew(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        is_renewing.set()
        await has_failed.wait()
        return None

    async def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        await has_answered.wait()
        return Outcome(DeliveryResult.GONE, "410")

    rig = Rig(sqlite_url, secrets=SecretsInMemory(accesstoken="t", refreshtoken="r"), renew_tokens=renew)
    rig.receiver.answer = answer

    async def deliver() -> None:
        subscribe(rig, REFRESH, "accesstoken", "refreshtoken")
        async with rig.delivering():
            rig.groups("a")
            await until(lambda: rig.receiver.attempts["s"])
            rig.clock.move(950)
            rig.groups("b")
            await until(is_renewing.is_set)
            has_answered.set()
            await until(lambda: rig.status()["state"] == "gone")
            has_failed.set()
            await asyncio.sleep(0.3)  # time for a write of the state
            assert rig.status()["state"] == "gone"

    run(deliver)
    rig.close()


class SlowSecrets:
    """Secrets by reference. A reading blocks while `gate` is not set, and says so."""

    def __init__(self, **values: str) -> None:
        self.values = values
        self.is_reading, self.gate = Event(), Event()
        self.gate.set()

    def reveal(self, subscription: Subscription) -> Mapping[str, str]:
        values = {name: self.values[reference] for name, reference in subscription.secrets.items()}
        if not (gate := self.gate).is_set():
            self.is_reading.set()
            gate.wait()
        return values

    def replace(self, subscription: Subscription, values: Mapping[str, str]) -> None:
        self.values |= {subscription.secrets[name]: value for name, value in values.items()}


OLD_SECRETS = {"sinkcredential.accesstoken": "old_access", "sinkcredential.refreshtoken": "old_refresh"}
NEW_SECRETS = {"sinkcredential.accesstoken": "new_access", "sinkcredential.refreshtoken": "new_refresh"}
OTHER_REFRESH = REFRESH | {"refreshtokenendpoint": "https://other.example/"}


@pytest.mark.parametrize("is_refused", [False, True])
def test_no_endpoint_gets_the_refresh_token_of_another(sqlite_url: str, is_refused: bool) -> None:
    # SUB-304, 307: settings change while secrets are read, or while a refused request waits for the renewal of another
    secrets = SlowSecrets(old_access="pass-a", old_refresh="r-old", new_access="pass-b", new_refresh="r-new")
    renewals: list[tuple[str, str]] = []
    gate = asyncio.Event()

    async def renew(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        renewals.append((endpoint, refreshtoken))
        await gate.wait()
        return None

    rig = Rig(sqlite_url, secrets=secrets, renew_tokens=renew)
    rig.receiver.answer = lambda id, events: (
        UNAUTHORIZED if tokens_of(rig)[-1] == "pass-a" and events[0].get_subject() != "/dirs/first" else DELIVERED
    )

    async def deliver() -> None:
        rig.secrets = OLD_SECRETS
        rig.subscribe(sinkcredential=REFRESH)
        async with rig.delivering() as deliverer:
            if is_refused:
                rig.groups("first")
                await until(lambda: rig.receiver.arrived["s"])
                rig.record(("/dirs/a", {"n": 1}), ("/dirs/b", {"n": 1}))
                await until(lambda: len(rig.receiver.attempts["s"]) == 3 and renewals)
            else:
                rig.clock.move(2000)
                secrets.gate.clear()
                rig.groups("a", "b")
                await until(secrets.is_reading.is_set)
            rig.secrets = NEW_SECRETS
            rig.subscribe(sinkcredential=OTHER_REFRESH | {"accesstokenexpiresutc": utc(9000)})
            await until(lambda: deliverer.workers["s"].state.plan.position == rig.position)
            secrets.gate.set()
            gate.set()
            await until(lambda: {"/dirs/a", "/dirs/b"} <= set(rig.receiver.subjects()))
            await until(lambda: rig.status()["state"] == "active")

    run(deliver)
    assert renewals == ([("https://tokens.example/", "r-old")] if is_refused else [])
    rig.close()


def test_secrets_that_are_replaced_while_consent_is_requested(sqlite_url: str) -> None:
    # SUB-303: what that request has read does not count as the secrets of the open sink, of which answers are scrubbed
    secrets = SlowSecrets(old_access="pass-a", new_access="pass-b")
    rig = Rig(sqlite_url, secrets=secrets, validator=Handshakes(ConsentAnswer(True)), policy="required", origin="o")
    gate = asyncio.Event()

    async def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        await gate.wait()
        return Outcome(DeliveryResult.REJECTED, "400", "no pass-b")

    rig.receiver.answer = answer

    async def deliver() -> None:
        rig.secrets = {"sinkcredential.accesstoken": "old_access"}
        rig.subscribe(sinkcredential=TOKEN)
        async with rig.delivering():
            await until(lambda: rig.status()["validation"]["state"] == "validated")
            secrets.gate.clear()
            rig.act("verify")
            await until(secrets.is_reading.is_set)
            blocked, secrets.gate = secrets.gate, Event()
            secrets.gate.set()
            rig.secrets = {"sinkcredential.accesstoken": "new_access"}
            rig.subscribe(sinkcredential=TOKEN)
            rig.groups("a")
            await until(lambda: rig.receiver.attempts["s"])
            blocked.set()
            await asyncio.sleep(0.2)
            gate.set()
            await until(lambda: rig.deadletters())

    run(deliver)
    assert rig.deadletters()[0]["message"] == "no ***"
    rig.close()
