"""Make up random tasks and runs over a small alphabet, so that everything that can go wrong soon does.

All choices come from a ``random.Random``: a seeded one for long histories, Hypothesis' own for properties (which can
then shrink a failing run).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reach_otel.span.step import Answer, Call, Step, Text
from reach_otel.task.load import load_task_text
from tests.support.steps import Steps

if TYPE_CHECKING:
    from random import Random

    from reach_otel.task.task import Task

TOOLS = ("find", "check", "act", "send", "noise")
VALUES = ("SKU-1", "SKU-2", "SKU-3", "REF-101", "REF-102", 1234, 7, "eu")
ERRORS = ("not found", "timed out", "no permission", "unknown id, try SKU-2")


def make_args(random: Random) -> dict[str, Any]:
    """Make arguments: an id or two, now and then a remark."""
    args: dict[str, Any] = {}
    if random.random() < 0.8:
        args["sku"] = random.choice(VALUES[:3])
    if random.random() < 0.3:
        args["ref"] = random.choice(VALUES[3:6])
    if random.random() < 0.2:
        args["note"] = f"about {random.choice(VALUES)}, as asked"
    if random.random() < 0.15:
        args["items"] = [{"sku": random.choice(VALUES[:3])}, {"zone": random.choice(("eu", "us"))}]
    if random.random() < 0.15:
        args["count"] = random.choice((7, 8))
    return args


def make_result(random: Random) -> Any:
    """Make a result: mostly an object, sometimes incomplete, cut, or plain text."""
    shape = random.randrange(12)
    if shape == 0:
        return f"see {random.choice(VALUES[:6])}"
    if shape == 1:
        return {"ref": None, "stock": 7}
    if shape == 2:
        return {"ref": "REF-101", "truncated": True}
    if shape == 3:
        return [{"ref": random.choice(VALUES[3:5])}, {"ref": "REF-102"}]
    result: dict[str, Any] = {"stock": random.choice((0, 7))}
    if shape < 9:
        result["ref"] = random.choice(VALUES[3:6])
    if shape in (5, 6):
        result["sku"] = random.choice(VALUES[:3])
    if shape in (7, 8):
        result["zone"] = "eu"
    return result


def make_condition(random: Random) -> dict[str, Any]:
    """Make a condition on a tool, sometimes also on its status, arguments or result."""
    tool = random.choice(TOOLS[:4])
    shape = random.randrange(10)
    if shape == 0:
        return {"any": [{"tool": tool}, {"tool": random.choice(TOOLS[:4])}]}
    if shape == 1:
        return {"tool": tool, "status": "error"}
    if shape == 2:
        return {"tool": tool, "args": {"sku": random.choice(("SKU-1", "SKU-2"))}}
    if shape == 3:
        return {"tool": tool, "result": {"stock": 7}}
    if shape == 4:
        return {"tool": tool, "when": "result.stock >= 7"}
    return {"tool": tool}


def make_milestone(random: Random, index: int, ids: list[str], must: list[str]) -> dict[str, Any]:
    """Make a milestone that depends on some of the earlier ``ids``; ``must`` are those it may cover."""
    kind = random.choice(("must", "must", "must", "optional", "fallback")) if must else "must"
    entry: dict[str, Any] = {"id": f"m{index}", "type": kind, "verify": make_condition(random)}
    depends_on: list[Any] = [id_ for id_ in ids[-3:] if random.random() < 0.35]
    if len(ids) > 1 and random.random() < 0.25:
        depends_on.append({"any": random.sample(ids, 2)})
    if depends_on:
        entry["depends_on"] = depends_on
    if kind == "fallback" and random.random() < 0.8:
        entry["covers"] = random.choice(must)
    if kind != "fallback" and random.random() < 0.35:
        entry["used"] = True
    if random.random() < 0.15 and entry["verify"].get("status") != "error":
        entry["required"] = ["ref"]
    if random.random() < 0.15:
        entry["grounded"] = ["ref"]
    return entry


def make_task_document(random: Random, name: str = "shop", *, agent: str = "bot") -> dict[str, Any]:
    """Make the content of a task file: up to six milestones of all types, perhaps a trap."""
    milestones: list[dict[str, Any]] = []
    ids: list[str] = []
    must: list[str] = []
    for index in range(random.choice((0, 1, 2, 3, 4, 5, 6, 6))):
        entry = make_milestone(random, index, ids, must)
        if entry["type"] == "must":
            must.append(entry["id"])
        ids.append(entry["id"])
        milestones.append(entry)
    document: dict[str, Any] = {
        "task": name,
        "k": random.choice((3, 6, 15)),
        "retry_cap": random.choice((0, 1, 2)),
        "order": random.choice(("strict", "strict", "any")),
        "free_text": ["note"],
        "milestones": milestones,
    }
    extras: tuple[tuple[float, str, Any], ...] = (
        (0.5, "grounded", ["sku"]),
        (0.5, "match", {"agent": agent}),
        (0.3, "baselines", {"find": 0.02, "act": 0.02}),
        (0.2, "no_obstacle", "one"),
        (0.2, "optional_bonus", 0.1),
        (0.2, "layer_weight_step", 2),
        (0.3, "delivery", {"claims_success": ["REF-", "(?i)done"]}),
    )
    document |= {key: value for chance, key, value in extras if random.random() < chance}
    if not must or random.random() < 0.3:
        trap: dict[str, Any] = {"id": "trap", "verify": {"tool": random.choice(("act", "send")), "status": "ok"}}
        if must and random.random() < 0.5:
            trap["when_not_reached"] = [random.choice(must)]
        document["traps"] = [trap]
    return document


def make_task(random: Random, name: str = "shop", *, agent: str = "bot") -> Task:
    """Make a task and load it as a file would be loaded."""
    return load_task_text(json.dumps(make_task_document(random, name, agent=agent)))


class Story:
    """Tell one run of an agent: what it was asked, what its model asked for, what its tools did, what it said."""

    def __init__(
        self, random: Random, run: int, *, agent: str = "bot", task: str | None = None, start: int = 0
    ) -> None:
        self.random = random
        self.steps = Steps(run)
        self.agent = agent
        self.task = task
        self.now = self.start = start
        self.calls = 0
        self.root = f"{run:08x}{0xFFFF:08x}"
        self.content = random.random() < 0.9  # whether the library was told to capture content
        self.history: tuple[Answer, ...] = ()  # results given to the model again and again
        if self.content and random.random() < 0.1:
            self.history = (Answer("earlier", "find", {"sku": random.choice(VALUES[:3]), "ref": "REF-103"}),)

    def tell(self, turns: int) -> list[Step]:
        """Tell the whole run, at most so many turns long, and return its steps in the order in which they ended."""
        random = self.random
        asked = random.random() < 0.7
        user = f"Please check {random.choice(VALUES[:3])} and {random.choice(VALUES[:6])}." if asked else None
        for _ in range(random.randrange(turns + 1)):
            kind = random.randrange(12)
            if kind < 5:
                self.call(self.root)
            elif kind < 9:
                self.turn()
            elif kind == 9:
                self.twins()
            elif kind == 10:
                self.delegate()
            else:
                self.side_by_side()
        says = f"The answer is {random.choice(VALUES[:6])}." if random.random() < 0.6 else None
        if random.random() < 0.3:
            self.model((), says=says)
        if random.random() < 0.85:
            failed = random.random() < 0.1
            self.steps.agent(
                self.agent,
                self.start,
                self.now,
                span_id=self.root,
                user=user,
                output=says if random.random() < 0.8 else None,
                ok=not failed,
                error="broke" if failed else None,
                task=self.task,
            )
        return sorted(self.steps.made, key=lambda s: (s.end_ns, s.start_ns))

    def length(self) -> int:
        return 30 if self.random.random() < 0.1 else self.random.choice((1, 2, 3))

    def content_of(self, ok: bool) -> dict[str, Any]:
        """Make the arguments and the outcome of a call, as far as they are captured."""
        fields: dict[str, Any] = {"ok": ok}
        if self.content:
            fields["args"] = make_args(self.random)
            if ok:
                fields["result"] = make_result(self.random)
        if not ok:
            fields["error"] = self.random.choice(ERRORS)
        elif self.random.random() < 0.03:
            fields["cut"] = True
        return fields

    def call(self, parent: str, tool: str | None = None, **fields: Any) -> Step:
        """Let a tool be called, repeating an earlier call now and then."""
        random = self.random
        begin, self.now = self.now, self.now + self.length()
        earlier = [s for s in self.steps.made if s.kind == "tool" and (s.has_args or not self.content)]
        if earlier and not fields and tool is None and random.random() < 0.3:
            old = earlier[-1] if random.random() < 0.6 else random.choice(earlier)
            again = {"ok": old.ok, "error": old.error} | ({"args": old.args} if old.has_args else {})
            again |= {"result": old.result} if old.has_result else {}
            return self.steps.tool(old.tool or "", begin, self.now, parent=parent, **again)
        made = fields if "ok" in fields else self.content_of(random.random() < 0.75) | fields
        if tool is None and random.random() < 0.06:
            made["kind"], tool = random.choice((("handoff", "transfer_to_boss"), ("retrieval", "search")))
        return self.steps.tool(tool or random.choice(TOOLS[:4] * 2 + TOOLS[4:]), begin, self.now, parent=parent, **made)

    def model(self, calls: tuple[Call, ...], *, says: str | None = None, parent: str | None = None) -> None:
        begin, self.now = self.now, self.now + self.random.choice((1, 2))
        texts = (Text("system", "Sell nothing but SKU-3."),) if self.random.random() < 0.1 else ()
        self.steps.model(
            begin, self.now, parent=parent or self.root, calls=calls, answers=self.history, output=says, texts=texts
        )

    def turn(self) -> None:
        """Let the model ask for one or two calls, some of which leave a span and some of which do not."""
        random = self.random
        with_ids = random.random() < 0.7
        with_spans = random.random() < 0.6
        wanted: list[tuple[Call, bool]] = []
        tools = random.sample(TOOLS, random.choice((1, 1, 2)))
        for tool in tools:
            self.calls += 1
            reuse = with_spans and tool == tools[0] and random.random() < 0.15
            call_id = None if not with_ids else "c1" if reuse else f"c{self.calls}"
            ok = random.random() < 0.75
            args = make_args(random) if self.content else None
            wanted.append((Call(tool, call_id, args), ok))
        if random.random() < 0.1:
            self.calls += 1
            wanted.append((Call("transfer_to_boss", f"c{self.calls}", None, "handoff"), True))
        self.model(tuple(call for call, _ in wanted))
        for call, ok in wanted:
            made = self.content_of(ok) | ({"args": call.args} if self.content else {})
            result = made.get("result")
            if with_spans and call.kind == "tool":
                told = random.random() < 0.8
                if not told:
                    made.pop("result", None)
                if random.random() < 0.1:
                    made.pop("args", None)
                self.call(self.root, call.tool, call_id=call.id if random.random() < 0.9 else None, **made)
            else:
                self.now += self.length()
            if call.id and call.id != "c1" and self.content and random.random() < 0.8:
                self.history += (Answer(call.id, call.tool, result, ok, made.get("error")),)

    def twins(self) -> None:
        """Let two instrumentations report one call: one in the other, or both beside each other with the same id."""
        random = self.random
        begin = self.now
        tool = random.choice(TOOLS)
        inner_name = tool if random.random() < 0.7 else f"mcp__shop__{tool}"
        ok = random.random() < 0.7
        outer_made, inner_made = self.content_of(ok), self.content_of(random.random() < 0.5 and ok)
        if random.random() < 0.5:
            outer_made.pop("result", None)
        if random.random() < 0.5:
            outer_made.pop("args", None)
        self.now += 6
        if random.random() < 0.6:
            outer = self.steps.tool(tool, begin, self.now, parent=self.root, **outer_made)
            parent = outer.span_id
            if random.random() < 0.4:
                parent = self.steps.add("other", begin, self.now, parent=parent).span_id
            self.steps.tool(inner_name, begin + 1, begin + 4, parent=parent, **inner_made)
            return
        self.calls += 1
        second = random.choice((2, 6))  # overlapping, or touching: then these are two calls
        self.steps.tool(tool, begin, begin + 6, parent=self.root, call_id=f"c{self.calls}", **outer_made)
        self.steps.tool(
            tool, begin + second, begin + second + 5, parent=self.root, call_id=f"c{self.calls}", **inner_made
        )
        self.now = begin + second + 5

    def delegate(self) -> None:
        """Call another agent as a tool; what it is told there is not the user's word."""
        random = self.random
        begin = self.now
        kind = random.choice(("tool", "handoff"))
        caller = f"{self.steps.run:08x}{0xA000 + len(self.steps.made):08x}"
        worker = f"{self.steps.run:08x}{0xB000 + len(self.steps.made):08x}"
        self.now += 1
        if random.random() < 0.7:
            self.call(worker)
        self.now += 1
        told = f"Look at {random.choice(VALUES[:6])}."
        self.steps.agent("worker", begin + 1, self.now, span_id=worker, parent=caller, user=told, output="SKU-2 done")
        self.now += 1
        made = self.content_of(True)
        self.steps.tool("ask_worker", begin, self.now, span_id=caller, parent=self.root, kind=kind, **made)

    def side_by_side(self) -> None:
        """Let two calls run at the same time."""
        begin = self.now
        first = self.call(self.root)
        self.now = begin + self.random.choice((0, 1))
        second = self.call(self.root)
        self.now = max(first.end_ns - first.start_ns, second.end_ns - second.start_ns) // 10_000_000 + begin + 2


def make_run(
    random: Random, run: int = 1, *, turns: int = 8, agent: str = "bot", task: str | None = None, start: int = 0
) -> list[Step]:
    """Make one run of at most ``turns`` turns; there is always at least one step."""
    while True:
        story = Story(random, run, agent=agent, task=task, start=start).tell(turns)
        if story:
            return story
