"""Check the demo's tools: real answers from a real database, and errors like a service's."""

from __future__ import annotations

from random import Random

import pytest

from reach_otel.demo import desk as desk_module
from reach_otel.demo.desk import TOOLS, Desk, ToolError


def test_a_ticket_can_be_handled_from_end_to_end() -> None:
    """What one tool gives is what the next one takes, and the ticket is really changed at the end."""
    with Desk() as desk:
        ticket_id = desk.open_ticket(Random(1), "stocked")
        assert desk.status_of(ticket_id) == "open"
        ticket = desk.read_ticket(ticket_id)["record"]
        customer = desk.lookup_customer(ticket["customer_id"])["customer"]
        stock = desk.check_inventory(ticket["sku"])
        assert stock["stock"] > 0
        action = desk.generate_action(ticket_id, customer["tier"], stock["warehouse"])
        done = desk.update_ticket(ticket_id, "resolved", action["action_id"])
        assert done["ok"] is True
        assert desk.status_of(ticket_id) == "resolved"
        assert ticket["sku"] in desk.list_orders(ticket["customer_id"])["orders"]
        assert ticket_id in desk.search_tickets("My")["found"]


def test_no_rule_covers_what_is_made_to_order() -> None:
    """The case for which the task has its fallback branch."""
    with Desk() as desk:
        ticket_id = desk.open_ticket(Random(1), "made_to_order")
        with pytest.raises(ToolError, match="422 no rule"):
            desk.generate_action(ticket_id, "standard", "HAM-1")
        assert desk.escalate_to_human(ticket_id, "no rule")["escalation_id"].startswith("E-")


@pytest.mark.parametrize(
    ("tool", "key"),
    [("read_ticket", "T-1"), ("read_ticket", "x"), ("lookup_customer", "C-1"), ("check_inventory", "SKU-9")],
)
def test_what_does_not_exist_is_a_404(tool: str, key: str) -> None:
    """A made-up id gets the answer it would get from a service."""
    with Desk() as desk, pytest.raises(ToolError, match="404 no such"):
        getattr(desk, tool)(key)


def test_every_tool_is_there() -> None:
    """The list of tools and the methods agree."""
    assert all(callable(getattr(Desk, name)) for name in TOOLS)


def test_each_start_begins_anew_and_leaves_nothing_behind() -> None:
    """Two desks know nothing of each other; the folder goes away."""
    with Desk() as first, Desk() as second:
        assert first.open_ticket(Random(1), "stocked") == second.open_ticket(Random(1), "stocked")
        folder = first._folder.name
    with pytest.raises(FileNotFoundError):
        open(folder)  # noqa: PTH123, SIM115


def test_old_tickets_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database stays small, however long the demo runs."""
    monkeypatch.setattr(desk_module, "TICKETS_MAX", 3)
    with Desk() as desk:
        tickets = [desk.open_ticket(Random(n), "stocked") for n in range(5)]
        with pytest.raises(ToolError):
            desk.read_ticket(tickets[1])
        assert desk.read_ticket(tickets[2])["status"] == "ok"
