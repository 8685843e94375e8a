"""The provider that people sign in at."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

#: Path of the redirect URI, below the public URL.
CALLBACK_PATH = "/ui/login/callback"


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """issuer: a URL. client_secret: empty for a public client. name: on the button; empty for the host of the issuer.

    public_url: root of the registry, which the provider redirects to. cli_client_id: of the command line; empty if it
    gets no tokens.
    """

    issuer: str
    client_id: str
    public_url: str
    client_secret: str = field(default="", repr=False)
    scopes: str = "openid profile"
    name: str = ""
    cli_client_id: str = ""

    @property
    def shown_name(self) -> str:
        """The provider's name for people."""
        return self.name or urlsplit(self.issuer).netloc

    @property
    def redirect_uri(self) -> str:
        """The URL that has to be registered at the provider."""
        return self.public_url + CALLBACK_PATH
