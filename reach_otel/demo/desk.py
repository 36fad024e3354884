"""Keep a support desk in SQLite: the real thing behind the tools of the demo's agents."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Literal

Result = dict[str, Any]
Goods = Literal["stocked", "made_to_order"]

TICKETS_MAX = 2_000  # older ones are forgotten, so that the demo can run for days

SCHEMA = """
CREATE TABLE customers (customer_id TEXT PRIMARY KEY, name TEXT, tier TEXT);
CREATE TABLE inventory (sku TEXT PRIMARY KEY, title TEXT, goods TEXT, stock INTEGER, warehouse TEXT);
CREATE TABLE tickets (id INTEGER PRIMARY KEY, customer_id TEXT, sku TEXT, subject TEXT, status TEXT);
CREATE TABLE actions (id INTEGER PRIMARY KEY, ticket INTEGER, action TEXT);
CREATE TABLE escalations (id INTEGER PRIMARY KEY, ticket INTEGER, reason TEXT);
"""
CUSTOMERS = (
    ("C-2101", "Aminata Diallo", "platinum"),
    ("C-2102", "Bruno Keller", "standard"),
    ("C-2103", "Chen Yu", "platinum"),
    ("C-2104", "Daria Novak", "business"),
    ("C-2105", "Emil Sørensen", "standard"),
    ("C-2106", "Fatima Zahra", "business"),
)
INVENTORY = (
    ("SKU-7001", "desk lamp", "stocked", 14, "HAM-1"),
    ("SKU-7002", "monitor arm", "stocked", 3, "HAM-1"),
    ("SKU-7003", "office chair", "stocked", 8, "LYO-2"),
    ("SKU-7004", "standing desk", "stocked", 5, "LYO-2"),
    ("SKU-7005", "headset", "stocked", 41, "GDN-3"),
    ("SKU-7006", "engraved shelf", "made_to_order", 0, "GDN-3"),
    ("SKU-7007", "custom table top", "made_to_order", 0, "GDN-3"),
)
COMPLAINTS = ("arrived broken", "stopped working", "is the wrong colour", "has a part missing")


class ToolError(Exception):
    """Say, like an HTTP service does, why a tool gives no result."""


class Desk:
    """Answer the agents' tools from a database in a temporary folder, which goes away with :meth:`close`.

    The methods from :meth:`read_ticket` on are the tools; each raises :class:`ToolError` where a service would answer
    with an error. Safe to use from many threads: one short transaction at a time.
    """

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="reach-otel-demo-")
        self._database = sqlite3.connect(Path(self._folder.name) / "desk.db", check_same_thread=False)
        self._database.row_factory = sqlite3.Row
        self._lock = threading.Lock()
        with self._database as database:
            database.executescript(SCHEMA)
            database.executemany("INSERT INTO customers VALUES (?, ?, ?)", CUSTOMERS)
            database.executemany("INSERT INTO inventory VALUES (?, ?, ?, ?, ?)", INVENTORY)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and delete it."""
        with self._lock:
            self._database.close()
        self._folder.cleanup()

    def open_ticket(self, rng: Random, goods: Goods) -> str:
        """Let a customer complain about a product of this kind; return the new ticket's id."""
        sku, title = rng.choice([(row[0], row[1]) for row in INVENTORY if row[2] == goods])
        subject = f"My {title} {rng.choice(COMPLAINTS)}"
        customer_id = rng.choice(CUSTOMERS)[0]
        with self._lock, self._database as database:
            number = database.execute(
                "INSERT INTO tickets (customer_id, sku, subject, status) VALUES (?, ?, ?, 'open')",
                (customer_id, sku, subject),
            ).lastrowid
            for table, key in (("tickets", "id"), ("actions", "ticket"), ("escalations", "ticket")):
                database.execute(f"DELETE FROM {table} WHERE {key} <= ?", ((number or 0) - TICKETS_MAX,))
        return f"T-{100_000 + (number or 0)}"

    def read_ticket(self, ticket_id: str) -> Result:
        ticket = self._ticket(ticket_id)
        return {
            "status": "ok",
            "record": {
                "ticket_id": ticket_id,
                "customer_id": ticket["customer_id"],
                "sku": ticket["sku"],
                "subject": ticket["subject"],
            },
        }

    def lookup_customer(self, customer_id: str) -> Result:
        customer = self._one("SELECT * FROM customers WHERE customer_id = ?", customer_id, what="customer")
        return {"status": "ok", "customer": dict(customer)}

    def check_inventory(self, sku: str) -> Result:
        item = self._one("SELECT * FROM inventory WHERE sku = ?", sku, what="sku")
        others = self._all(
            "SELECT sku FROM inventory WHERE goods = ? AND sku != ? ORDER BY sku LIMIT 3", item["goods"], sku
        )
        alternatives = [row["sku"] for row in others]
        return {"sku": sku, "stock": item["stock"], "warehouse": item["warehouse"], "alternatives": alternatives}

    def list_orders(self, customer_id: str) -> Result:
        rows = self._all("SELECT sku FROM tickets WHERE customer_id = ? ORDER BY id DESC LIMIT 3", customer_id)
        return {"orders": [row["sku"] for row in rows]}

    def search_tickets(self, text: str) -> Result:
        rows = self._all("SELECT id FROM tickets WHERE subject LIKE ? ORDER BY id DESC LIMIT 3", f"%{text}%")
        return {"found": [f"T-{100_000 + row['id']}" for row in rows]}

    def generate_action(self, ticket_id: str, tier: str, warehouse: str) -> Result:
        """Propose what to do: express for a platinum customer; no rule covers what is made to order."""
        ticket = self._ticket(ticket_id)
        item = self._one("SELECT * FROM inventory WHERE sku = ?", ticket["sku"], what="sku")
        if item["goods"] == "made_to_order":
            raise ToolError("422 no rule covers goods that are made to order")
        speed = "express" if tier == "platinum" else "normal"
        action = f"send a new one by {speed} parcel from {warehouse}"
        number = self._insert("INSERT INTO actions (ticket, action) VALUES (?, ?)", ticket["id"], action)
        return {"status": "ok", "action_id": f"A-{500_000 + number}", "action": action}

    def refund(self, ticket_id: str) -> Result:
        number = self._insert(
            "INSERT INTO actions (ticket, action) VALUES (?, 'refund')", self._ticket(ticket_id)["id"]
        )
        return {"status": "ok", "refund_id": f"A-{500_000 + number}"}

    def escalate_to_human(self, ticket_id: str, reason: str) -> Result:
        ticket = self._ticket(ticket_id)
        number = self._insert("INSERT INTO escalations (ticket, reason) VALUES (?, ?)", ticket["id"], reason)
        return {"status": "ok", "escalation_id": f"E-{800_000 + number}"}

    def update_ticket(self, ticket_id: str, status: str, reference_id: str) -> Result:
        number = self._ticket(ticket_id)["id"]
        with self._lock, self._database as database:
            database.execute("UPDATE tickets SET status = ? WHERE id = ?", (status, number))
        return {
            "ok": True,
            "ticket_id": ticket_id,
            "status": status,
            "receipt": f"R-{ticket_id[2:]}-{reference_id[2:]}",
        }

    def status_of(self, ticket_id: str) -> str:
        """Return how a ticket really stands, whatever the agent says about it."""
        return str(self._ticket(ticket_id)["status"])

    def _ticket(self, ticket_id: str) -> sqlite3.Row:
        number = ticket_id.removeprefix("T-")
        key = int(number) - 100_000 if number.isdigit() else -1
        return self._one("SELECT * FROM tickets WHERE id = ?", key, what="ticket")

    def _one(self, query: str, key: str | int, *, what: str) -> sqlite3.Row:
        rows = self._all(query, key)
        if not rows:
            raise ToolError(f"404 no such {what}: {key}")
        return rows[0]

    def _all(self, query: str, *values: str | int) -> list[sqlite3.Row]:
        with self._lock:
            return self._database.execute(query, values).fetchall()

    def _insert(self, query: str, *values: str | int) -> int:
        with self._lock, self._database as database:
            return database.execute(query, values).lastrowid or 0


TOOLS = (
    "read_ticket",
    "lookup_customer",
    "check_inventory",
    "list_orders",
    "search_tickets",
    "generate_action",
    "refund",
    "escalate_to_human",
    "update_ticket",
)
"""The methods of :class:`Desk` that an agent may call."""
