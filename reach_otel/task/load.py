"""Load task files: read, check, compile, and say everything that is wrong at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from reach_otel.errors import Problem, TaskError
from reach_otel.task.checks import errors
from reach_otel.task.condition import Call, call_directly
from reach_otel.task.messages import place_name, problems
from reach_otel.task.model import TaskFile
from reach_otel.task.source import BYTES_MAX, Source, read_source
from reach_otel.task.task import Task, Tasks, compile_task

SUFFIXES = (".task.yaml", ".task.yml", ".task.json")

AnyPath: TypeAlias = str | Path


def load(paths: AnyPath | Iterable[AnyPath], *, call: Call = call_directly) -> Tasks:
    """Load files, and folders with all ``*.task.yaml``, ``.yml`` and ``.json`` below them, by task name.

    ``call`` runs Python conditions. A file named twice is loaded once. Raises :class:`TaskError` with all problems of
    all files: a path that is not there, a folder without tasks, a file that is wrong, two files with one task name.

    A Python condition imports the module it names: load only files you would run.
    """
    tasks, found = load_what_can_be(paths, call=call)
    if found:
        raise TaskError(*found)
    return tasks


def load_what_can_be(
    paths: AnyPath | Iterable[AnyPath], *, call: Call = call_directly
) -> tuple[Tasks, tuple[Problem, ...]]:
    """Load as :func:`load` does, and give the problems beside the tasks that have none."""
    loaded: dict[str, Task] = {}
    found: list[Problem] = []
    for file in _files([paths] if isinstance(paths, (str, Path)) else paths, found):
        try:
            task = load_task_text(_read(file), str(file), call=call)
        except TaskError as error:
            found.extend(error.problems)
            continue
        other = loaded.setdefault(task.name, task)
        if other is not task:
            found.append(Problem(str(file), task.line, f'task "{task.name}" is already in {other.file}:{other.line}'))
    return Tasks(loaded.values()), tuple(found)


def load_task_text(text: str, name: str = "<string>", *, call: Call = call_directly) -> Task:
    """Load one task from YAML text, or from JSON text where ``name`` ends in ``.json``; raises :class:`TaskError`."""
    source = read_source(text, name)
    model = _validate(source)
    found = [
        Problem(
            name,
            source.line_of(where) if where else 1,
            f"{place_name(where)}: {message}" if where else message,
        )
        for where, message in errors(model)
    ]
    if found:
        raise TaskError(*sorted(found, key=lambda problem: problem.line))
    return compile_task(model, file=name, line_of=source.line_of, call=call)


def _validate(source: Source) -> TaskFile:
    if not isinstance(source.value, dict):
        found = "nothing" if source.value is None else f"a {type(source.value).__name__}"
        raise TaskError(Problem(source.file, 1, f"a task file is a mapping that has task: NAME; found {found}"))
    try:
        return TaskFile.model_validate(source.value)
    except ValidationError as error:
        raise TaskError(*problems(error, source)) from None


def _files(paths: Iterable[AnyPath], found: list[Problem]) -> Iterator[Path]:
    """Give each file once, in a fixed order; note paths that lead to none."""
    seen: set[Path] = set()
    for given in paths:
        path = Path(given)
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and file.is_file())
            if not files:
                found.append(
                    Problem(str(path), 0, f"no task file below this folder; it looks for *{', *'.join(SUFFIXES)}")
                )
        elif path.is_file():
            files = [path]
        else:
            files = []
            found.append(Problem(str(path), 0, f"no such file or folder{_nearby(path)}"))
        for file in files:
            resolved = file.resolve()
            if resolved not in seen:
                seen.add(resolved)
                yield file


def _nearby(path: Path) -> str:
    """Offer the nearest name in the same folder."""
    try:
        near = get_close_matches(path.name, [each.name for each in path.parent.iterdir()], n=1)
    except OSError:
        return ""
    return f'; did you mean "{path.parent / near[0]}"?' if near else ""


def _read(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            data = stream.read(BYTES_MAX + 1)
    except OSError as error:
        raise TaskError(Problem(str(file), 0, f"cannot be read: {error.strerror or error}")) from None
    if len(data) > BYTES_MAX:
        raise TaskError(Problem(str(file), 0, f"larger than {BYTES_MAX} bytes, the most a task file may have"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TaskError(Problem(str(file), line, "not UTF-8 text")) from None
