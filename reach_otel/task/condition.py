"""Compile conditions into tests of one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from reach_otel.task.cel import VARIABLES, Expression, compile_expression
from reach_otel.task.glob import is_glob, matcher
from reach_otel.task.matcher import Test, compile_matcher
from reach_otel.task.model import ConditionModel, Matcher
from reach_otel.task.path import MISSING, Path
from reach_otel.task.python import resolve_target

if TYPE_CHECKING:
    from cel import Context

__all__ = ["MISSING", "Call", "CallTimeout", "Condition", "RunView", "View", "call_directly", "expectations", "walk"]


class RunView(Protocol):
    """Show the run so far to CEL and Python conditions."""

    def as_cel(self) -> dict[str, Any]:
        """Give task, agent, actions, reached, held and errors as plain values."""
        ...


class View:
    """Show one step to conditions; build one a step and share it, as CEL values are converted once a view.

    ``args`` and ``result`` are parsed values, ``None`` where content is absent. ``duration`` is in seconds. ``faults``
    collects what went wrong in conditions, one entry each: ``cel``, ``python``, ``python_timeout``, ``condition``.
    """

    __slots__ = (
        "_context",
        "_members",
        "_shown",
        "agent",
        "args",
        "attributes",
        "duration",
        "faults",
        "ok",
        "result",
        "run",
        "text",
        "tool",
    )

    def __init__(
        self,
        *,
        tool: str | None = None,
        ok: bool = True,
        args: Any = None,
        result: Any = None,
        text: str | None = None,
        agent: str | None = None,
        duration: float = 0.0,
        attributes: Mapping[str, Any] | None = None,
        run: RunView | None = None,
    ) -> None:
        self.tool = tool
        self.ok = ok
        self.args = args
        self.result = result
        self.text = text
        self.agent = agent
        self.duration = duration
        self.attributes = attributes
        self.run = run
        self.faults: list[str] = []
        self._context: Context | None = None
        self._shown: dict[str, Any] = {}
        self._members: dict[str, frozenset[str] | None] = {}  # members that the context has; ``None``: all

    def evaluate(self, expression: Expression) -> bool | None:
        """Run a CEL expression; ``None`` where it cannot be told because content is absent or the expression failed.

        A missing key or place is simply not what was asked for, so ``False``; a wrong type is a fault.
        """
        try:
            value = expression.evaluate(self._context_for(expression))
            if value is True or value is False:
                return value
        except (KeyError, IndexError):
            return False
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - the library's panics are no Exception
            if any(self._shown.get(name) is None for name in expression.variables):
                return None
            if expression.lacks(self._shown):
                return False
        self.faults.append("cel")
        return None

    def _context_for(self, expression: Expression) -> Context:
        """Give the shared context what this expression looks at, and no more: a large result is dear to convert."""
        if self._context is None:
            from cel import Context  # noqa: PLC0415 - slow to import: only for tasks that use CEL

            self._context = Context()
        for name in expression.variables:
            if name not in self._shown:
                self._shown[name] = self._value(name)
                self._members[name] = frozenset()
            known, wanted = self._members[name], expression.members.get(name)
            if known is None or (wanted is not None and known and wanted <= known):
                continue
            value = self._shown[name]
            members = known | wanted if wanted is not None and isinstance(value, dict) else None
            if members is not None:
                value = {member: value[member] for member in members if member in value}
            self._members[name] = members
            self._context.add_variable(name, value)
        return self._context

    def _value(self, name: str) -> Any:
        if name == "run" and self.run is not None:
            return self.run.as_cel()
        value = getattr(self, name)
        return dict(value) if name == "attributes" and value is not None else value


class CallTimeout(Exception):
    """Say that a Python condition ran out of time; raised by the ``call`` that :func:`load` is given."""


Call: TypeAlias = Callable[[Callable[[Any, Any], Any], Any, View], Any]
"""Runs ``function(run, view)``; the worker's has a time limit and raises :class:`CallTimeout`."""

Verdict: TypeAlias = "bool | None"
StepTest: TypeAlias = Callable[[View], Verdict]
"""``None``: cannot be told, as content is absent or the condition failed. It is not held, nor is its ``not``."""


def call_directly(function: Callable[[Any, Any], Any], run: Any, view: View) -> Any:
    """Call a Python condition with no time limit."""
    return function(run, view)


class Condition:
    """A compiled condition. Equal models make equal conditions.

    ``tools`` are the names and globs it names outside ``not``; ``mentions`` the parts of a step that it looks at (names
    of :data:`reach_otel.task.cel.VARIABLES`; a Python condition may look at all); ``constants`` its text and number
    literals.
    """

    __slots__ = ("_admits", "_test", "constants", "mentions", "model", "tools")

    def __init__(self, model: ConditionModel, call: Call = call_directly) -> None:
        self.model = model
        self.tools: tuple[str, ...] = tuple(dict.fromkeys(_named_tools(model)))
        self.mentions: frozenset[str] = frozenset(name for part in walk(model) for name in _mentions(part))
        self.constants: tuple[str | int | float, ...] = tuple(
            _distinct(c for part in walk(model) for c in _constants(part))
        )
        self._test = _compile(model, call)
        self._admits = _compile_admits(model)

    def holds(self, view: View) -> bool:
        """Tell whether it is true on this step; never raises, faults are noted on the view."""
        try:
            return self._test(view) is True
        except Exception:  # noqa: BLE001 - e.g. a value of a class that fails when read
            view.faults.append("condition")
            return False

    def admits(self, tool: str | None) -> bool:
        """Tell whether it could hold on a step of this tool (``None``: a step with no tool)."""
        return self._admits(tool)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and self.model == other.model

    def __hash__(self) -> int:
        return hash(self.model.model_dump_json(by_alias=True))

    def __repr__(self) -> str:
        return f"Condition({self.model.model_dump(by_alias=True, exclude_unset=True)!r})"


def walk(model: ConditionModel) -> Iterator[ConditionModel]:
    """Give a condition and all conditions in it."""
    yield model
    for part in (*(model.all or ()), *(model.any or ()), *((model.not_,) if model.not_ else ())):
        yield from walk(part)


def expectations(values: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Give path, operator and operand of each entry of ``args`` or ``result``; a literal asks for ``eq``."""
    for path, expected in values.items():
        if isinstance(expected, Matcher):
            yield path, expected.operator, expected.operand
        else:
            yield path, "eq", expected


def _compile(model: ConditionModel, call: Call) -> StepTest:
    """Make one test of the parts of a condition, cheap ones first."""
    tests: list[StepTest] = []
    if model.tool is not None or model.wanted_status is not None:
        tests.append(_call_test(model.tool, model.wanted_status))
    if model.args is not None:
        tests.append(_args_test(_checks(model.args)))
    if model.result is not None:
        tests.append(_result_test(_checks(model.result)))
    if model.all is not None:
        tests.extend(_compile(part, call) for part in model.all)
    if model.any is not None:
        tests.append(_any_test([_compile(part, call) for part in model.any]))
    if model.not_ is not None:
        tests.append(_not_test(_compile(model.not_, call)))
    if model.when is not None:
        tests.append(_cel_test(compile_expression(model.when)))
    if model.python is not None:
        tests.append(_python_test(resolve_target(model.python), call))
    if not tests:
        return lambda _view: False  # nothing is asked, so nothing can show it
    return tests[0] if len(tests) == 1 else _all_test(tests)


def _call_test(tool: str | None, status: str | None) -> StepTest:
    ok = status == "ok"
    if tool is None:
        return lambda view: view.ok is ok
    if is_glob(tool):
        fits = matcher((tool,))
        return lambda view: view.ok is ok and view.tool is not None and fits(view.tool)
    return lambda view: view.tool == tool and view.ok is ok


Checks: TypeAlias = tuple[tuple[Callable[[Any], Any], Test], ...]


def _checks(values: Mapping[str, Any]) -> Checks:
    return tuple(
        (Path(path).get, compile_matcher(operator, operand)) for path, operator, operand in expectations(values)
    )


def _args_test(checks: Checks) -> StepTest:
    def test(view: View) -> Verdict:
        value = view.args
        if value is None:
            return None
        for get, fits in checks:  # noqa: SIM110 - the hottest loop; a generator costs as much as it does
            if not fits(get(value)):
                return False
        return True

    return test


def _result_test(checks: Checks) -> StepTest:
    def test(view: View) -> Verdict:
        value = view.result
        if value is None:
            return None
        for get, fits in checks:  # noqa: SIM110 - the hottest loop; a generator costs as much as it does
            if not fits(get(value)):
                return False
        return True

    return test


def _all_test(tests: Iterable[StepTest]) -> StepTest:
    parts = tuple(tests)

    def test(view: View) -> Verdict:
        verdict: Verdict = True
        for part in parts:
            told = part(view)
            if told is False:
                return False
            if told is None:
                verdict = None
        return verdict

    return test


def _any_test(tests: Iterable[StepTest]) -> StepTest:
    parts = tuple(tests)

    def test(view: View) -> Verdict:
        verdict: Verdict = False
        for part in parts:
            told = part(view)
            if told is True:
                return True
            if told is None:
                verdict = None
        return verdict

    return test


def _not_test(part: StepTest) -> StepTest:
    def test(view: View) -> Verdict:
        told = part(view)
        return None if told is None else not told

    return test


def _cel_test(expression: Expression) -> StepTest:
    return lambda view: view.evaluate(expression)


def _python_test(function: Callable[[Any, Any], Any], call: Call) -> StepTest:
    def test(view: View) -> Verdict:
        try:
            told = call(function, view.run, view)
        except CallTimeout:
            view.faults.append("python_timeout")
            return None
        except (Exception, SystemExit):  # noqa: BLE001 - it is the user's code
            told = None
        if told is True or told is False:
            return bool(told)
        view.faults.append("python")
        return None

    return test


def _compile_admits(model: ConditionModel) -> Callable[[str | None], bool]:
    """Make a test of the tool's name alone that is never wrongly ``False``."""
    tests: list[Callable[[str | None], bool]] = []
    if model.empty:
        return lambda _tool: False
    if model.tool is not None:
        fits = matcher((model.tool,))
        tests.append(lambda tool: tool is not None and fits(tool))
    if model.all is not None:
        tests.extend(_compile_admits(part) for part in model.all)
    if model.any is not None:
        parts = [_compile_admits(part) for part in model.any]
        tests.append(lambda tool: any(part(tool) for part in parts))
    return lambda tool: all(test(tool) for test in tests)


def _named_tools(model: ConditionModel) -> Iterator[str]:
    if model.tool is not None:
        yield model.tool
    if model.when is not None:
        yield from compile_expression(model.when).tools
    for part in (*(model.all or ()), *(model.any or ())):
        yield from _named_tools(part)


def _mentions(model: ConditionModel) -> Iterable[str]:
    if model.python is not None:
        return VARIABLES
    names = [name for name in ("tool", "args", "result") if getattr(model, name) is not None]
    return names if model.when is None else (*names, *compile_expression(model.when).variables)


def _constants(model: ConditionModel) -> Iterator[str | int | float]:
    for values in (model.args, model.result):
        for _, operator, operand in expectations(values or {}):
            if operator not in ("matches", "exists"):
                yield from _scalars(operand)
    if model.when is not None:
        yield from compile_expression(model.when).constants


def _scalars(value: Any) -> Iterator[str | int | float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield value


def _distinct(values: Iterable[str | int | float]) -> Iterator[str | int | float]:
    seen = set()
    for value in values:
        if value not in seen:
            seen.add(value)
            yield value
