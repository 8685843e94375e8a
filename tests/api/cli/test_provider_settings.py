"""A server does not start with incomplete or wrong settings of sign-in at a provider."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.serving import annals

ISSUER = {"ANNALS_OIDC_ISSUER": "https://login.example.com"}
CLIENT = {"ANNALS_OIDC_CLIENT_ID": "annals"}
URL = {"ANNALS_PUBLIC_URL": "https://registry.example.com"}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({**ISSUER, **CLIENT}, "ANNALS_PUBLIC_URL"),
        ({**ISSUER, **URL}, "ANNALS_OIDC_CLIENT_ID"),
        ({**CLIENT, **URL}, "ANNALS_OIDC_ISSUER"),
        ({"ANNALS_OIDC_ISSUER": "http://login.example.com", **CLIENT, **URL}, "ANNALS_OIDC_ISSUER"),
        ({**ISSUER, **CLIENT, **URL, "ANNALS_OIDC_SCOPES": "profile"}, "ANNALS_OIDC_SCOPES"),
        ({**ISSUER, **CLIENT, **URL, "ANNALS_OIDC_CLIENT_SECRET_FILE": "none"}, "ANNALS_OIDC_CLIENT_SECRET_FILE"),
        ({"ANNALS_OIDC_CLI_CLIENT_ID": "cli"}, "ANNALS_OIDC_CLI_CLIENT_ID"),
        ({**ISSUER, **CLIENT, **URL, "ANNALS_OIDC_CLI_CLIENT_ID": "annals"}, "ANNALS_OIDC_CLI_CLIENT_ID"),
        ({"ANNALS_SESSION_IDLE": "0"}, "ANNALS_SESSION_IDLE"),
    ],
)
def test_refused_starts(tmp_path: Path, settings: dict[str, str], named: str) -> None:
    """ACC-50: the start fails before it opens the store, and names the setting."""
    done = annals("serve", "--port", "0", cwd=tmp_path, **settings)
    assert done.returncode == 2 and named in done.stderr and not (tmp_path / "annals.db").exists()
