"""Write one task file for each graph of a set of labelled runs.

    python -m examples.trajectories.make_tasks DATA OUT

``DATA`` is a folder with one folder a set (``dags.jsonl``, ``labels.jsonl``, ``runs/*.jsonl.gz``), ``OUT`` gets
``<set>/<graph>.task.json``. The rules, none of which looks at how a run went or ended:

- a gold write is a must-milestone; a write that is known to change nothing is optional;
- identifying the customer is a must-milestone too, by whichever tool it is done; where the graph only guesses it
  (``inferred``) and nothing is to be written, it is optional;
- reads and transfers are optional: gold is one legal path, and reading more or less changes nothing;
- an answer that the user must be given is a must-milestone which any reply of the agent can reach;
- every other successful call of a tool that writes is a trap, and so is the same write again, where that makes a second
  thing (a mail sent twice) and does not just set a value twice;
- order does not matter (``order: any``), since labels compare end states.
"""

from __future__ import annotations

import argparse
import glob
import gzip
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Json = dict[str, Any]

ACTIONS_MAX = 100  # the labels know no cap on actions
MAKES_ANOTHER = re.compile(r"(^|[._])(add|book|create|forward|reply|send)(_|$)")


@dataclass(frozen=True)
class Comparison:
    """How the authors of a set compare the values of two writes."""

    case_free: bool = False
    exact: frozenset[str] = field(default_factory=frozenset)  # arguments compared to the letter all the same


COMPARISONS: Mapping[str, Comparison] = {
    "workbench": Comparison(case_free=True, exact=frozenset({"status", "list_name", "board"})),
}
"""By set; without an entry texts are compared to the letter."""


@dataclass(frozen=True)
class Root:
    """What the root span of a run says about it."""

    conversation: str
    agent: str


# What a call has to look like


def call(tool: str, arguments: Json | None, comparison: Comparison) -> Json:
    """Describe a successful call with these arguments; the order within lists is free, parallel lists move together."""
    condition: Json = {"tool": tool}
    lists = {name: value for name, value in (arguments or {}).items() if isinstance(value, list)}
    plain = {name: value for name, value in (arguments or {}).items() if name not in lists}
    if plain:
        exact = comparison.exact | ({"new_value"} if plain.get("field") in comparison.exact else set())
        condition["args"] = {
            name: literal(value, case_free=comparison.case_free and name not in exact) for name, value in plain.items()
        }
    if lists:
        condition["when"] = " && ".join(same_items(group) for group in parallel(lists))
    return condition


def literal(value: Any, *, case_free: bool) -> Any:
    """Match one value, in any case where that is asked."""
    if isinstance(value, str) and case_free and value.lower() != value.upper():
        return {"matches": f"(?is)^{re.escape(value)}$"}
    return {"eq": value} if isinstance(value, dict) else value


def parallel(lists: Mapping[str, list[Any]]) -> Iterator[dict[str, list[Any]]]:
    """Group lists that belong together item by item: ``x`` and ``new_x`` of equal length."""
    for name, value in lists.items():
        twin = f"new_{name}"
        if len(lists.get(twin, ())) == len(value) and twin in lists:
            yield {name: value, twin: lists[twin]}
        elif not (name.startswith("new_") and len(lists.get(name[4:], ())) == len(value)):
            yield {name: value}


def same_items(lists: Mapping[str, list[Any]]) -> str:
    """Say in CEL that parallel lists hold the same items as these, each as often, in any order."""
    count = len(next(iter(lists.values())))
    places = json.dumps(list(range(count)))
    columns = (
        [f"args.{name}[i] == {json.dumps(x, ensure_ascii=False)}" for x in items] for name, items in lists.items()
    )
    rows = Counter(zip(*columns, strict=True))
    sizes = [f"size(args.{name}) == {count}" for name in lists]
    return " && ".join(sizes + [f"{places}.filter(i, {' && '.join(row)}).size() == {n}" for row, n in rows.items()])


def says(text: str) -> Json:
    """Hold on a reply of the agent that has this text in it, in any case, with or without commas in a number."""
    pattern = re.escape(text)
    if re.fullmatch(r"\d+(\.\d+)?", text):
        pattern = re.sub(r"(?<=\d)(?=(\d{3})+($|\\))", ",?", pattern)
    return {"when": f"tool == null && text.matches({json.dumps(f'(?i){pattern}', ensure_ascii=False)})"}


# From a graph to a task


def task(graph: Json, writers: Iterable[str], match: Json, comparison: Comparison) -> Json:
    """Turn one drafted graph into the content of a task file."""
    nodes = graph["nodes"]
    writes = [node for node in nodes if node["role"] == "write"]
    milestones = list(identification(graph, comparison, nothing_to_write=not any(w["type"] == "must" for w in writes)))
    first = [m["id"] for m in milestones if m["type"] == "must"]
    for node in nodes:
        if node["role"] != "identify":
            kind = "must" if node["role"] == "write" and node["type"] == "must" else "optional"
            milestones.append(
                {
                    "id": node["id"],
                    "type": kind,
                    "depends_on": first,
                    "verify": call(node["tool"], node["arguments"], comparison),
                }
            )
    for n, text in enumerate(graph.get("answer_contains", ()), 1):
        milestones.append({"id": f"answer{n}", "type": "must", "depends_on": first, "verify": says(text)})
    return {
        "task": graph["task"],
        "description": graph["instruction"],
        "match": match,
        "k": ACTIONS_MAX,
        "order": "any",
        "milestones": milestones,
        "traps": list(traps(writes, writers, comparison)),
    }


def identification(graph: Json, comparison: Comparison, *, nothing_to_write: bool) -> Iterator[Json]:
    """Make one milestone of all ways to find out who the customer is: the effect counts, not the tool."""
    nodes = [node for node in graph["nodes"] if node["role"] == "identify"]
    if not nodes:
        return
    guessed = all(node.get("inferred") for node in nodes)
    user = graph["user_id"]
    ways = [{"tool": node["tool"], "result": {".": user}} for node in nodes]  # found by name or mail
    ways += [{"tool": node["tool"], "args": {"user_id": user}} for node in nodes]  # looked up by the id itself
    ways += [call(node["tool"], node["arguments"], comparison) for node in nodes if node["arguments"]]
    kind = "optional" if guessed and nothing_to_write else "must"
    yield {"id": "identify", "type": kind, "verify": {"any": ways}}


def traps(writes: list[Json], writers: Iterable[str], comparison: Comparison) -> Iterator[Json]:
    """Forbid each successful call of a tool that writes, except once with the arguments of a write in the graph."""
    for tool in sorted(writers):
        wanted = [call(tool, node["arguments"], comparison) for node in writes if node["tool"] == tool]
        verify: Json = {"all": [{"tool": tool}, {"not": {"any": wanted}}]} if wanted else {"tool": tool}
        yield {"id": f"other_{tool.replace('.', '_')}", "verify": verify}
    for node in writes:
        if MAKES_ANOTHER.search(node["tool"]):
            again = [call(node["tool"], node["arguments"], comparison), {"when": f'"{node["id"]}" in run.held'}]
            yield {"id": f"again_{node['id']}", "verify": {"all": again}}


# Which run is which task


def matches(labels: list[Json], roots: Mapping[str, Root]) -> dict[str, Json]:
    """Make the ``match`` of every graph from its runs' conversation ids, with source and trial left open.

    Raises ``ValueError`` when the runs of a graph have nothing in common or a run would fit another graph.
    """
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for label in labels:
        root = roots[label["trace_id"]]
        found[label["dag_id"]].add((open_id(root.conversation, label), root.agent))
    for graph, patterns in found.items():
        if len(patterns) > 1:
            raise ValueError(f"{graph}: its runs have no conversation id in common: {sorted(patterns)}")
    owners: dict[tuple[str, str], str] = {}
    for graph, patterns in found.items():
        for pattern in patterns:
            if owners.setdefault(pattern, graph) != graph:
                raise ValueError(f"{graph} and {owners[pattern]} cannot be told apart: {pattern}")
    for label in labels:
        root = roots[label["trace_id"]]
        own = next(iter(found[label["dag_id"]]))
        if not fnmatchcase(root.conversation, own[0]):
            raise ValueError(f"{label['dag_id']}: {root.conversation} does not fit {own[0]}")
    return {
        graph: {"agent": agent, "attributes": {"gen_ai.conversation.id": pattern}}
        for graph, patterns in found.items()
        for pattern, agent in patterns
    }


def open_id(conversation: str, label: Json) -> str:
    """Turn ``set/source/task/trial`` into a glob for all sources and trials of the task."""
    rest = conversation.removeprefix(f"{label['dataset']}/{label['source']}/")
    trial = f"/{label['trial']}"
    rest = glob.escape(rest.removesuffix(trial)) + "/*" if rest == label["task_id"] + trial else glob.escape(rest)
    return f"{glob.escape(label['dataset'])}/*/{rest}"


def read_roots(files: Iterable[Path]) -> dict[str, Root]:
    """Read conversation id and agent name of every run's root span, by trace id."""
    roots: dict[str, Root] = {}
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                for resource in json.loads(line)["resourceSpans"]:
                    for scope in resource["scopeSpans"]:
                        roots.update(
                            (span["traceId"], _root(span)) for span in scope["spans"] if not span.get("parentSpanId")
                        )
    return roots


def _root(span: Json) -> Root:
    texts = {a["key"]: a["value"].get("stringValue", "") for a in span["attributes"]}
    return Root(texts["gen_ai.conversation.id"], texts["gen_ai.agent.name"])


def read_lines(file: Path) -> list[Json]:
    """Read JSON lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def make(folder: Path) -> list[Json]:
    """Make the tasks of one set: the content of one task file a graph."""
    graphs = read_lines(folder / "dags.jsonl")
    labels = read_lines(folder / "labels.jsonl")
    match = matches(labels, read_roots(sorted((folder / "runs").glob("*.jsonl.gz"))))
    writers = {node["tool"] for graph in graphs for node in graph["nodes"] if node["role"] == "write"}
    comparison = COMPARISONS.get(folder.name, Comparison())
    return [task(graph, writers, match[graph["task"]], comparison) for graph in graphs if graph["task"] in match]


def write(tasks: list[Json], folder: Path) -> None:
    """Write task files into a folder, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for content in tasks:
        name = re.sub(r"[^A-Za-z0-9_.-]", "-", content["task"])
        (folder / f"{name}.task.json").write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")


def sets(data: Path) -> list[Path]:
    """List the folders of a data folder that hold a set."""
    return sorted(path.parent for path in data.glob("*/dags.jsonl"))


def main() -> None:
    """Write the task files of all sets."""
    parser = argparse.ArgumentParser(description="Write one task file for each graph of a set of labelled runs.")
    parser.add_argument("data", type=Path, help="folder with one folder a set")
    parser.add_argument("out", type=Path, help="folder for the task files")
    options = parser.parse_args()
    for folder in sets(options.data):
        tasks = make(folder)
        write(tasks, options.out / folder.name)
        print(f"{folder.name}: {len(tasks)} task files in {options.out / folder.name}")


if __name__ == "__main__":
    main()
