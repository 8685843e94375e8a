"""A registry that people sign in to at a real provider."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.support.oidc import CLIENT, SECRET, Provider, provider
from tests.support.ports import free_port
from tests.support.serving import serving

TOKENS: Final = {"t": {"name": "ci", "role": "reader"}}
MASTER_KEY: Final = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


class Site(NamedTuple):
    """A registry that signs people in at a provider."""

    url: str
    provider: Provider
    folder: Path

    def change_sessions(self, assignments: str) -> None:
        """Changes the rows of all sessions, as time does."""
        with closing(sqlite3.connect(self.folder / "annals.db", timeout=30)) as db:
            db.execute(f"UPDATE session SET {assignments}")
            db.commit()


@contextmanager
def running_site(folder: Path, *, is_confidential: bool = True, **settings: str) -> Iterator[Site]:
    """One with tokens too. is_confidential: it has a secret at the provider, and a master key for refresh tokens.

    folder: empty. settings: further ones, or in place of those here.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "secret").write_text(SECRET + "\n")
    public_client: dict[str, Any] = {"token_endpoint_auth_method": "none"}
    with provider(folder, url, **({} if is_confidential else public_client)) as running:
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
            yield Site(url, running, folder)
