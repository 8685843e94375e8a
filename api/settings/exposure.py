"""What the settings let strangers do or read, as warnings at the start and on the first page (ACC-93, ACC-122)."""

from __future__ import annotations

from typing import Final

from annals.api.settings.settings import Settings

_PLAIN_PASSWORDS: Final = (
    "{what} travel in clear to {host}; set ANNALS_TLS_CERT, or ANNALS_PUBLIC_URL to the https URL of a proxy."
)
_OPEN: Final = "anybody who reaches {host}:{port} may {right}, because no authenticator is on."


def exposure_warnings(settings: Settings) -> list[str]:
    """The warnings; none for a server that only its own machine can reach."""
    if settings.is_local:
        return []
    warnings = []
    is_encrypted = settings.tls is not None or (settings.public_url or "").startswith("https:")
    exposed = (("passwords", settings.basic_file), ("cookies of sessions", settings.oidc_issuer))
    if (what := " and ".join(name for name, setting in exposed if setting)) and not is_encrypted:
        warnings.append(_PLAIN_PASSWORDS.format(host=settings.host, what=what))
    if not settings.auth.has_authenticator:
        right = "read" if settings.read_only_anonymous else "write"
        warnings.append(_OPEN.format(host=settings.host, port=settings.port, right=right))
    return warnings
