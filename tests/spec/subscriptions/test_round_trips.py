"""Writing the document that the owner of a subscription reads changes nothing, for every subscription."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from annals.api.subscriptions.responses import subscription_document
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import WriteSubscription
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context
from annals.domain.subscriptions.sink_uris import PROTOCOLS
from annals.domain.subscriptions.subscription import Subscription
from annals.domain.subscriptions.subscription_document import SubscriptionSupport, parse_subscription
from tests.support.examples import examples
from tests.support.registries.memory_world import MemoryWorld

XID = "/subscriptions/s1"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
OFFER = SubscriptionSupport(PROTOCOLS, {"xregistry": "https://r.example"})

words = st.text("abcxyz019", min_size=1, max_size=6)
texts = st.text(st.characters(min_codepoint=32, max_codepoint=0x24F, exclude_categories=["Cc"]), min_size=1, max_size=9)
ascii = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=9)
comparisons = st.dictionaries(
    st.sampled_from(["exact", "prefix", "suffix"]), st.dictionaries(words, texts, min_size=1), min_size=1, max_size=1
)
filters = st.recursive(
    st.one_of(comparisons, st.just({"sql": "EXISTS subject"})),
    lambda inner: st.one_of(
        st.builds(lambda each: {"not": each}, inner),
        st.builds(lambda each: {"any": each}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=5,
)
token = {
    "accesstoken": ascii,
    "accesstokenexpiresutc": st.just("2099-01-01T00:00:00Z"),
}
passwords = st.fixed_dictionaries({"credentialtype": st.just("PLAIN"), "identifier": words, "secret": texts})
credentials = st.one_of(
    passwords,
    st.fixed_dictionaries({"credentialtype": st.just("ACCESSTOKEN"), **token}, optional={"accesstokentype": words}),
    st.fixed_dictionaries(
        {
            "credentialtype": st.just("REFRESHTOKEN"),
            **token,
            "refreshtoken": ascii,
            "refreshtokenendpoint": st.sampled_from(["https://t.example/", "https://t.example/t?k=v"]),
        }
    ),
)
common = {
    "retry": st.fixed_dictionaries({}, optional={"maxattempts": st.integers(1, 1000), "multiplier": st.floats(1, 9)}),
    "timeout": st.integers(1, 120),
    "ordering": st.sampled_from(["subject", "source", "none"]),
    "deadletter": st.sampled_from([{"mode": "drop"}, {"mode": "sink", "uri": "https://d.example/?a=b"}]),
}
protocols: dict[str, tuple[list[str], dict[str, Any], dict[str, Any]]] = {
    "HTTP": (
        ["https://sink.example/in", "https://sink.example:8443/in?token=a%20b"],
        {},
        {
            "method": st.sampled_from(["POST", "PUT"]),
            "contentmode": st.sampled_from(["structured", "binary", "batched"]),
            "headers": st.dictionaries(st.sampled_from(["X-Api-Key", "Cookie", "x-a", "X-B"]), ascii, max_size=3),
            "signingkey": st.just("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"),
        },
    ),
    "MQTT5": (["mqtts://m.example"], {"topicname": words}, {"userproperties": st.dictionaries(words, texts)}),
    "AMQP": (["amqps://q.example/a", "wss://q.example/x"], {"address": st.just("a")}, {"linkname": texts}),
    "KAFKA": (["SSL://a.example:9093,b.example:9093/t"], {}, {"acks": st.sampled_from(["0", "1", -1, "all"])}),
    "NATS": (["tls://n.example:4222"], {"subject": words}, {}),
}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A random document of a subscription."""
    protocol = draw(st.sampled_from(sorted(protocols)))
    sinks, needed, optional = protocols[protocol]
    options = st.fixed_dictionaries(needed, optional={**optional, **common})
    whole = st.fixed_dictionaries(
        {"sink": st.sampled_from(sinks), "protocol": st.just(protocol), "protocolsettings": options},
        optional={
            "source": st.sampled_from(["https://r.example/", "urn:x"]),
            "types": st.lists(words, min_size=1, max_size=3),
            "filters": st.lists(filters, max_size=3),
            "config": st.sampled_from([{"startposition": "1"}, {"starttime": "2026-01-01T00:00:00Z"}, {}]),
            "sinkcredential": passwords if protocol == "AMQP" else credentials,
        },
    )
    return draw(whole)


def write(world: MemoryWorld, body: Mapping[str, Any], new: bool, position: int) -> int:
    """Writes a subscription; returns the number of events."""
    found = parse_subscription(dict(body), OFFER)
    start = 3 if "starttime" in found.attributes["config"] else None
    command = WriteSubscription(
        XID,
        new,
        found.attributes,
        found.secrets,
        found.missing_secrets,
        found.dropped_secrets,
        found.secret_binding,
        start,
    )
    decision = decide(command, world, Context(NOW, f"c{position}", Caller("ann", Role.WRITER), position=position))
    world.extend(decision.events, secrets=decision.secrets)
    return len(decision.events)


@given(documents())
@settings(max_examples=examples(200), deadline=None)
def test_what_was_read_can_be_written(body: dict[str, Any]) -> None:
    # SUB-841, SUB-503: no event and no lost secret; writing the original document again gives no event either
    world = MemoryWorld()
    assert write(world, body, True, 4) == 1
    entity = world.get(XID)
    assert entity is not None
    subscription = Subscription.from_entity(entity, 5)
    document = subscription_document(subscription, Caller("ann", Role.WRITER), world.secret) | {
        "status": {"state": "active"}
    }
    assert write(world, {name: value for name, value in document.items() if name != "id"}, False, 5) == 0
    assert write(world, body, False, 5) == 0
    assert world.get(XID) == entity
