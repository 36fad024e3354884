"""Loading task files: every error with its line, folders, JSON, and that dumping gives the same task back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reach_otel.errors import ReachError, TaskError
from reach_otel.task import load, load_task_text
from reach_otel.task.dump import dump
from reach_otel.task.model import TaskFile

GOOD = "task: t\nmilestones:\n  - id: a\n    verify: {tool: x}\n"


def errors(text: str, name: str = "t.task.yaml") -> list[tuple[int, str]]:
    with pytest.raises(TaskError) as caught:
        load_task_text(text, name)
    assert all(problem.file == name for problem in caught.value.problems)
    return [(problem.line, problem.message) for problem in caught.value.problems]


def task(*milestones: str, head: str = "") -> str:
    """Write a task whose milestones start in line 3, one a line."""
    return f"task: t\n{head or '# no more'}\nmilestones:\n" + "".join(f"  - {{{each}}}\n" for each in milestones)


A, B = "id: a, verify: {tool: x}", "id: b, verify: {tool: y}"

ERRORS = [
    # keys and types
    ("task: t\nmilestons: []\n", 2, 'milestons: unknown key; allowed: allowed_tools, .*did you mean "milestones"'),
    (task(A, "id: b, veryfy: {tool: x}"), 5, r'milestones\[1\].veryfy: unknown key; allowed: covers, .*mean "verify"'),
    (task("id: a, verify: {tol: x}"), 4, 'verify.tol: unknown key; allowed: all, any, args, .*did you mean "tool"'),
    (task("id: a, verify: {args: {n: {gtt: 3}}}"), 4, 'args.n.gtt: unknown key; allowed: contains, eq, .*mean "gt"'),
    (
        task("id: a, depends_on: [{anny: [a]}]"),
        4,
        r'depends_on\[0\].anny: unknown key; allowed: any; did you mean "any"',
    ),
    (task("id: a, verify: {all: [{any: [{tol: x}]}]}"), 4, r"verify.all\[0\].any\[0\].tol: unknown key"),
    (task(A, head="match: {agnt: x}"), 2, 'match.agnt: unknown key; allowed: agent, attributes, .*mean "agent"'),
    (task(A, head="delivery: {require: true}"), 2, 'delivery.require: unknown key; .*did you mean "required"'),
    ("milestones: []\n", 1, "task: this key is missing"),
    (task(A, "verify: {tool: x}"), 5, r"milestones\[1\].id: this key is missing"),
    (
        task("id: a, type: fallbak"),
        4,
        'type: "fallbak" is not allowed; allowed: must, optional, fallback; did you .*"fallback"',
    ),
    (task("id: a, verify: {tool: x, status: failed}"), 4, 'status: "failed" is not allowed; allowed: ok, error'),
    (task(A, head="scene: generel"), 2, 'scene: "generel" is not allowed; allowed: customer_service, .*mean "general"'),
    (task(A, head="scene: [1, 2]"), 2, "scene: .*at least 3"),
    (task(A, head="scene: [0, 0, 0]"), 2, "scene: weights are all 0"),
    (task(A, head="order: lax"), 2, "order: .*allowed: strict, any"),
    (task(A, head='k: "15"'), 2, 'k: takes a whole number, not "15"'),
    (task(A, head="k: 1.5"), 2, "k: takes a whole number, not 1.5"),
    (task(A, head="k: true"), 2, "k: takes a whole number, not true"),
    (task(A, head="k: 0"), 2, "k: must be greater than or equal to 1, not 0"),
    (task(A, head="retry_cap: -1"), 2, "retry_cap: must be greater"),
    (task(A, head="slow_factor: 1"), 2, "slow_factor: must be greater than 1"),
    (task(A, head="baselines: {x: 0}"), 2, "baselines.x: must be greater than 0"),
    (task(A, head="optional_bonus: 1.5"), 2, "optional_bonus: must be less than or equal to 1"),
    (task(A, head="no_obstacle: zero"), 2, "no_obstacle: .*allowed: exclude, one"),
    (task(A, head="grounded: sku"), 2, 'grounded: takes a list, not "sku"'),
    (task(A, head="weights: {depth: 1, purity: 1}"), 2, "weights.digestion: this key is missing"),
    (task(A, head="weights: {depth: 0, purity: 0, digestion: 0}"), 2, "weights: weights are all 0"),
    (task(A, head="match: {}"), 2, "match: match is empty; give agent, service, workflow or attributes"),
    (task(A, head="intent: {mentions: []}"), 2, "intent.mentions: .*at least 1"),
    (task(A, head="outcome: {quality_min: 11}"), 2, "outcome.quality_min: must be less than or equal to 10"),
    (task("id: a, used: yes"), 4, 'used: takes true or false, not "yes"'),
    (task("id: [a]"), 4, r"id: takes text \(quote it\), not "),
    (task("id: 5"), 4, r"id: takes text \(quote it\), not 5"),
    (task("id: 'a b'"), 4, 'id: bad name "a b"; a name starts with a letter'),
    (task(A, head="variant: 1.2"), 2, r"variant: takes text \(quote it\), not 1.2"),
    (task(A, head="variant: prompt v2"), 2, "variant: bad variant 'prompt v2'; it takes 1 to 64 letters, .*prompt-v2"),
    (task(A, head="variant: ''"), 2, "variant: bad variant ''"),
    (task(A, head="variant: overflow"), 2, "variant: bad variant 'overflow'.*and not 'overflow'"),
    (task(A, head=f"variant: {'v' * 65}"), 2, "variant: bad variant 'v"),
    (task("id: a, depends_on: b"), 4, "depends_on: takes a list"),
    (task("id: a, depends_on: [{any: []}]"), 4, "any: .*at least 1"),
    ("- a\n- b\n", 1, "a task file is a mapping that has task: NAME; found a list"),
    ("", 1, "found nothing"),
    # matchers and conditions
    (task("id: a, verify: {args: {n: {gt: 3, lt: 5}}}"), 4, "args.n: a path takes exactly one matcher"),
    (task("id: a, verify: {args: {n: {}}}"), 4, "args.n: a path takes exactly one matcher"),
    (task("id: a, verify: {args: {n: {gt: null}}}"), 4, "args.n: null can only be compared with eq or ne"),
    (task("id: a, verify: {args: {n: {gt: [1]}}}"), 4, "args.n.gt: "),
    (task("id: a, verify: {args: {n: {in: 3}}}"), 4, "args.n.in: takes a list, not 3"),
    (task("id: a, verify: {args: {n: {exists: 1}}}"), 4, "args.n.exists: takes true or false, not 1"),
    (
        task("id: a, verify: {args: {n: {matches: '('}}}"),
        4,
        r"args.n.matches: bad regular expression '\(': .*unterminated",
    ),
    (task("id: a, verify: {args: {'a..b': 1}}"), 4, "args.a..b: bad path 'a..b' at character 2"),
    (task("id: a, required: ['a[']"), 4, r"required\[0\]: bad path"),
    (task("id: a, verify: {tool: '[x'}"), 4, r"tool: bad glob '\[x': \[ is never closed"),
    (task("id: a, tools: ['']"), 4, r"tools\[0\]: a name or glob is empty"),
    (task(A, head="grounded: ['[z-a]']"), 2, r"grounded\[0\]: bad glob '\[z-a\]'"),
    (task(A, head="allowed_tools: ['[']"), 2, r"allowed_tools\[0\]: bad glob"),
    (task("id: a, verify: {when: 'result.x >'}"), 4, "when: bad CEL 'result.x >': character 11"),
    (task("id: a, verify: {when: 'reslt.x > 1'}"), 4, 'when: CEL knows no variable "reslt"; .*did you mean "result"'),
    (task("id: a, verify: {python: 'no_such_module_here:f'}"), 4, "python: cannot import no_such_module_here"),
    (task("id: a, verify: {python: 'json:load_'}"), 4, 'python: json has no "load_"; did you mean "loads?"'),
    (task("id: a, verify: {python: 'json'}"), 4, "python: bad Python target 'json'; write it like pkg.mod:function"),
    (task("id: a, verify: {python: 'tests.unit.task.targets:NOT_CALLABLE'}"), 4, "is not callable"),
    (task(A, head="error_when: ['(']"), 2, r"error_when\[0\]: bad regular expression"),
    (task(A, head="delivery: {claims_success: ['[']}"), 2, r"claims_success\[0\]: bad regular expression"),
    (
        task("id: a, verify: {args: {n: {in: []}}}"),
        4,
        "verify: this condition can never hold: args n: nothing passes in",
    ),
    (
        task("id: a, verify: {all: [{tool: x}, {}]}"),
        4,
        r"verify.all\[1\]: empty condition; give one of tool, status, args",
    ),
    (task("id: a, verify: {all: []}"), 4, "verify.all: .*at least 1"),
    (task("id: a, verify: {args: {}}"), 4, "verify.args: .*at least 1"),
    ("task: t\ntraps:\n  - id: a\n    verify: {}\n", 4, "verify: empty condition"),
    ("task: t\ntraps:\n  - id: a\n    verify: {tool: x, all: [{tool: y}]}\n", 4, "this condition can never hold"),
    # the graph
    ("task: t\n", 1, "the graph is empty"),
    (task("id: a, type: optional, verify: {tool: x}"), 3, "no must-milestone and no trap"),
    (task(A, B, "id: a, verify: {tool: z}"), 6, r'milestones\[2\].id: id "a" stands twice'),
    (
        task("id: alpha, verify: {tool: x}", "id: b, depends_on: [alhpa]"),
        5,
        'unknown milestone "alhpa"; allowed: alpha, b; did you mean "alpha"',
    ),
    (task(A, "id: b, depends_on: [{any: [a, c]}]"), 5, r'depends_on\[0\].any\[1\]: unknown milestone "c"'),
    (
        task("id: a, depends_on: [c]", "id: b, depends_on: [a]", "id: c, depends_on: [b]"),
        4,
        "milestones wait for each other: a -> c -> b -> a",
    ),
    (task("id: a, depends_on: [a]"), 4, "milestones wait for each other: a -> a"),
    (task("id: a, covers: b", B), 4, 'covers is for type: fallback; "a" is must'),
    (task(A, "id: b, type: fallback, covers: c"), 5, 'covers: unknown milestone "c"'),
    (task(A, "id: b, type: fallback, covers: b"), 5, 'a fallback covers a must-milestone; "b" is fallback'),
    (task(A, head="delivery: {contains_results_of: [b]}"), 2, 'contains_results_of.*unknown milestone "b"'),
    (
        "task: t\ntraps:\n  - id: a\n    when_not_reached: [x]\n    verify: {tool: y}\n",
        4,
        "allowed: none, as there are no milestones",
    ),
    (task(A, head="layer_weights: [1, 2]"), 2, "layer_weights: 2 weights for 1 layers of must-milestones"),
    (task(A, head="layer_weights: [0]"), 2, r"layer_weights\[0\]: must be greater than 0"),
    (
        task(A, head="{layer_weights: [1]}").replace(
            "{layer_weights: [1]}", "layer_weights: [1]\nlayer_weight_step: 2"
        ),
        3,
        "give layer_weights or layer_weight_step, not both",
    ),
]


@pytest.mark.parametrize(("text", "line", "message"), ERRORS)
def test_every_error_has_its_line_what_is_allowed_and_what_was_meant(text: str, line: int, message: str) -> None:
    found = errors(text)
    assert len(found) == 1, found
    assert found[0][0] == line
    assert re.search(message, found[0][1]), found[0][1]


def test_all_errors_of_a_file_are_told_at_once_by_line() -> None:
    found = errors('task: t\nk: "x"\nmilestones:\n  - id: a\n    typ: must\n  - verify: {tool: 5}\n')
    assert [line for line, _ in found] == [2, 5, 6, 6]


def test_a_task_error_is_a_reach_error_and_a_value_error_and_starts_with_the_place() -> None:
    with pytest.raises(TaskError) as caught:
        load_task_text("task: t\nmilestons: []\n", "x.task.yaml")
    assert isinstance(caught.value, ReachError)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).startswith("x.task.yaml:2: milestons: unknown key")


def test_json_files_have_lines_too() -> None:
    assert errors('{\n  "task": "t",\n  "milestons": []\n}', "t.task.json")[0][0] == 3
    assert load_task_text(json.dumps({"task": "t", "milestones": [{"id": "a"}]}), "t.json").name == "t"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_folders_are_searched_and_tasks_come_by_name(tmp_path: Path) -> None:
    write(tmp_path, "deep/er/z.task.yaml", GOOD.replace("task: t", "task: alpha"))
    write(tmp_path, "a.task.yml", GOOD.replace("task: t", "task: omega"))
    write(tmp_path, "m.task.json", '{"task": "mid", "milestones": [{"id": "a", "verify": {"tool": "x"}}]}')
    write(tmp_path, "notes.yaml", "not: a task")
    tasks = load(tmp_path)
    assert [each.name for each in tasks] == ["alpha", "mid", "omega"]
    assert tasks.by_name["mid"].file == str(tmp_path / "m.task.json")
    assert load([tmp_path, tmp_path / "a.task.yml", str(tmp_path)]) == tasks


def test_a_named_file_may_have_any_name(tmp_path: Path) -> None:
    assert load(str(write(tmp_path, "any.yaml", GOOD)))[0].name == "t"
    assert load(write(tmp_path, "bom.yaml", "\ufeff" + GOOD))[0].name == "t"


def test_no_paths_give_no_tasks() -> None:
    assert len(load([])) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "tiket.task.yaml", 'no such file or folder; did you mean ".*ticket.task.yaml"'),
        (lambda folder: folder / "no" / "where.yaml", "no such file or folder$"),
        (lambda folder: folder / "empty", r"no task file below this folder; it looks for \*.task.yaml, "),
        (lambda folder: folder / "latin.task.yaml", "latin.task.yaml:2: not UTF-8 text"),
        (lambda folder: folder / "large.task.yaml", "larger than 1048576 bytes"),
        (lambda folder: folder / "twice", r'b.task.yaml:1: task "t" is already in .*a.task.yaml:1'),
    ],
)
def test_paths_that_cannot_be_loaded_say_why(tmp_path: Path, make: Any, message: str) -> None:
    write(tmp_path, "ticket.task.yaml", GOOD)
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.task.yaml").write_bytes(b"task: t\n# \xff\n")
    write(tmp_path, "large.task.yaml", "#" * (2 << 20))
    write(tmp_path, "twice/a.task.yaml", GOOD)
    write(tmp_path, "twice/b.task.yaml", GOOD)
    with pytest.raises(TaskError, match=message):
        load(make(tmp_path))


def test_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    write(tmp_path, "a.task.yaml", "task: a\n")
    write(tmp_path, "b.task.yaml", "tsk: b\n")
    with pytest.raises(TaskError) as caught:
        load([tmp_path, tmp_path / "nothing"])
    assert len({problem.file for problem in caught.value.problems}) == 3


# Dumping and loading.

NAMES = st.sampled_from(["a", "b", "c", "tool_1", "x*"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=8) | st.sampled_from(
    [
        "no",
        "on",
        "1e5",
        "0o7",
        ".nan",
        "~",
        "5",
        "2024-01-01",
        "a: b",
        "- x",
        "#c",
        "'",
        '"',
        "<<",
        "=",
        "\u2028",
        "\x85",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
EXPECTATIONS = (
    SCALARS
    | st.lists(SCALARS, max_size=2)
    | st.fixed_dictionaries({"eq": st.dictionaries(TEXTS, SCALARS, max_size=2)})
    | st.fixed_dictionaries({"not_in": st.lists(SCALARS, max_size=2)})
    | st.fixed_dictionaries({"matches": st.sampled_from(["^a$", r"\d+", "(?i)x|y"])})
)
CONDITIONS = st.fixed_dictionaries(
    {"tool": NAMES},
    optional={
        "status": st.sampled_from(["ok", "error"]),
        "args": st.dictionaries(st.sampled_from(["a", "b.c", "d[0]"]), EXPECTATIONS, min_size=1, max_size=2),
        "when": st.sampled_from(["result.x > 1", "text.contains('a')"]),
    },
)
OPTIONS = {
    "description": TEXTS,
    "k": st.integers(1, 99),
    "slow_factor": st.floats(1.5, 99),
    "baselines": st.dictionaries(TEXTS, st.floats(0.001, 9), max_size=2),
    "scene": st.sampled_from(["code", [1.0, 2.0, 3.0]]),
    "grounded": st.lists(NAMES, max_size=2),
    "match": st.fixed_dictionaries({"agent": NAMES, "attributes": st.dictionaries(TEXTS, NAMES, max_size=2)}),
    "error_when": st.lists(st.sampled_from(["^Error", "(?i)failed"]), max_size=2),
}


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    milestones = []
    for number in range(draw(st.integers(1, 4))):
        milestone: dict[str, Any] = {"id": f"m{number}", "verify": draw(CONDITIONS)}
        if number:
            before = st.sampled_from([f"m{n}" for n in range(number)])
            groups = st.lists(
                before | st.fixed_dictionaries({"any": st.lists(before, min_size=1, max_size=2)}), max_size=2
            )
            milestone["depends_on"] = draw(groups)
            milestone["type"] = draw(st.sampled_from(["must", "optional"]))
        milestones.append(milestone)
    return {"task": "t", "milestones": milestones, **draw(st.fixed_dictionaries({}, optional=OPTIONS))}


@given(files())
def test_a_dumped_task_loads_as_the_same_task(file: dict[str, Any]) -> None:
    model = TaskFile.model_validate(file)
    text = dump(model)
    loaded = load_task_text(text)
    assert loaded.model == model
    assert loaded == load_task_text(dump(loaded.model))
    assert load_task_text(json.dumps(file), "t.json") == loaded


def test_a_dump_is_plain_yaml_in_the_files_own_order() -> None:
    text = 'task: t\nmilestones:\n- id: a\n  verify:\n    tool: x\n    args:\n      yes: "5"\n'
    assert dump(load_task_text(text).model) == text.replace("yes:", "'yes':")
