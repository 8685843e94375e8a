"""Settings of sinks: their values and their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from annals.api.settings.settings import Settings
from tests.support.brokers.certificates import issue_certificate

#: Settings, and whether they allow deliveries without TLS.
MODES: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"host": "::1", "public_url": "http://localhost:8080"}, True),
    ({"host": "0.0.0.0"}, False),
    ({"public_url": "https://registry.example.com"}, False),
    ({"tokens": '{"t": {"name": "a", "role": "admin"}}'}, False),
    ({"jwt_keys": "https://issuer.example.com/keys"}, False),
    ({"sinks_plaintext": False}, False),
    ({"host": "0.0.0.0", "sinks_plaintext": True}, True),
]


@pytest.mark.parametrize(("given", "plaintext"), MODES)
def test_channels_without_tls(given: dict[str, Any], plaintext: bool) -> None:
    # SUB-905: a setting; by default off in production, on for a local server without authentication
    assert Settings(**given).sinks_plaintext is plaintext


def test_what_is_none(tmp_path: Path) -> None:
    # SUB-901: an invalid list is an error, not an empty list
    (tmp_path / "empty.pem").write_text("")
    wrong: list[dict[str, Any]] = [
        {"sinks_allow": "10.0.0.1/8"},
        {"sinks_ca": str(tmp_path / "missing.pem")},
        {"sinks_ca": str(tmp_path / "empty.pem")},
        {"sinks_origin": "https://registry.example.com"},
    ]
    for given in wrong:
        with pytest.raises(ValidationError):
            Settings(**given)
    assert Settings(sinks_ca=str(issue_certificate(tmp_path, "sink.test").ca)).sinks_ca


def test_who_sends() -> None:
    # 7.1: the origin is a configured DNS name
    assert Settings().origin == "localhost"
    assert Settings(public_url="https://registry.example.com:8443/x").origin == "registry.example.com"
    assert Settings(public_url="https://a.example.com", sinks_origin="b.example.com").origin == "b.example.com"
