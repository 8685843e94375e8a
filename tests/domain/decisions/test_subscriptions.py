"""Decisions about subscriptions: at most one event for each command, and secret values to store or destroy."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import (
    ControlSubscription,
    DeleteSubscription,
    SubscriptionCommand,
    WriteSubscription,
)
from annals.domain.decisions.decide import decide
from annals.domain.decisions.permissions import permitted_role
from annals.domain.decisions.world import Context, Decision, Secret
from annals.domain.errors.http_errors import InvalidSubscription, QuotaExceeded
from annals.domain.errors.problems import NotFound
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityUpdated
from annals.domain.subscriptions.sink_uris import PROTOCOLS
from annals.domain.subscriptions.subscription import Subscription
from annals.domain.subscriptions.subscription_document import SubscriptionSupport, parse_subscription
from tests.support.registries.memory_world import MemoryWorld

NOW = datetime(2026, 1, 2, tzinfo=UTC)
XID = "/subscriptions/s1"
PLAIN = {"credentialtype": "PLAIN", "identifier": "u", "secret": "pw"}
BASE = {"sink": "https://sink.example/in", "protocol": "HTTP"}


class Log:
    """A log with subscriptions; a test that raises `position` simulates other events."""

    def __init__(self) -> None:
        self.world = MemoryWorld()
        self.position = 0

    def do(self, command: SubscriptionCommand, caller: str = "ann", role: Role = Role.WRITER) -> Decision:
        context = Context(NOW, f"c{self.position}", Caller(caller, role), role, position=self.position)
        decision = decide(command, self.world, context)
        self.world.extend(decision.events, secrets=decision.secrets)
        self.position += len(decision.events)
        return decision

    def write(self, body: dict[str, Any], new: bool = False, caller: str = "ann", **more: Any) -> Decision:
        return self.do(command(body, new, **more), caller, more.get("role", Role.WRITER))

    @property
    def entity(self) -> Entity:
        found = self.world.get(XID)
        assert found is not None
        return found

    @property
    def subscription(self) -> Subscription:
        return Subscription.from_entity(self.entity, self.position)

    def secrets(self) -> dict[str, str | None]:
        """Returns the values of the subscription's secrets."""
        return {
            name: self.world.secret(Secret(reference, XID, name))
            for name, reference in self.subscription.secrets.items()
        }


def command(body: dict[str, Any], new: bool, xid: str = XID, **more: Any) -> WriteSubscription:
    more.pop("role", None)
    found = parse_subscription({**BASE, **body}, SubscriptionSupport(PROTOCOLS, plaintext=True))
    return WriteSubscription(
        xid,
        new,
        found.attributes,
        found.secrets,
        found.missing_secrets,
        found.dropped_secrets,
        found.secret_binding,
        **more,
    )


@pytest.fixture
def log() -> Log:
    """A log with one subscription, which has a credential."""
    log = Log()
    log.write({"sinkcredential": PLAIN}, new=True)
    return log


def only(decision: Decision) -> EntityEvent:
    [event] = decision.events
    return event


def test_a_creation(log: Log) -> None:
    # SUB-507: exactly one event; SUB-913: the log has only references to secrets
    fresh = Log()
    fresh.position = 7
    event = only(fresh.write({"sinkcredential": PLAIN}, new=True))
    assert isinstance(event, EntityCreated)
    assert (event.xid, event.type, event.epoch, event.revision) == (XID, "subscriptions", 1, 1)
    assert event.attributes["sinkcredential"] == {"credentialtype": "PLAIN", "identifier": "u"}
    assert event.private["secrets"].keys() == {"sinkcredential.secret"}
    assert fresh.secrets() == {"sinkcredential.secret": "pw"}
    assert "pw" not in repr(event) and "pw" not in repr(command({"sinkcredential": PLAIN}, True))
    assert fresh.subscription.owner == "ann"


@pytest.mark.parametrize(
    ("config", "starts"),
    [({}, 9), ({"startposition": "earliest"}, 1), ({"startposition": 0}, 1), ({"startposition": 5}, 5)],
)
def test_where_it_starts(config: dict[str, Any], starts: int) -> None:
    # SUB-804: `latest` means events committed after the creation
    log = Log()
    log.position = 7
    log.write({"config": config}, new=True)
    assert (log.subscription.since, log.subscription.first_position) == (8, starts)


@pytest.mark.parametrize("start", [9, 1000, 2**61])
def test_a_start_after_the_end_of_the_log_is_refused(start: int) -> None:
    # SUB-804, as SUB-834 for replays: events before that position would be skipped
    log = Log()
    log.position = 7
    for new in (True, False):
        with pytest.raises(InvalidSubscription) as raised:
            log.write({"config": {"startposition": start}}, new=new)
        assert raised.value.extensions["pointer"] == "/config/startposition"
        assert f"the log ends at position {log.position}" in raised.value.text()
        if new:
            log.write({"config": {"startposition": 8}}, new=True)
            start += 1


def test_a_start_by_time() -> None:
    # SUB-835: the caller of the decision has looked up the position of the time
    log = Log()
    log.write({"config": {"starttime": "2026-01-01T00:00:00Z"}}, new=True, starttime=4)
    assert log.subscription.first_position == 4


def test_an_update_keeps_the_start(log: Log) -> None:
    # SUB-502: the cursor stays unless the start changes
    log.position = 20
    log.write({"types": ["a"]})
    assert (log.subscription.since, log.subscription.first_position, log.subscription.epoch) == (1, 2, 2)
    log.write({"types": ["a"], "config": {"startposition": 5}})
    assert (log.subscription.since, log.subscription.first_position, log.subscription.epoch) == (22, 5, 3)


def test_an_equal_update_makes_no_event(log: Log) -> None:
    # SUB-503: stored secrets, whether sent again or left out, make no event
    assert log.write({"sinkcredential": PLAIN}).events == ()
    assert log.write({"sinkcredential": {"credentialtype": "PLAIN", "identifier": "u"}}).events == ()
    assert log.subscription.epoch == 1


def test_another_secret_alone_is_an_update(log: Log) -> None:
    # SUB-913: replacing a credential destroys the old secret
    before = log.subscription.secrets["sinkcredential.secret"]
    event = only(log.write({"sinkcredential": {**PLAIN, "secret": "other"}}))
    assert isinstance(event, EntityUpdated)
    assert event.changed == ("sinkcredential",)
    assert log.secrets() == {"sinkcredential.secret": "other"}
    assert log.world.secret(Secret(before, XID, "sinkcredential.secret")) is None


def test_an_update_without_a_credential_removes_it(log: Log) -> None:
    # SUB-304: a full replacement
    decision = log.write({})
    assert [secret.value for secret in decision.secrets] == [None]
    assert "sinkcredential" not in log.entity.attributes and log.subscription.secrets == {}


WITHOUT_SECRET = {"credentialtype": "PLAIN", "identifier": "u"}


@pytest.mark.parametrize(
    "body",
    [
        {"sink": "https://other.example/in", "sinkcredential": WITHOUT_SECRET},
        {"sink": "https://sink.example:444/in", "sinkcredential": WITHOUT_SECRET},
        {"sinkcredential": {**WITHOUT_SECRET, "identifier": "v"}},
        {"sink": "amqps://sink.example/in", "protocol": "AMQP", "sinkcredential": WITHOUT_SECRET},
    ],
)
def test_a_secret_goes_nowhere_else(log: Log, body: dict[str, Any]) -> None:
    # SUB-304: a client that changes the host, port, user name or protocol has to send the secret again
    with pytest.raises(InvalidSubscription) as caught:
        log.write(body)
    assert caught.value.extensions == {"code": "secretrequired", "pointer": "/sinkcredential/secret"}


def test_another_path_of_the_same_host_keeps_the_secret(log: Log) -> None:
    # SUB-304: only scheme, host and port count
    log.write({"sink": "https://SINK.example:443/elsewhere", "sinkcredential": WITHOUT_SECRET})
    assert log.secrets() == {"sinkcredential.secret": "pw"}


def test_a_new_credential_needs_its_secret(log: Log) -> None:
    # SUB-304: without a stored secret, the secret cannot be left out
    log.write({})
    with pytest.raises(InvalidSubscription, match="none is stored"):
        log.write({"sinkcredential": WITHOUT_SECRET})
    with pytest.raises(InvalidSubscription) as caught:
        Log().write({"sinkcredential": WITHOUT_SECRET}, new=True)
    assert caught.value.extensions == {"code": "required", "pointer": "/sinkcredential/secret"}


def test_an_expired_token_cannot_begin(log: Log) -> None:
    # SUB-302: a creation with an expired token is refused; an update is not, because a stored token may have expired
    token = {"credentialtype": "ACCESSTOKEN", "accesstoken": "a", "accesstokenexpiresutc": "2026-01-01T00:00:00Z"}
    with pytest.raises(InvalidSubscription) as caught:
        Log().write({"sinkcredential": token}, new=True)
    assert caught.value.extensions["pointer"] == "/sinkcredential/accesstokenexpiresutc"
    assert log.write({"sinkcredential": token}).events


HEADERS = {"protocolsettings": {"headers": {"X-Api-Key": "k", "Cookie": "c"}}}


def test_secret_headers_are_kept_until_they_are_null() -> None:
    # SUB-915: responses leave secret headers out, so an update without them keeps them; one without `headers` does not
    log = Log()
    log.write(HEADERS, new=True)
    assert log.write({"protocolsettings": {"headers": {}}}).events == ()
    log.write({"protocolsettings": {"headers": {"cookie": None, "x-plain": "p"}}})
    assert log.secrets() == {"protocolsettings.headers.x-api-key": "k"}
    with pytest.raises(InvalidSubscription) as caught:
        log.write({"sink": "https://other.example/", "protocolsettings": {"headers": {}}})
    assert caught.value.extensions["pointer"] == "/protocolsettings/headers/x-api-key"
    log.write({})
    assert log.secrets() == {}


def test_a_signing_key_is_kept_until_it_is_null() -> None:
    # SUB-304: as with every secret that responses leave out
    key = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
    log = Log()
    log.write({"protocolsettings": {"signingkey": key}}, new=True)
    assert log.write({}).events == ()
    log.write({"protocolsettings": {"signingkey": None}})
    assert log.secrets() == {}


def test_the_query_of_a_sink_is_its_owners() -> None:
    # SUB-917: an update by a caller that cannot see the query keeps it; an update by the owner without it removes it
    log = Log()
    log.write({"sink": "https://sink.example/in?t=1"}, new=True)
    assert log.write({"sink": "https://sink.example/in"}, caller="root", role=Role.ADMIN).events == ()
    assert log.write({"sink": "https://sink.example/in?t=1"}).events == ()
    log.write({"sink": "https://sink.example/in"})
    assert log.secrets() == {}


def test_other_callers_get_not_found(log: Log) -> None:
    # SUB-911: only for the owner and administrators
    for each in (command({}, False), DeleteSubscription(XID), ControlSubscription(XID, "pause")):
        with pytest.raises(NotFound):
            log.do(each, caller="bob")
    log.do(ControlSubscription(XID, "pause"), "root", Role.ADMIN)
    assert log.subscription.owner == "ann"


def test_no_update_makes_one() -> None:
    # SUB-502: no upsert
    with pytest.raises(NotFound):
        Log().write({})


def test_a_deletion(log: Log) -> None:
    # SUB-504: its secrets are destroyed
    names = dict(log.subscription.secrets)
    decision = log.do(DeleteSubscription(XID))
    assert isinstance(only(decision), EntityDeleted)
    assert log.world.get(XID) is None
    assert all(log.world.secret(Secret(reference, XID, name)) is None for name, reference in names.items())


def test_pause_and_resume(log: Log) -> None:
    # SUB-833: both are idempotent; SUB-507: the event has the requested action; SUB-841: the epoch does not change
    event = only(log.do(ControlSubscription(XID, "pause")))
    assert (event.epoch, event.private["paused"], event.changed) == (1, True, ())
    assert log.do(ControlSubscription(XID, "pause")).events == ()
    assert log.subscription.action == {"name": "pause", "position": 2}
    assert only(log.do(ControlSubscription(XID, "resume"))).private["paused"] is False
    assert log.do(ControlSubscription(XID, "resume")).events == ()
    assert log.do(ControlSubscription(XID, "resume", is_stopped=True)).events


def test_an_update_leaves_a_pause(log: Log) -> None:
    # SUB-833: a pause lasts until a resume; the action belongs to the earlier request only
    log.do(ControlSubscription(XID, "pause"))
    log.write({"types": ["a"]})
    assert log.subscription.is_paused and log.subscription.action is None


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [({"from": 6}, "/fromposition"), ({"from": 1, "to": 6}, "/toposition"), ({"from": 3, "to": 2}, "/toposition")],
)
def test_a_replay_stays_within_the_log(log: Log, arguments: dict[str, Any], pointer: str) -> None:
    # SUB-834: positions after the end of the log, and an empty range, are refused
    log.position = 5
    with pytest.raises(InvalidSubscription) as caught:
        log.do(ControlSubscription(XID, "replay", arguments))
    assert caught.value.extensions["pointer"] == pointer


def test_a_replay_ends_where_the_log_did(log: Log) -> None:
    # SUB-834: a replay without `to` ends at the current end of the log
    log.position = 5
    log.do(ControlSubscription(XID, "replay", {"from": 2, "parallel": True}))
    assert log.subscription.action == {"name": "replay", "from": 2, "to": 5, "parallel": True, "position": 6}


def test_a_quota_for_each_owner(log: Log) -> None:
    # SUB-912: subscriptions of other owners do not count
    log.write({}, new=True, xid="/subscriptions/s2", caller="bob", max_owned=1)
    with pytest.raises(QuotaExceeded):
        log.write({}, new=True, xid="/subscriptions/s3", caller="bob", max_owned=1)
    log.do(DeleteSubscription("/subscriptions/s2"), "bob")
    log.write({}, new=True, xid="/subscriptions/s3", caller="bob", max_owned=1)


def test_roles_that_may_have_subscriptions() -> None:
    # Callers: a caller that may write anywhere may have subscriptions; only an admin of the registry sees all of them
    creation = command({}, True)
    roles = {
        "none": Caller("a", None, {}),
        "reader": Caller("a", Role.READER, {}),
        "reader in a Group": Caller("a", None, {"/dirs/d": Role.READER}),
        "writer": Caller("a", Role.WRITER, {}),
        "admin in a Group": Caller("a", None, {"/dirs/d": Role.ADMIN}),
        "admin": Caller("a", Role.ADMIN, {"/dirs/d": Role.READER}),
    }
    may = {name for name, caller in roles.items() if permitted_role(caller, creation)}
    assert may == {"writer", "admin in a Group", "admin"}
    assert permitted_role(roles["admin in a Group"], creation) is Role.WRITER
    assert permitted_role(roles["admin"], creation) is Role.ADMIN


def test_the_groups_and_claims_of_the_owner_are_stored(log: Log) -> None:
    # SUB-911: deliveries contain only events whose subjects the owner may read
    log.write({"types": ["a"]}, groups=("/dirs/d",))
    assert log.entity.private["groups"] == ["/dirs/d"]
    log.write({"types": ["b"]}, caller="root", role=Role.ADMIN)
    assert log.entity.private["groups"] == ["/dirs/d"]
    log.write({"types": ["c"]})
    assert "groups" not in log.entity.private
    epoch = log.entity.epoch
    log.write({"types": ["c"]}, groups=("/dirs/e",), claims=("pay",))
    assert log.entity.private["groups"] == ["/dirs/e"] and log.entity.private["claims"] == ["pay"]
    assert log.entity.epoch == epoch
