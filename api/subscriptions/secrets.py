"""The secret values of subscriptions for those who deliver (SUB-307, SUB-913)."""

from __future__ import annotations

from collections.abc import Mapping

from api.subscriptions.context import subscription_xid
from commands.store.engine import WRITING
from commands.store.log import Store
from domain.decisions.world import Secret
from domain.subscriptions.subscription import Subscription


class StoredSecrets:
    """The port `SubscriptionSecrets` of deliveries over a store; its methods look at tables."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def reveal(self, subscription: Subscription) -> Mapping[str, str]:
        """The values by name. Raises: LookupError where one is destroyed or cannot be opened (SUB-914)."""
        with self._store.engine.begin() as connection:
            found = {
                name: self._store.vault.reveal(connection, _secret(subscription, name)) for name in subscription.secrets
            }
        if missing := [name for name, value in found.items() if value is None]:
            raise LookupError(missing[0])
        return {name: value for name, value in found.items() if value is not None}

    def replace(self, subscription: Subscription, values: Mapping[str, str]) -> None:
        """Puts other values in the place of some, without a word to the log. What has gone meanwhile stays gone."""
        with self._store.engine.execution_options(**{WRITING: True}).begin() as connection:
            for name, value in values.items():
                if name in subscription.secrets:
                    self._store.vault.replace(connection, _secret(subscription, name, value))


def _secret(subscription: Subscription, name: str, value: str | None = None) -> Secret:
    return Secret(subscription.secrets[name], subscription_xid(subscription.id), name, value)
