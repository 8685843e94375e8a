"""Replication between registries: pulls from other registries and pushes to them, one thread for each link.

Not here: the Link entity and its rules (`annals.domain.replication`), the HTTP API (`annals.api.replication`).
Begin with `service.py`, then `link_workers.py` and `log`.
"""
