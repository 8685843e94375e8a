"""A subscription at another registry, through which a link learns of changes.

Its events only wake the link. The link always fetches the current state, so duplicate, late and lost events do no harm.
Rules LEG-911, LEG-912.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from annals.commands.store.database.driver_errors import driver_errors
from annals.domain.replication.link import COLLECTION, Link
from annals.domain.values import xid as xids
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.remote.json_answers import request_object
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

_LOG: Final = logging.getLogger("annals.replication")
#: Seconds between checks that the subscription still exists.
CHECK_SECONDS: Final = 30.0
#: The name of the link's fact with the subscription's id.
SUBSCRIPTION_KEY: Final = "subscription"
#: Largest number of Groups in a filter. With more, the link gets events about everything. A server may allow only 20
#: filters.
_MAX_FILTERS: Final = 8
_PATH: Final = "/subscriptions"
#: The action that reactivates a stopped subscription, by its state.
_REVIVING_ACTIONS: Final = {
    "paused": "resume",
    "gone": "resume",
    "suspended": "resume",
    "pendingvalidation": "verify",
}


class NoPublicUrl(Exception):
    """This registry has no public URL to which the other registry could send events."""

    def __init__(self) -> None:
        super().__init__("a link in the mode events needs a public URL of this registry, set as ANNALS_PUBLIC_URL")


class RemoteSubscription:
    """The subscription of one link, kept alive while the link needs events."""

    def __init__(
        self,
        link: Link,
        context: LinkWorkerContext,
        client: RemoteClient,
        event_selection: Mapping[str, Any] | None = None,
    ) -> None:
        """The subscription that is stored for a link, if any.

        client: the other registry by the URL below which it has `/subscriptions`; it stays open.
        event_selection: selects the events: `source`, `types`, `config` and `filters`, as in the Subscriptions API.
        Raises: NoPublicUrl, one of `driver_errors()`.
        """
        if not context.public_url:
            raise NoPublicUrl
        self._link = link
        self._context = context
        self._client = client
        self._id: str | None = context.states.read(link.id).status.get(SUBSCRIPTION_KEY)
        self._definition = {
            **{name: value for name, value in (event_selection or {}).items() if value},
            "protocol": "HTTP",
            "sink": f"{context.public_url}{COLLECTION}/{link.id}/events",
            "protocolsettings": {"contentmode": "batched", "maxbatchwait": 20, "deadletter": {"mode": "drop"}},
        }

    def ensure(self) -> bool:
        """Ensures that the subscription exists as defined. True if it was created again: events may have been missed.

        Raises: RemoteError, one of `driver_errors()`.
        """
        subscription = self._find(self._id) if self._id else None
        if subscription is not None and _has_members(subscription, self._definition):
            self._revive(str(self._id), subscription)
            return False
        if subscription is not None:
            self._delete(str(self._id))
        self._id = self._create()
        self._context.states.update(self._link.id, None, **{SUBSCRIPTION_KEY: self._id})
        return True

    def delete_if_unused(self) -> None:
        """Deletes the subscription if its link needs no more events. A failure is logged: somebody has to do it there.

        A link that only stops in this process, for a while or because another process continues it, keeps its
        subscription.
        """
        failures: tuple[type[Exception], ...] = (RemoteError, *driver_errors())
        try:
            link = self._context.readers.quick_view().links.get(self._link.id)
            is_continued = (
                link is not None and link.is_enabled and not link.is_promoted and link.mode == self._link.mode
            )
            if self._id and not is_continued:
                self._delete(self._id)
                self._context.states.update(self._link.id, None, **{SUBSCRIPTION_KEY: None})
        except failures as error:
            _LOG.warning(
                "the link %s has ended, and its subscription %s at %s could not be deleted: %s",
                *(self._link.id, self._id, self._link.url, error),
            )

    def _create(self) -> str:
        """The id of a new subscription. Raises: RemoteError."""
        id = request_object(self._client, "POST", _PATH, json=self._definition).get("id")
        if not isinstance(id, str) or not id:
            raise RemoteError(f"POST {_PATH} answers without an id of the subscription")
        return id

    def _find(self, id: str) -> dict[str, Any] | None:
        with _ignore_missing():
            return request_object(self._client, "GET", f"{_PATH}/{id}")
        return None

    def _delete(self, id: str) -> None:
        with _ignore_missing():
            self._client.request("DELETE", f"{_PATH}/{id}")

    def _revive(self, id: str, subscription: Mapping[str, Any]) -> None:
        """Makes a subscription that has stopped continue."""
        status = _object_in(subscription, "status")
        state, validation_state = status.get("state"), _object_in(status, "validation").get("state")
        action = _REVIVING_ACTIONS.get(state) if isinstance(state, str) else None
        if action is None and validation_state == "unvalidated":
            action = "verify"
        if action is not None:
            self._client.request("POST", f"{_PATH}/{id}/actions/{action}")


def group_filters(groups: Sequence[str]) -> list[dict[str, Any]]:
    """Filters for events about some Groups, their contents, and the model; empty for no Groups.

    groups: their xids in the other registry's spelling, or their subjects in a legacy API. The prefix `/dirs/5` would
    also match `/dirs/55`. So the prefix ends in a slash, and the Group itself has a filter of its own.
    """
    if not groups or len(groups) > _MAX_FILTERS:
        return []
    group_conditions = ({"exact": {"subject": group}} for group in groups)
    content_conditions = ({"prefix": {"subject": f"{group}/"}} for group in groups)
    return [{"any": [{"exact": {"subject": xids.MODEL}}, *group_conditions, *content_conditions]}]


@contextmanager
def _ignore_missing() -> Iterator[None]:
    """Ignores the error that something does not exist any more."""
    try:
        yield
    except RemoteError as error:
        if error.status not in (404, 410):
            raise


def _object_in(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A member that is a JSON object; empty if it is something else, or missing."""
    value = members.get(name)
    return value if isinstance(value, Mapping) else {}


def _has_members(document: Any, members: Any) -> bool:
    """Whether a document has all these members. It may have more, such as defaults."""
    if isinstance(members, dict) and isinstance(document, dict):
        return all(name in document and _has_members(document[name], value) for name, value in members.items())
    return bool(document == members)
