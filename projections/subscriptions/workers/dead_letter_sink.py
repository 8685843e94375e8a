"""Sends dead letters to a sink of their own (SUB-832)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from cloudevents.core.v1.event import CloudEvent

from annals.projections.subscriptions.contract import DeliveryResult
from annals.projections.subscriptions.decisions.delivery_plan import DeliveryPlan
from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.ports import DeliveryPorts


async def send_dead_letter(
    ports: DeliveryPorts,
    plan: DeliveryPlan,
    secrets: Mapping[str, str],
    event: EventMessage,
    reason: str,
    attempts: int,
) -> bool:
    """Whether the dead letter sink accepted an event. The event carries the reason why it was given up."""
    cloudevent = event.cloudevent()
    extensions = {"dlreason": reason, "dlattempts": attempts, "dlsubscription": plan.subscription.id}
    dead_letter = CloudEvent({**cloudevent.get_attributes(), **extensions}, cloudevent.get_data())
    try:
        sink = ports.sinks["HTTP"](plan.dead_letter_target(secrets, ""), ports.resolver)
        try:
            async with asyncio.timeout(plan.timeout):
                return (await sink.send([dead_letter])).result is DeliveryResult.DELIVERED
        finally:
            await sink.close()
    except Exception:
        return False  # the caller stores the dead letter instead
