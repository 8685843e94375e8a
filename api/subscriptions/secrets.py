"""The secret values of subscriptions, for the deliverer (SUB-307, SUB-913)."""

from __future__ import annotations

from collections.abc import Mapping

from annals.api.subscriptions.context import subscription_xid
from annals.commands.store.database.engine import WRITING
from annals.commands.store.log import Store
from annals.domain.decisions.world import Secret
from annals.domain.subscriptions.subscription import Subscription


class StoredSecrets:
    """The port `SubscriptionSecrets` of deliveries, over a store. Its methods read and write tables."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def reveal(self, subscription: Subscription) -> Mapping[str, str]:
        """The values by name. Raises: LookupError if a value is destroyed or cannot be decrypted (SUB-914)."""
        with self._store.engine.begin() as connection:
            values = {
                name: self._store.vault.reveal(connection, _stored_secret(subscription, name))
                for name in subscription.secrets
            }
        if missing_names := [name for name, value in values.items() if value is None]:
            raise LookupError(missing_names[0])
        return {name: value for name, value in values.items() if value is not None}

    def replace(self, subscription: Subscription, values: Mapping[str, str]) -> None:
        """Replaces secret values without an event in the log.

        Values that were destroyed in the meantime stay destroyed.
        """
        with self._store.engine.execution_options(**{WRITING: True}).begin() as connection:
            for name, value in values.items():
                if name in subscription.secrets:
                    self._store.vault.replace(connection, _stored_secret(subscription, name, value))


def _stored_secret(subscription: Subscription, name: str, value: str | None = None) -> Secret:
    return Secret(subscription.secrets[name], subscription_xid(subscription.id), name, value)
