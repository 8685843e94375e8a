"""Strategies for valid documents of message definitions, of every format with rules."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="{}")
#: Characters that a String of CloudEvents allows.
PRINTED = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"], exclude_characters="{}"), max_size=12)
LITERALS = st.text(CHARACTERS, max_size=12) | st.sampled_from(
    ["x" * 4090, "ä" * 2500, "a b", "5", "-0", "true", "null"]
)
EXPRESSIONS = st.sampled_from(["{a}", "{a_1}{B}", "{+a}", "{a,b}", "{a*}", "{a:3}", "{?q}", "{a.b}", "{%C3%A4}"])
TEMPLATES = st.builds(lambda front, middle, back: front + middle + back, LITERALS, EXPRESSIONS, PRINTED)
TIMES = st.sampled_from(["2030-01-01T00:00:00Z", "2030-06-30T23:59:60.5+02:00", "0001-01-01t00:00:00z"])
BINARY = st.binary(max_size=20).map(lambda data: base64.b64encode(data).decode())
MEDIA_TYPES = st.sampled_from(["application/json", 'text/plain; charset="utf-8"; x=y', f"a/{'b' * 4085}"])
HERE = "https://here/schemagroups/g/schemas/s"
URIS = st.sampled_from([HERE, "urn:a:b", "http://[::1]:80/a?b=c#d", "http://[v7.a:x]/", "x:"])
REFERENCES = URIS | st.sampled_from(["/a/b", "a", "?q", "#f", "//h/a%20b"])
NUMBERS = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)

KEYS = st.from_regex(r"[a-z0-9][a-z0-9:_.\-]{0,70}", fullmatch=True)
SYMBOLS = KEYS | st.text(st.characters(max_codepoint=127), max_size=8)
EXTENSIONS = st.from_regex(r"[a-z0-9]{1,70}", fullmatch=True).filter(lambda name: name != "data")
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | LITERALS | TEMPLATES,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=6), inside, max_size=3),
    max_leaves=8,
)


def member(literals: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Returns a strategy for the values of a member, from one for its literals."""
    return literals | st.just("") | TEMPLATES | st.none()


def section(
    members: dict[str, st.SearchStrategy[Any]], others: st.SearchStrategy[dict[str, Any]] | None = None
) -> st.SearchStrategy[dict[str, Any]]:
    """Returns a strategy for some of the members, and for others if the section allows any."""
    known = st.fixed_dictionaries({}, optional={name: member(literals) for name, literals in members.items()})
    return known if others is None else st.builds(lambda more, some: more | some, others, known)


def document(**sections: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: each | st.none() for name, each in sections.items()})


TYPES = PRINTED.filter(bool)
CLOUDEVENTS = st.builds(
    lambda type, attributes: {"attributes": attributes | {"type": type}},
    TYPES,
    section(
        {
            "specversion": st.just("1.0"),
            "id": PRINTED,
            "source": REFERENCES,
            "subject": PRINTED,
            "time": TIMES,
            "datacontenttype": MEDIA_TYPES,
            "dataschema": URIS,
        },
        others=st.dictionaries(
            EXTENSIONS.filter(lambda name: name not in ("specversion", "id", "source", "subject", "time", "type")),
            member(PRINTED | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.just(5.0)),
            max_size=4,
        ),
    ),
)
OPEN = st.dictionaries(SYMBOLS, member(LITERALS | NUMBERS | st.booleans()), max_size=4)
PROPERTIES = (
    *("messageid", "to", "subject", "replyto", "correlationid", "contenttype", "contentencoding"),
    *("groupid", "replytogroupid"),
)
AMQP = document(
    header=section({"durable": st.booleans(), "priority": st.integers(0, 255), "ttl": st.integers(0, 10**30)}),
    properties=section(
        {
            **dict.fromkeys(PROPERTIES, LITERALS),
            "userid": BINARY,
            "absoluteexpirytime": TIMES,
            "creationtime": TIMES,
            "groupsequence": LITERALS | st.integers(-(10**50), 10**50),
        }
    ),
    applicationdata=section({"dataschema": REFERENCES, "amqpencoding": st.sampled_from(["Data", "Value", "Sequence"])}),
    **dict.fromkeys(("applicationproperties", "messageannotations", "deliveryannotations", "footer"), OPEN),
)
TOPICS = TEMPLATES.map(lambda text: text.replace("{+", "{").replace("+", "").replace("#", "").replace("\0", ""))
OLD = {"qos": st.integers(0, 2), "retain": st.booleans()}
TOPIC = st.fixed_dictionaries({}, optional={"topicname": TOPICS | st.sampled_from(["", "a/b", "a b"])})
MQTT = document(
    publish=st.builds(
        lambda topic, rest: topic | rest,
        TOPIC,
        section(
            {
                **OLD,
                "mqttversion": st.just("5.0"),
                "payloadformat": st.integers(0, 1),
                "expiryinterval": st.integers(0, 10**30),
                "responsetopic": LITERALS,
                "correlationdata": BINARY,
                "contenttype": LITERALS,
            }
        ),
    ),
    userproperty=st.dictionaries(LITERALS | TEMPLATES, member(LITERALS), max_size=4),
    payload=section({"dataschema": REFERENCES}),
) | document(
    publish=st.builds(lambda topic, rest: topic | rest | {"mqttversion": "3.1.1"}, TOPIC, section(OLD)),
    payload=section({"dataschema": REFERENCES}),
)
NATS = st.builds(
    lambda known, more: more | known,
    document(
        message=section({"subject": LITERALS | JSON, "replyto": LITERALS}, others=st.dictionaries(PRINTED, JSON))
        | JSON,
        headers=st.dictionaries(LITERALS | TEMPLATES, member(LITERALS | JSON), max_size=4) | JSON,
        payload=section({"dataschema": REFERENCES | JSON, "contenttype": MEDIA_TYPES | JSON}) | JSON,
    ),
    st.dictionaries(
        PRINTED.filter(lambda name: name not in ("format", "description", "id", "version")), JSON, max_size=2
    ),
)
DOCUMENTS = {"CloudEvents": CLOUDEVENTS, "AMQP": AMQP, "MQTT": MQTT, "NATS": NATS}

KNOWN = ("message", "headers", "payload")
SECTIONS = (
    *("attributes", "header", "properties", "applicationproperties", "messageannotations", "deliveryannotations"),
    *("footer", "applicationdata", "publish", "userproperty", *KNOWN),
)
#: Objects with known names and arbitrary values.
GARBLED = st.dictionaries(
    st.sampled_from(["id", "format", "description", *SECTIONS]),
    JSON
    | st.dictionaries(
        st.sampled_from(["type", "time", "to", "ttl", "qos", "topicname", "subject", "dataschema"]), JSON
    ),
    max_size=4,
)


def normal_form(format: str, document: dict[str, Any]) -> Any:
    """Returns the same form for all documents with the same meaning: without null and without empty sections.

    Numbers compare by value, and a boolean is not a number.
    """
    done = {name: _listed(section, format == "NATS" and name not in KNOWN) for name, section in document.items()}
    done = {name: section for name, section in done.items() if section is not None}
    if format == "AMQP" and "groupsequence" in done.get("properties", {}):
        done["properties"]["groupsequence"] = str(done["properties"]["groupsequence"])
    if format == "MQTT":
        done["publish"] = {"mqttversion": "5.0", **done.get("publish", {})}
    return comparable({name: section for name, section in done.items() if section != {} or name not in SECTIONS})


def _listed(section: Any, whole: bool) -> Any:
    if whole or not isinstance(section, dict):
        return section
    return {name: value for name, value in section.items() if value is not None}


def comparable(value: Any) -> Any:
    """Returns a JSON value in a form in which `True` differs from 1, and `0.00001` equals `1e-05`."""
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if isinstance(value, float):
        return Decimal(repr(value))
    return ("boolean", value) if isinstance(value, bool) else value


def text_of(document: dict[str, Any]) -> bytes:
    """Returns the JSON text of a document, with all digits of its numbers."""
    return json.dumps(document).encode()
