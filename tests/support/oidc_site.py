"""A registry whose users sign in at a real provider."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from tests.support.oidc import CLIENT, SECRET, Provider, provider
from tests.support.polling import until
from tests.support.ports import free_port
from tests.support.serving import serving

TOKENS: Final = {"t": {"name": "ci", "role": "reader"}}
MASTER_KEY: Final = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


class Site(NamedTuple):
    """A registry, and the provider at which its users sign in."""

    url: str
    provider: Provider
    folder: Path

    def change_sessions(self, assignments: str) -> None:
        """Updates the rows of all sessions, for example to make them expire."""
        with closing(sqlite3.connect(self.folder / "annals.db", timeout=30)) as db:
            db.execute(f"UPDATE session SET {assignments}")
            db.commit()


@contextmanager
def running_site(
    folder: Path, *, is_confidential: bool = True, secret: str = SECRET, **settings: str
) -> Iterator[Site]:
    """A running site, which accepts tokens too.

    folder: empty. is_confidential: the registry has a client secret, and a master key for refresh tokens. secret: that
    secret. settings: add to or replace the settings here.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "secret").write_text(secret + "\n")
    public_client: dict[str, Any] = {"token_endpoint_auth_method": "none"}
    with provider(folder, url, **({"client_secret": secret} if is_confidential else public_client)) as running:
        all_settings = {
            "ANNALS_OIDC_ISSUER": running.issuer,
            "ANNALS_OIDC_CLIENT_ID": CLIENT,
            "ANNALS_OIDC_NAME": "the <office>",
            "ANNALS_PUBLIC_URL": url,
            "ANNALS_TOKENS": json.dumps(TOKENS),
        }
        secrets = {"ANNALS_OIDC_CLIENT_SECRET_FILE": str(folder / "secret"), "ANNALS_MASTER_KEY": MASTER_KEY}
        all_settings |= {**(secrets if is_confidential else {}), **settings}
        with serving(f"sqlite:///{folder}/annals.db", folder, "--port", str(port), **all_settings):
            # A page waits only briefly for a provider that has not answered yet.
            until(lambda: "does not answer" not in httpx.get(f"{url}/ui/login").text)
            yield Site(url, running, folder)
