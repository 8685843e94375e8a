"""docs/guides/subscriptions/http.md does what it says: its subscription, and its program as the receiver."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

from annals.domain.subscriptions.subscription_document import SubscriptionSupport, parse_subscription
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.subscriptions.contract import DeliveryResult, SinkTarget
from annals.projections.subscriptions.transport.webhook_handshake import HandshakeResult, WebhookHandshake
from tests.projections.subscriptions.events import event, run, sent
from tests.support.ports import free_port
from tests.support.serving import ROOT

GUIDE = (ROOT / "docs" / "guides" / "subscriptions" / "http.md").read_text()


def block(language: str, port: int) -> str:
    """The one block of a language, for a receiver at another port."""
    (found,) = re.findall(rf"```{language}\n(.*?)```\n", GUIDE, re.DOTALL)
    return str(found).replace("9000", str(port))


def target(document: str) -> SinkTarget:
    """Where the subscription sends to."""
    asked = parse_subscription(json.loads(document), SubscriptionSupport(("HTTP",), plaintext=True))
    settings = asked.attributes["protocolsettings"]
    assert isinstance(settings, dict)
    key = b64decode(asked.secrets["protocolsettings.signingkey"].removeprefix("whsec_"))
    mode, seconds = settings["contentmode"], settings["timeout"]
    return SinkTarget("s1", str(asked.attributes["sink"]), settings, mode, None, seconds, "registry.example.com", key)


def test_the_example(tmp_path: Path) -> None:
    # 7.1, SUB-710: the receiver consents, and takes what is signed with its key
    port, program = free_port(), tmp_path / "receive.py"
    program.write_text(block("python", port))
    to, guard = target(block("json", port)), DestinationGuard("127.0.0.1", allows_plaintext=True)
    subject = "/schemagroups/weather/schemas/report/versions/1"
    changed = event(data={"changed": ["description"]}, type="io.xregistry.version.updated", subject=subject)
    process = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        try:
            assert consent(to, guard) == HandshakeResult(True)
            assert sent(to, [changed], resolver=guard)[0].result is DeliveryResult.DELIVERED
            assert process.stdout is not None
            assert process.stdout.readline() == block("text", port)
            forged = replace(to, signing_key=b"x" * 32)
            assert sent(forged, [changed], resolver=guard)[0].result is DeliveryResult.RETRY  # it hangs up
        finally:
            process.kill()


def consent(to: SinkTarget, guard: DestinationGuard) -> HandshakeResult:
    """What the receiver says, once it is there."""
    ends = time.monotonic() + 30
    while not (found := run(WebhookHandshake(guard).validate(to, 100, None))).is_allowed and time.monotonic() < ends:
        time.sleep(0.1)
    return found
