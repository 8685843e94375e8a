"""An id in an argument names one key, grant, subscription or link, and never another path of the API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.console import Annals

#: The verbs with an id, `?`.
VERBS = [
    "keys rotate ?",
    "keys revoke ?",
    "grants remove ?",
    "subscriptions show ?",
    "subscriptions delete ?",
    "subscriptions pause ?",
    "subscriptions replay ? --from 1",
    "subscriptions deadletters ?",
    "subscriptions redeliver ? 1.00",
    "replicate show ?",
    "replicate status ? --check",
    "replicate pause ?",
    "replicate repair --yes ?",
    "replicate remove --yes ?",
]
#: What can follow an id in a path or end it.
ENDINGS = ["?dryrun", "#x", "/", "/actions/pause", "/actions/rotate", "/deadletters/5", "/log", "$details", "%2F"]
SUBSCRIPTION = {"sink": "https://93.184.216.34/in", "protocol": "HTTP"}


@pytest.fixture
def ids(annals: Annals, folder: Path) -> dict[str, str]:
    """A key, a grant, a subscription and a link in a registry: the id of each, by its group of verbs."""
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    (folder / "subscription.json").write_text(json.dumps(SUBSCRIPTION))
    assert annals("import", "data.json").code == ExitCode.DONE
    assert annals("keys", "add", "ci", "--role", "reader").code == ExitCode.DONE
    return {
        "keys": annals("keys", "list").out.partition("\t")[0],
        "grants": annals("grants", "add", "caller:bob", "reader").out.strip(),
        "subscriptions": annals("subscriptions", "create", "subscription.json").out.strip(),
        "replicate": annals("replicate", "add", "primary", "https://primary.example").out.strip(),
    }


def run(annals: Annals, verb: str, id: str) -> tuple[int, str, str]:
    return annals(*(id if word == "?" else word for word in verb.split()))


def test_an_id_with_more_behind_it_is_not_found(annals: Annals, ids: dict[str, str]) -> None:
    end = annals("log", "tail", "-n", "1").out
    for verb in VERBS:
        for id in [f"{ids[verb.split()[0]]}{ending}" for ending in ENDINGS] + ["/", "..", "x/actions/pause"]:
            code, out, err = run(annals, verb, id)
            assert (code, out, err.count("\n")) == (ExitCode.REFUSED, "", 1), (verb, id, err)
            assert err.startswith("annals: The targeted entity (") and f"/{id}) cannot be found" in err, (verb, id, err)
    assert annals("log", "tail", "-n", "1").out == end


def test_an_empty_id_is_wrong_usage(annals: Annals, ids: dict[str, str]) -> None:
    for verb in [*VERBS, "replicate add ? https://other.example"]:
        code, out, err = run(annals, verb, "")
        assert (code, out, err.count("\n")) == (ExitCode.USAGE, "", 1), (verb, err)
        assert "ID" in err and ": it is empty. See `annals " in err
    sequence = annals("subscriptions", "redeliver", ids["subscriptions"], "")
    assert (sequence.code, "'SEQUENCE...': it is empty." in sequence.err) == (ExitCode.USAGE, True)


def test_the_ids_themselves_are_found(annals: Annals, ids: dict[str, str]) -> None:
    for verb in ("keys revoke ?", "grants remove ?", "subscriptions delete ?", "replicate remove --yes ?"):
        assert run(annals, verb, ids[verb.split()[0]])[0] == ExitCode.DONE
        assert run(annals, verb, ids[verb.split()[0]])[0] == ExitCode.REFUSED


def test_a_sequence_with_more_behind_it_is_not_found(annals: Annals, ids: dict[str, str]) -> None:
    for sequence in ("1.00/redeliver?", "1.00?x", "/", ".."):
        ended = annals("subscriptions", "redeliver", ids["subscriptions"], sequence)
        assert (ended.code, ended.out, ended.err.count("\n")) == (ExitCode.REFUSED, "", 1)
        assert "cannot be found" in ended.err


def test_a_state_is_one_parameter(annals: Annals, ids: dict[str, str]) -> None:
    assert annals("subscriptions", "list", "--state", "active&x=1").out == ""
    assert ids["subscriptions"] in annals("subscriptions", "list", "--state", "active").out
