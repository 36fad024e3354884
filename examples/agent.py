"""A small agent that says it is done when it is not, and the one call that finds it out; needs no model, no network."""

from pathlib import Path
from typing import Any

import reach_otel

reach = reach_otel.instrument(Path(__file__).with_name("ticket.task.yaml"), metrics_port=None)


@reach_otel.tool
def read_ticket(ticket_id: str) -> dict[str, Any]:
    return {"status": "ok", "record": {"ticket_id": ticket_id, "customer_id": "C-2101", "sku": "SKU-7001"}}


@reach_otel.tool
def lookup_customer(customer_id: str) -> dict[str, Any]:
    return {"status": "ok", "customer": {"customer_id": customer_id, "tier": "platinum"}}


@reach_otel.agent("ticket-agent")
def handle(request: str) -> str:
    ticket = read_ticket(ticket_id=request.split()[-1])["record"]
    customer = lookup_customer(customer_id=ticket["customer_id"])["customer"]
    return f"Resolved: a new one is on its way to our {customer['tier']} customer."


with reach_otel.run(task="ticket-handling") as run:
    print("agent: ", handle("Please handle ticket T-100001"))
reach.shutdown()  # gives the verdict at once; a server would go on, and read it from /metrics

record = reach.score(run.id)
assert record is not None
print("really:", record["outcome"], "depth", round(record["scores"]["depth"], 2), record["break_point"])
for milestone in record["milestones"]:
    print(f"  {milestone['layer']} {milestone['id']:<11} {milestone['state']:<8} {milestone['reason'] or ''}".rstrip())
