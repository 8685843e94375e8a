"""A subscription at another registry, by which a link hears that there is something new.

Its events only wake the link: what they are about is always fetched, so duplicates, late ones and lost ones do no harm.
Rules LEG-911, LEG-912.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from domain.replication.link import COLLECTION, Link
from domain.values import xid as xids
from projections.replication.link_worker import LinkWorkerContext
from projections.replication.remote_client import RemoteClient, RemoteError
from projections.subscriptions.state import delivery_store

#: Seconds between looks at a subscription, to see that it is still there.
CHECK_SECONDS: Final = 30.0
#: The fact under which its id is kept.
SUBSCRIPTION_FACT: Final = "subscription"
#: Groups that are filtered by; where there are more, a link hears of everything. A server may take 20 filters only.
_MOST: Final = 8
_PATH: Final = "/subscriptions"
#: What brings a subscription that stands still back, by its state.
_REVIVING_ACTIONS: Final = {
    "paused": "resume",
    "gone": "resume",
    "suspended": "resume",
    "pendingvalidation": "verify",
}


class NoPublicUrl(Exception):
    """The other registry cannot be told where events go."""

    def __init__(self) -> None:
        super().__init__("a link in the mode events needs a public URL of this registry, set as ANNALS_PUBLIC_URL")


class RemoteSubscription:
    """The subscription of one link, for as long as the link is to hear of something."""

    def __init__(
        self, link: Link, tools: LinkWorkerContext, registry: RemoteClient, events: Mapping[str, Any] | None = None
    ) -> None:
        """registry: the other registry by the URL below which it has `/subscriptions`; it stays open.

        events: what is to be heard of: `source`, `types`, `config` and `filters`, as the Subscriptions API has them.
        Raises: NoPublicUrl, one of `store.FAILURES`.
        """
        if not tools.public_url:
            raise NoPublicUrl
        self._link = link
        self._tools = tools
        self._registry = registry
        self._id: str | None = tools.states.read(link.id).facts.get(SUBSCRIPTION_FACT)
        self._wanted = {
            **{name: value for name, value in (events or {}).items() if value},
            "protocol": "HTTP",
            "sink": f"{tools.public_url}{COLLECTION}/{link.id}/events",
            "protocolsettings": {"contentmode": "batched", "maxbatchwait": 20, "deadletter": {"mode": "drop"}},
        }

    def keep(self) -> bool:
        """Has the subscription be there as it is wanted. True where it was made anew: something may have been missed.

        Raises: RemoteError, one of `store.FAILURES`.
        """
        found = self._found(self._id) if self._id else None
        if found is not None and _contains(found, self._wanted):
            self._revive(found)
            return False
        if found is not None:
            self._delete(str(self._id))
        self._id = str(self._registry.ask("POST", _PATH, json=self._wanted).json()["id"])
        self._tools.states.note(self._link.id, None, **{SUBSCRIPTION_FACT: self._id})
        return True

    def end(self) -> None:
        """Deletes it where its link is not to hear of anything any more, as far as that can be done.

        A link that only stops here, for a while or because another process goes on with it, keeps its subscription.
        """
        with suppress(RemoteError, *delivery_store.DRIVER_ERRORS):
            link = self._tools.readers.quick().links.one(self._link.id)
            goes_on = link is not None and link.enabled and not link.promoted and link.mode == self._link.mode
            if self._id and not goes_on:
                self._delete(self._id)
                self._tools.states.note(self._link.id, None, **{SUBSCRIPTION_FACT: None})

    def _found(self, id: str) -> dict[str, Any] | None:
        with _unless_gone():
            found: dict[str, Any] = self._registry.ask("GET", f"{_PATH}/{id}").json()
            return found
        return None

    def _delete(self, id: str) -> None:
        with _unless_gone():
            self._registry.ask("DELETE", f"{_PATH}/{id}")

    def _revive(self, found: Mapping[str, Any]) -> None:
        status = found.get("status") or {}
        asked = (status.get("validation") or {}).get("state")
        action = _REVIVING_ACTIONS.get(status.get("state", "")) or ("verify" if asked == "unvalidated" else None)
        if action is not None:
            self._registry.ask("POST", f"{_PATH}/{found['id']}/actions/{action}")


def group_filters(groups: Sequence[str]) -> list[dict[str, Any]]:
    """Filters for what happens to some Groups, or below them, and to the model; none for no Groups.

    groups: their xids, spelled as the other registry has them, or their subjects in an older API. The beginning
    `/dirs/5` alone would let `/dirs/55` pass, so it has a slash behind it, and the Group itself is named beside it.
    """
    if not groups or len(groups) > _MOST:
        return []
    own = ({"exact": {"subject": group}} for group in groups)
    below = ({"prefix": {"subject": f"{group}/"}} for group in groups)
    return [{"any": [{"exact": {"subject": xids.MODEL}}, *own, *below]}]


@contextmanager
def _unless_gone() -> Iterator[None]:
    """Passes over the answer that something is not there any more."""
    try:
        yield
    except RemoteError as error:
        if error.status not in (404, 410):
            raise


def _contains(found: Any, wanted: Any) -> bool:
    """Whether a document says all that is wanted; it may say more, such as defaults."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(name in found and _contains(found[name], value) for name, value in wanted.items())
    return bool(found == wanted)
