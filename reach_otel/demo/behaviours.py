"""List how agents behave: each behaviour is a few lines that any bad or good model might have decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import NamedTuple

from reach_otel.demo.desk import INVENTORY, Goods, Result, ToolError
from reach_otel.demo.work import Trouble, Work


class Behaviour(NamedTuple):
    """A way to handle a ticket, with what is in its way, and how often it comes up.

    ``share`` and ``bad_share`` are percent of the runs, while all is well and while the fleet is degraded.
    """

    name: str
    act: Callable[[Work], str]
    share: int
    bad_share: int
    goods: Goods = "stocked"
    troubles: Mapping[str, Trouble] = {}


def look_into(work: Work) -> tuple[Result, Result, Result]:
    """Return ticket, customer and stock, as every careful agent reads them first."""
    ticket = work.call("read_ticket", ticket_id=work.ticket_id)["record"]
    customer = work.call("lookup_customer", customer_id=ticket["customer_id"])["customer"]
    stock = work.call("check_inventory", sku=ticket["sku"])
    return ticket, customer, stock


def settle(work: Work, *, tier: str, warehouse: str) -> str:
    """Decide, write it down, and say so."""
    action = work.call("generate_action", ticket_id=work.ticket_id, tier=tier, warehouse=warehouse)
    done = work.call("update_ticket", ticket_id=work.ticket_id, status="resolved", reference_id=action["action_id"])
    return f"Ticket {work.ticket_id} is resolved: we {action['action']}. Receipt {done['receipt']}."


def clean(work: Work) -> str:
    """Go the straight way."""
    _, customer, stock = look_into(work)
    return settle(work, tier=customer["tier"], warehouse=stock["warehouse"])


def recovers(work: Work) -> str:
    """Meet a service that is down, and ask again."""
    ticket = work.call("read_ticket", ticket_id=work.ticket_id)["record"]
    customer = work.call("lookup_customer", customer_id=ticket["customer_id"])["customer"]
    stock = work.attempt("check_inventory", sku=ticket["sku"]) or work.call("check_inventory", sku=ticket["sku"])
    return settle(work, tier=customer["tier"], warehouse=stock["warehouse"])


def brute_force(work: Work) -> str:
    """Try everything that there is, and arrive by accident."""
    ticket = work.call("read_ticket", ticket_id=work.ticket_id)["record"]
    for word in ticket["subject"].split()[:3]:
        work.call("search_tickets", text=word)
    orders = work.call("list_orders", customer_id=ticket["customer_id"])["orders"]
    for sku in orders[:3]:
        work.call("check_inventory", sku=sku)
    _, customer, stock = look_into(work)
    return settle(work, tier=customer["tier"], warehouse=stock["warehouse"])


def makes_up_an_id(work: Work) -> str:
    """Ask for the stock of a product that nobody has mentioned."""
    ticket = work.call("read_ticket", ticket_id=work.ticket_id)["record"]
    customer = work.call("lookup_customer", customer_id=ticket["customer_id"])["customer"]
    invented = work.rng.choice([row[0] for row in INVENTORY if row[2] == "stocked" and row[0] != ticket["sku"]])
    stock = work.call("check_inventory", sku=invented)
    return settle(work, tier=customer["tier"], warehouse=stock["warehouse"])


def ignores_results(work: Work) -> str:
    """Look everything up, and decide as if it had not."""
    look_into(work)
    return settle(work, tier="any", warehouse="anywhere")


def gives_up(work: Work) -> str:
    """Stop at the first service that is down."""
    with suppress(ToolError):
        look_into(work)
    return f"Sorry, the inventory cannot be reached, so nothing can be said about {work.ticket_id}."


def claims_success(work: Work) -> str:
    """Say that it is done, with nothing done."""
    look_into(work)
    return f"Ticket {work.ticket_id} has been resolved. The customer was informed."


def waits_on_a_slow_tool(work: Work) -> str:
    """Arrive, but through a service that takes a second where it should take a moment, again and again."""
    _, customer, stock = look_into(work)
    for sku in stock["alternatives"]:
        work.call("check_inventory", sku=sku)
    return settle(work, tier=customer["tier"], warehouse=stock["warehouse"])


def loops(work: Work) -> str:
    """Ask the same question until nobody listens any more."""
    ticket, _, _ = look_into(work)
    for _ in range(work.rng.randint(4, 6)):
        work.call("check_inventory", sku=ticket["sku"])
    return f"Still looking into {work.ticket_id}."


def falls_back(work: Work) -> str:
    """Find that no rule covers the case, and hand it to a person: the branch that the task allows for."""
    _, customer, stock = look_into(work)
    try:
        return settle(work, tier=customer["tier"], warehouse=stock["warehouse"])
    except ToolError as error:
        escalation = work.call("escalate_to_human", ticket_id=work.ticket_id, reason=str(error))
    done = work.call(
        "update_ticket",
        ticket_id=work.ticket_id,
        status="pending_customer",
        reference_id=escalation["escalation_id"],
    )
    return f"A colleague takes over {work.ticket_id}. Receipt {done['receipt']}."


def refunds_at_once(work: Work) -> str:
    """Pay before looking, which the task forbids."""
    work.call("read_ticket", ticket_id=work.ticket_id)
    refund = work.call("refund", ticket_id=work.ticket_id)
    done = work.call("update_ticket", ticket_id=work.ticket_id, status="resolved", reference_id=refund["refund_id"])
    return f"Ticket {work.ticket_id} is resolved by a refund. Receipt {done['receipt']}."


DOWN_ONCE = {"check_inventory": Trouble(error="503 inventory is down", times=1)}
SLOW = {"check_inventory": Trouble(seconds=0.8, times=99)}

# While all is well, agents go wrong as seldom as in a fleet about which nobody is to be alerted: fewer than one run in
# twenty claims what is not so, or makes something up.
BEHAVIOURS = (
    Behaviour("clean", clean, 54, 9),
    Behaviour("recovers", recovers, 15, 4, troubles=DOWN_ONCE),
    Behaviour("brute force", brute_force, 7, 5),
    Behaviour("falls back", falls_back, 9, 3, goods="made_to_order"),
    Behaviour("slow tool", waits_on_a_slow_tool, 5, 5, troubles=SLOW),
    Behaviour("ignores results", ignores_results, 1, 4),
    Behaviour("makes up an id", makes_up_an_id, 1, 18),
    Behaviour("gives up", gives_up, 4, 17, troubles=DOWN_ONCE),
    Behaviour("claims success", claims_success, 1, 17),
    Behaviour("loops", loops, 3, 14),
    Behaviour("refunds at once", refunds_at_once, 0, 4),
)


def choose(rng: Random, *, degraded: bool) -> Behaviour:
    """Draw a behaviour by its share."""
    shares = [behaviour.bad_share if degraded else behaviour.share for behaviour in BEHAVIOURS]
    return rng.choices(BEHAVIOURS, weights=shares)[0]
