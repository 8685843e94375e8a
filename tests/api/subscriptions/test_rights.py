"""Which events a subscription may receive, and which protocols a server offers."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from itertools import count

from annals.api.auth.callers import Authenticator
from annals.api.auth.tokens import FixedTokenVerifier, parse_fixed_tokens
from annals.api.subscriptions.owner_rights import CACHE_SECONDS, OwnerRights
from annals.projections.entities.query import ViewPool
from annals.projections.subscriptions.state.subscriptions import StoredSubscriptions
from tests.support.registries.in_process import create, serving
from tests.support.serving import ROOT
from tests.support.subscribing import TOKENS, bearer, create_subscription


def none() -> StoredSubscriptions:
    raise AssertionError("nobody asks for subscriptions")


def test_owners_read_everything_without_authentication() -> None:
    # SUB-911: where callers are not told apart
    assert OwnerRights(None, none)("anonymous", "/dirs/d1")


def test_listed_callers() -> None:
    # SUB-911: by the roles that they have now
    authenticator = Authenticator([FixedTokenVerifier(lambda: parse_fixed_tokens(TOKENS))])
    rights = OwnerRights(authenticator.callers_named, none)
    assert rights("rita", "/dirs/d1") and rights("gina", "/dirs/d1/files/f") and rights("console", "/")
    assert not rights("gina", "/dirs/d2") and not rights("nemo", "/dirs/d1") and not rights("gone", "/dirs/d1")


def test_callers_that_an_issuer_vouches_for(store_url: str) -> None:
    # SUB-911: by what they could read when they last wrote a subscription; looked at again before long
    create(store_url)
    times = count()
    with serving(store_url, tokens=TOKENS) as api, closing(ViewPool(store_url)) as readers:
        rights = OwnerRights(
            None,
            lambda: readers.quick_view().subscriptions,
            has_issued_tokens=True,
            clock=lambda: next(times) * CACHE_SECONDS,
        )
        assert not rights("gina", "/dirs/d1")
        create_subscription(api, **bearer("gina"))
        create_subscription(api, **bearer("ann"))
        assert rights("gina", "/dirs/d1") and not rights("gina", "/dirs/d2")
        assert rights("ann", "/dirs/d2")


def test_protocols_without_their_clients() -> None:
    # SUB-202: what is not installed is not offered, and is no reason not to start
    blocked = "import sys; sys.modules.update(dict.fromkeys(('paho', 'nats', 'proton')));"
    script = f"{blocked} from api.subscriptions.config import available_protocols as offered; print(*offered())"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["HTTP", "KAFKA"], done.stderr
