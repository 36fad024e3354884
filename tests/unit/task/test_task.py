"""The compiled task: its parts, defaults, and the questions that the engine asks on every step."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from reach_otel.task import Tasks, View, load_task_text
from reach_otel.task.path import Path

TICKET = r"""
task: ticket-handling
match: {agent: ticket-*, attributes: {team: support}}
weights: {depth: 4, purity: 3, digestion: 3}
baselines: {check_inventory: 0.04}
grounded: ["*_id", sku]
free_text: [reason]
forbidden_tools: [drop_*]
milestones:
  - id: read
    verify: {tool: read_ticket, result: {status: ok}}
    required: [record.ticket_id]
  - {id: customer, depends_on: [read], verify: {tool: lookup_customer}, used: true}
  - {id: stock, depends_on: [read], verify: {tool: check_inventory, when: 'result.stock >= 0'}, grounded: [count]}
  - {id: suggestion, depends_on: [customer, stock], verify: {tool: generate_action}, tools: [generate_*, read_ticket]}
  - {id: escalate, type: fallback, covers: suggestion, depends_on: [read], verify: {tool: escalate_to_human}}
  - id: update
    depends_on: [{any: [suggestion, escalate]}]
    verify: {tool: update_ticket, args: {status: {in: [resolved, pending]}}}
traps:
  - {id: refund, when_not_reached: [stock], verify: {tool: refund}}
  - {id: shout, verify: {when: "text.contains('!!!')"}}
intent: {mentions: [Ticket]}
delivery: {contains_results_of: [update], claims_success: ['(?i)\bdone\b']}
outcome: {quality_min: 6, duration_seconds_max: 30}
"""


@pytest.fixture(scope="module")
def ticket() -> Any:
    return load_task_text(TICKET)


def test_milestones_keep_their_order_and_know_each_other_by_index(ticket: Any) -> None:
    assert [m.id for m in ticket.milestones] == ["read", "customer", "stock", "suggestion", "escalate", "update"]
    assert [m.layer for m in ticket.milestones] == [1, 2, 2, 3, 2, 2]
    assert ticket.milestones[3].depends_on == ((1,), (2,))
    assert ticket.milestones[5].depends_on == ((3, 4),)
    assert ticket.milestones[4].covers == 3
    assert ticket.milestones[0].required == (Path("record.ticket_id"),)
    assert ticket.milestones[2].grounded == ("count",)
    assert ticket.traps[0].when_not_reached == (2,)
    assert [m.line for m in ticket.milestones] == [10, 13, 14, 15, 16, 17]


def test_parts_of_the_file_are_compiled(ticket: Any) -> None:
    assert (ticket.weights.depth, ticket.weights.purity) == (0.4, 0.3)
    assert ticket.layer_weights == (1.0, 2.0, 3.0)
    assert ticket.match.agent == "ticket-*"
    assert ticket.match.attributes == {"team": "support"}
    assert ticket.intent.mentions == ("ticket",)
    assert ticket.delivery.required
    assert ticket.delivery.contains_results_of == (5,)
    assert ticket.delivery.claims_success[0].search("All Done.")
    assert (ticket.outcome.quality_min, ticket.outcome.duration_seconds_max) == (6, 30)
    assert set(ticket.constants) == {"ok", 0, "resolved", "pending", "!!!"}
    assert (ticket.scene.name, ticket.scene.outcome) == ("general", 0.4)


def test_defaults_are_those_of_the_reference() -> None:
    task = load_task_text("task: t\nmilestones: [{id: a, verify: {tool: x}}]")
    assert (task.k, task.retry_cap, task.slow_factor, task.order) == (15, 2, 3.0, "strict")
    assert (task.weights.depth, task.weights.purity, task.weights.digestion) == (0.4, 0.3, 0.3)
    assert (task.no_obstacle, task.optional_bonus, task.error_when) == ("exclude", 0.0, None)
    assert (task.match, task.variant, task.allowed_tools, task.delivery) == (None, None, None, None)
    assert not task.needs_text
    assert not task.needs_attributes


@pytest.mark.parametrize(
    ("head", "weights"),
    [
        ("", (1.0, 2.0)),
        ("layer_weight_step: 0.5", (1.0, 1.5)),
        ("layer_weight_step: 0", (1.0, 1.0)),
        ("layer_weights: [1, 5]", (1.0, 5.0)),
    ],
)
def test_layer_weights(head: str, weights: tuple[float, ...]) -> None:
    text = "milestones: [{id: a, verify: {tool: x}}, {id: b, depends_on: [a], verify: {tool: y}}]"
    assert load_task_text(f"task: t\n{head}\n{text}").layer_weights == weights


def test_a_task_of_traps_alone_has_no_layers() -> None:
    task = load_task_text("task: t\ntraps: [{id: a, verify: {tool: x}}]")
    assert task.layer_weights == ()
    assert task.milestones == ()
    assert task.traps_for("x") == (0,)


@pytest.mark.parametrize(("scene", "shares"), [("code", (0.4, 0.4, 0.2)), ("[2, 1, 1]", (0.5, 0.25, 0.25))])
def test_scenes_are_shares_of_one(scene: str, shares: tuple[float, ...]) -> None:
    task = load_task_text(f"task: t\nscene: {scene}\ntraps: [{{id: a, verify: {{tool: x}}}}]")
    assert (task.scene.outcome, task.scene.trajectory, task.scene.system) == shares


def test_candidates_are_found_by_tool(ticket: Any) -> None:
    assert ticket.milestones_for("check_inventory") == (2,)
    assert ticket.milestones_for("nothing") == ()
    assert ticket.milestones_for(None) == ()
    assert ticket.traps_for("refund") == (0, 1)
    assert ticket.traps_for(None) == (1,)


def test_effective_tools_are_those_of_milestones_and_known_ones_also_those_of_traps(ticket: Any) -> None:
    assert ticket.effective("generate_reply")
    assert not ticket.effective("refund")
    assert ticket.knows("refund")
    assert ticket.knows("drop_table")
    assert ticket.knows("update_ticket")
    assert not ticket.knows("send_mail")


def test_a_star_makes_no_tool_known() -> None:
    task = load_task_text("task: t\nmilestones: [{id: a, verify: {tool: '*', result: {ok: true}}}]")
    assert task.effective("anything")
    assert not task.knows("anything")


def test_blocked_milestones_come_by_layer(ticket: Any) -> None:
    assert ticket.blocked_by("read_ticket") == (0, 3)
    assert ticket.blocked_by("nothing") == ()


def test_least_privilege(ticket: Any) -> None:
    assert ticket.allows("read_ticket")
    assert not ticket.allows("drop_table")
    narrow = load_task_text(
        "task: t\nallowed_tools: [read_*]\nforbidden_tools: [read_all]\ntraps: [{id: a, verify: {tool: x}}]"
    )
    assert narrow.allows("read_one")
    assert not narrow.allows("read_all")
    assert not narrow.allows("write")


def test_argument_names(ticket: Any) -> None:
    assert ticket.is_grounded("ticket_id")
    assert ticket.is_grounded("sku")
    assert not ticket.is_grounded("count")
    assert ticket.is_free_text("reason")
    assert not ticket.is_free_text("sku")


def test_answers_do_not_pile_up_however_many_names_come(ticket: Any) -> None:
    for number in range(10_000):
        name = f"made_up_{number}"
        assert not ticket.knows(name)
        assert ticket.milestones_for(name) == ticket.blocked_by(name) == ()
    assert max(map(len, (ticket._index.is_known, ticket._index.milestones, ticket._index.blocked))) <= 4_096


@pytest.mark.parametrize(
    ("extra", "text", "attributes"),
    [
        ("grounded: [a]", True, False),
        ("intent: {mentions: [a]}", True, False),
        ("delivery: {contains_results_of: [m]}", True, False),
        ("delivery: {claims_success: [a]}", True, False),
        ("delivery: {required: true}", False, False),
        ("match: {attributes: {a: b}}", False, True),
        ("traps: [{id: t, verify: {when: 'attributes.x == 1'}}]", False, True),
        ("traps: [{id: t, verify: {python: 'tests.unit.task.targets:is_paid'}}]", False, True),
    ],
)
def test_what_must_be_kept_of_steps(extra: str, text: bool, attributes: bool) -> None:
    task = load_task_text(f"task: t\n{extra}\nmilestones: [{{id: m, verify: {{tool: x}}}}]")
    assert (task.needs_text, task.needs_attributes) == (text, attributes)


def test_a_milestone_with_tools_alone_holds_on_any_successful_call_of_them() -> None:
    task = load_task_text("task: t\nmilestones: [{id: a, tools: [x, y*]}, {id: b, tools: [z]}, {id: c}]")
    one, two, none = (milestone.condition for milestone in task.milestones)
    assert one.holds(View(tool="x"))
    assert one.holds(View(tool="yy"))
    assert not one.holds(View(tool="x", ok=False))
    assert two.holds(View(tool="z"))
    assert not none.holds(View(tool="x"))
    assert task.milestones_for("x") == (0,)


def test_groups_that_say_the_same_twice_count_once() -> None:
    task = load_task_text(
        "task: t\nmilestones: [{id: a, tools: [x]}, {id: b, tools: [y], depends_on: [a, {any: [a, a]}]}]"
    )
    assert task.milestones[1].depends_on == ((0,),)


def test_topological_order_and_critical_edges(ticket: Any) -> None:
    assert ticket.topological == (0, 1, 2, 3, 4, 5)
    assert ticket.critical_edges == ((None, 0),)


def test_tasks_are_a_sequence_by_name() -> None:
    one, two = (load_task_text(f"task: {name}\nmilestones: [{{id: a, tools: [x]}}]") for name in ("b", "a"))
    tasks = Tasks([one, two])
    assert [task.name for task in tasks] == ["a", "b"]
    assert tasks.by_name["b"] is tasks[1] is one
    assert tasks[:1] == Tasks([two])
    assert len(tasks) == 2
    assert repr(tasks) == "Tasks(a, b)"
    assert hash(tasks) == hash(Tasks([two, one]))
    with pytest.raises(ValueError, match="two tasks have one name"):
        Tasks([one, one])


def test_what_a_step_costs_does_not_grow_with_the_graph() -> None:
    """The engine asks for candidates by tool; among 200 milestones it is given the one that matters."""
    lines = [
        f"  - {{id: m{n}, verify: {{tool: tool_{n}}}, depends_on: [{f'm{n - 1}' if n else ''}]}}" for n in range(200)
    ]
    task = load_task_text("task: t\nmilestones:\n" + "\n".join(lines))
    assert all(task.milestones_for(f"tool_{n}") == (n,) for n in range(200))
    assert len(task.layer_weights) == 200
    assert all(b == a + 1 for a, b in pairwise(task.layer_weights))
