"""The API shows what the engine and the history know, in the shapes that it documents, and refuses what it must."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from reach_otel.service import api_models, task_models
from reach_otel.service.entries import without_content
from reach_otel.service.history import FEEDBACK_A_RUN_MAX
from reach_otel.task import load_task_text
from reach_otel.task.task import Tasks
from tests.support.engines import Driver
from tests.support.stand import Stand, full_run, standing, ticket_run, ticket_tasks
from tests.support.steps import Steps, trace_id

RUN = trace_id(1)


def on_stand(folder: Path, test: Callable[[Stand], Awaitable[None]], **options: Any) -> None:
    """Run a test against a stand of its own."""

    async def whole() -> None:
        async with standing(folder, **options) as stand:
            await test(stand)

    asyncio.run(asyncio.wait_for(whole(), 60))


def fits(model: type[BaseModel], value: Any) -> None:
    """Hold that a value has exactly the documented shape: no field more, none less, none of another type."""
    read = model.model_validate_json(json.dumps(value), strict=True)
    assert read.model_dump(mode="json", by_alias=True) == value


# Runs.


def test_a_run_is_shown_open_and_then_with_its_verdict(tmp_path: Path) -> None:
    """The same run is listed once, first as running, then with its outcome, from memory and from the database."""

    async def test(stand: Stand) -> None:
        steps = ticket_run(1)
        stand.feed(steps[1:])
        listed = await stand.client.json("/api/runs")
        fits(api_models.RunsPage, listed)
        assert [(run["run"], run["outcome"], run["final"]) for run in listed["runs"]] == [(RUN, "running", False)]
        shown = await stand.client.json(f"/api/runs/{RUN}")
        fits(api_models.Run, shown)
        assert (shown["outcome"], len(shown["steps"])) == ("running", 3)
        stand.finish(steps[:1])
        for _ in range(2):
            listed = await stand.client.json("/api/runs")
            fits(api_models.RunsPage, listed)
            (run,) = listed["runs"]
            assert (run["outcome"], run["final"], run["last_tool"], run["actions"]) == (
                "partial",
                True,
                "check_inventory",
                3,
            )
            assert run["findings"] == ["unused"]
            fits(api_models.Run, await stand.client.json(f"/api/runs/{RUN}"))
            stand.forget_lately()

    on_stand(tmp_path, test)


def test_the_record_of_a_run_is_the_engines_field_by_field(tmp_path: Path) -> None:
    """Closing, from memory and from the database: the record equals what the engine alone makes of the same steps."""
    driver = Driver(ticket_tasks())
    driver.feed([*full_run(1), *ticket_run(2)])
    want = json.loads(msgspec.json.encode(driver.close()))

    async def test(stand: Stand) -> None:
        stand.finish([*full_run(1), *ticket_run(2)])
        for _ in range(2):
            for run, record in want.items():
                shown = await stand.client.json(f"/api/runs/{run}")
                steps = [without_content(one) for one in record["steps"]]
                assert {key: shown[key] for key in record} == {**record, "steps": steps}
            stand.forget_lately()

    on_stand(tmp_path, test)


def test_a_run_says_why(tmp_path: Path) -> None:
    """Each milestone, level and obstacle of the record has its sentence, and the trace its address."""

    async def test(stand: Stand) -> None:
        stand.finish(ticket_run(1))
        shown = await stand.client.json(f"/api/runs/{RUN}")
        assert list(shown["why"]) == [milestone["id"] for milestone in shown["milestones"]]
        assert list(shown["why_levels"]) == list(shown["levels"])
        assert len(shown["why_obstacles"]) == len(shown["obstacles"]) == 1
        assert shown["why"]["stock"] == "Tried once with check_inventory, and every call failed."
        assert shown["why_outcome"] == "1 of 5 must-milestones were reached."
        assert shown["trace_url"] == f"http://traces.example/trace/{RUN}?tab=1"

    on_stand(tmp_path, test, trace_url="http://traces.example/trace/{trace_id}?tab=1")


SECRETS = ("T-1", "C-9", "Annabel", "boom", "stays open")


@pytest.mark.parametrize("show_content", [False, True])
def test_content_leaves_only_when_it_may(tmp_path: Path, show_content: bool) -> None:
    """No argument, result, error text or output is in any answer unless the setting says so."""

    async def test(stand: Stand) -> None:
        stand.feed(ticket_run(2, ended=False))
        stand.finish(ticket_run(1))
        for _ in range(2):
            for run in (1, 2):
                answer = await stand.client.get(f"/api/runs/{trace_id(run)}")
                assert answer.json()["content_shown"] is show_content
                for secret in SECRETS[:4]:
                    assert (secret in answer.body.decode()) is show_content
            for target in ("/api/runs", "/api/tasks", "/api/system", "/api/tasks/ticket-handling/summary"):
                answer = await stand.client.get(target)
                assert not any(secret in answer.body.decode() for secret in SECRETS)
            stand.forget_lately()

    on_stand(tmp_path, test, show_content=show_content)


def test_what_was_kept_with_content_is_shown_without(tmp_path: Path) -> None:
    """When the setting is turned off, content that is in the database already does not leave either."""

    async def keep(stand: Stand) -> None:
        stand.finish(ticket_run(1))

    async def show(stand: Stand) -> None:
        answer = await stand.client.get(f"/api/runs/{RUN}")
        assert answer.status == 200
        assert not any(secret in answer.body.decode() for secret in SECRETS)

    on_stand(tmp_path, keep, show_content=True)
    on_stand(tmp_path, show)


def test_pages_follow_each_other(tmp_path: Path) -> None:
    """Open and finished runs come latest start first, and the cursor of each page leads to the next."""

    async def test(stand: Stand) -> None:
        stand.finish([step for n in range(1, 8) for step in ticket_run(n, start=10 * n)])
        stand.feed([step for n in range(8, 12) for step in ticket_run(n, start=10 * n, ended=False)])
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = await stand.client.json("/api/runs", limit=3, **cursor)
            seen += [run["run"] for run in page["runs"]]
            if page["next"] is None:
                break
            stand.forget_lately()
            stand.feed(ticket_run(100 + len(seen), start=5_000 + len(seen), ended=False))
            cursor = {"cursor": page["next"]}
        assert seen == [trace_id(n) for n in range(11, 0, -1)]

    on_stand(tmp_path, test)


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ({}, {1, 2, 3, 4}),
        ({"task": "ticket-handling"}, {1, 2, 3}),
        ({"task": "unmatched"}, {4}),
        ({"agent": "ticket-agent"}, {1, 2, 3}),
        ({"variant": "blue"}, {2}),
        ({"outcome": "success"}, {1, 4}),
        ({"outcome": "running"}, {3}),
        ({"finding": "unused"}, {2}),
        ({"min": 0.9}, {1}),
        ({"score": "purity", "max": 0.9}, set()),
        ({"score": "high_layer", "max": 0.4}, {2, 3}),
        ({"live": "true"}, {3}),
        ({"live": "false", "task": "ticket-handling"}, {1, 2}),
        ({"trace": trace_id(2)}, {2}),
        ({"since": "2026-11-30T08:00:05Z"}, {3}),
        ({"until": "2026-11-30T08:00:00.015Z"}, {1, 4}),
        ({"until": "1e300", "since": "0"}, {1, 2, 3, 4}),
        ({"since": 1796025605, "until": "2026-11-30T09:00:00+00:00"}, {3}),
    ],
)
def test_runs_are_filtered(tmp_path: Path, query: dict[str, Any], runs: set[int]) -> None:
    """Each filter finds the runs it is about, open or finished."""

    async def test(stand: Stand) -> None:
        stand.finish(full_run(1))
        stand.finish(ticket_run(2, start=2, variant="blue"))
        stray = Steps(4)
        stray.tool("dance", 1, 2, parent=stray.agent("somebody-else", 0, 9).span_id)
        stand.finish(stray.made)
        stand.feed(ticket_run(3, start=1_000, ended=False))
        found = await stand.client.json("/api/runs", **query)
        assert {run["run"] for run in found["runs"]} == {trace_id(n) for n in runs}

    on_stand(tmp_path, test)


def test_a_run_whose_id_is_any_text_is_found(tmp_path: Path) -> None:
    """Ids with slashes, blanks and other letters work in an address, as conversations are named by anything."""
    name = "chat/7 mit Ümläut?&#"

    async def test(stand: Stand) -> None:
        steps = ticket_run(1)
        stand.feed([msgspec.structs.replace(step, run_id=name) for step in steps[1:]])
        shown = await stand.client.json("/api/runs/chat%2F7%20mit%20%C3%9Cml%C3%A4ut%3F%26%23")
        assert shown["run"] == name
        assert (await stand.client.json("/api/runs"))["runs"][0]["run"] == name

    on_stand(tmp_path, test)


# Tasks and the service.


def test_tasks_are_shown_as_declared(tmp_path: Path) -> None:
    """Milestones with what they wait for, by name; critical edges from the start on."""

    async def test(stand: Stand) -> None:
        found = await stand.client.json("/api/tasks")
        fits(task_models.Tasks, found)
        (task,) = found["tasks"]
        update = next(one for one in task["milestones"] if one["id"] == "update")
        assert update["depends_on"] == [["suggestion", "escalate"]]
        assert task["critical_edges"][0] == [None, "read"]

    on_stand(tmp_path, test)


def test_a_task_is_summed_up_over_a_window(tmp_path: Path) -> None:
    """The numbers are those of the runs that ended within the window; open ones do not count."""

    async def test(stand: Stand) -> None:
        stand.finish([*full_run(1), *ticket_run(2, variant="blue"), *full_run(3)])
        stand.feed(ticket_run(4, ended=False))
        found = await stand.client.json("/api/tasks/ticket-handling/summary")
        fits(task_models.TaskSummary, found)
        assert (found["runs"], found["window_seconds"], found["outcomes"]) == (3, 900, {"partial": 1, "success": 2})
        assert found["high_layer"] == {"expected": 6, "reached": 4, "ratio": 4 / 6}
        one = await stand.client.json("/api/tasks/ticket-handling/summary", window=60, variant="blue")
        assert (one["runs"], one["high_risk"]) == (1, True)
        none = await stand.client.json("/api/tasks/unmatched/summary")
        fits(task_models.TaskSummary, none)
        assert none["runs"] == 0

    on_stand(tmp_path, test)


def test_a_task_with_a_slash_in_its_name_has_a_summary(tmp_path: Path) -> None:
    """Names of tasks may hold what addresses hold too."""
    tasks = Tasks([load_task_text("{task: team/a, milestones: [{id: one, verify: {tool: t}}]}")])

    async def test(stand: Stand) -> None:
        for target in ("/api/tasks/team/a/summary", "/api/tasks/team%2Fa/summary"):
            assert (await stand.client.json(target))["task"] == "team/a"

    on_stand(tmp_path, test, tasks=tasks)


def test_the_service_shows_itself(tmp_path: Path) -> None:
    """Open runs, verdicts, spans, timeouts and what the journal says of itself are there."""

    async def test(stand: Stand) -> None:
        stand.feed(ticket_run(1, ended=False))
        late = Steps(2)
        root = late.agent("ticket-agent", 0, 9, output="no")
        late.tool("read_ticket", 1, 2, parent=root.span_id, args={}, error="request timed out")
        stand.finish(late.made)
        found = await stand.client.json("/api/system")
        fits(task_models.System, found)
        assert (found["runs"]["active"], found["runs"]["finished"]) == (1, 1)
        assert found["verdicts"] == {"total": 1, "by_outcome": {"failed": 1}}
        assert (found["spans"]["received"], found["timeouts"]["tool"]) == (5, 1)
        assert found["spans"]["per_second"] > 0
        assert found["journal"] == {"ready": True}

    on_stand(tmp_path, test, journal=lambda: {"ready": True})


# What is refused.


@pytest.mark.parametrize(
    ("target", "at", "words"),
    [
        ("/api/runs?limt=5", "query.limt", "did you mean limit?"),
        ("/api/runs?limit=0", "query.limit", "greater than or equal to 1"),
        ("/api/runs?limit=201", "query.limit", "less than or equal to 200"),
        ("/api/runs?limit=5&limit=6", "query.limit", "twice"),
        ("/api/runs?outcome=won", "query.outcome", "'success', 'partial'"),
        ("/api/runs?finding=lop", "query.finding", "allowed are fabricated"),
        ("/api/runs?score=luck", "query.score", "'depth', 'purity'"),
        ("/api/runs?min=nan", "query.min", ""),
        ("/api/runs?min=0.8&max=0.2", "query.min", "more than max"),
        ("/api/runs?since=yesterday", "query.since", "2026-11-30T08:00:00Z"),
        ("/api/runs?since=2026-11-30", "query.since", "2026-11-30T08:00:00Z"),
        ("/api/runs?until=2026-11-30T08:00:00", "query.until", "since 1970"),
        ("/api/runs?until=-5", "query.until", "since 1970"),
        ("/api/runs?until=nan", "query.until", "since 1970"),
        ("/api/runs?live=maybe", "query.live", ""),
        ("/api/runs?cursor=abc", "query.cursor", "unchanged"),
        ("/api/runs?cursor=", "query.cursor", "unchanged"),
        ("/api/tasks?x", "query.x", "none is allowed"),
        ("/api/tasks/ticket-handling/summary?window=0", "query.window", "greater than"),
        ("/api/tasks/ticket-handling/summary?windw=5", "query.windw", "did you mean window?"),
        ("/api/system?a=1", "query.a", "none is allowed"),
        ("/api/events?a=1", "query.a", "none is allowed"),
        (f"/api/runs/{RUN}?steps=1", "query.steps", "none is allowed"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_allowed(tmp_path: Path, target: str, at: str, words: str) -> None:
    """Nothing is guessed or ignored: 422, where, and what would be right."""

    async def test(stand: Stand) -> None:
        answer = await stand.client.get(target)
        assert answer.status == 422
        api_models.Problem.model_validate_json(answer.body)
        (fault,) = answer.json()["errors"]
        assert fault["at"] == at
        assert words in fault["message"]

    on_stand(tmp_path, test)


@pytest.mark.parametrize(
    "target", ["/api/runs/none", "/api/runs/", "/api/runs/%00", "/api/runs/%ff", "/api/tasks/none/summary", "/api/none"]
)
def test_what_is_not_there_is_a_404(tmp_path: Path, target: str) -> None:
    """An unknown run, task or address says so."""

    async def test(stand: Stand) -> None:
        answer = await stand.client.get(target)
        assert answer.status == 404
        assert answer.json()["detail"]

    on_stand(tmp_path, test)


def test_nobody_stores_an_answer_and_a_known_one_is_not_sent_again(tmp_path: Path) -> None:
    """Every answer is ``no-store``; with its ``ETag`` the same question gets 304 until something changes."""

    async def test(stand: Stand) -> None:
        stand.finish(ticket_run(1))
        for target in ("/api/runs", f"/api/runs/{RUN}", "/api/tasks"):
            first = await stand.client.get(target)
            tag = first.headers["etag"]
            assert first.headers["cache-control"] == "no-store"
            for known in (tag, f'"other", W/{tag}', "*"):
                again = await stand.client.get(target, {"If-None-Match": known})
                assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
            assert (await stand.client.get(target, {"If-None-Match": '"other"'})).status == 200
        before = (await stand.client.get("/api/runs")).headers["etag"]
        stand.feed(ticket_run(2, ended=False))
        assert (await stand.client.get("/api/runs", {"If-None-Match": before})).status == 200
        for target in ("/api/runs/none", "/api/runs?x=1"):
            assert (await stand.client.get(target)).headers["cache-control"] == "no-store"

    on_stand(tmp_path, test)


def test_a_database_that_cannot_be_read_is_a_503_and_open_runs_are_shown(tmp_path: Path) -> None:
    """What needs the history says to try again; open runs, tasks and the service's own health need it not."""

    async def test(stand: Stand) -> None:
        stand.feed(ticket_run(1, ended=False))
        stand.reader._uri = "file:/nowhere/at/all?mode=ro"
        for target in ("/api/runs", "/api/runs/other", "/api/tasks/ticket-handling/summary"):
            answer = await stand.client.get(target)
            assert answer.status == 503, target
            assert int(answer.headers["retry-after"]) > 0
        assert len((await stand.client.json("/api/runs", live="true"))["runs"]) == 1
        shown = await stand.client.json(f"/api/runs/{RUN}")
        fits(api_models.Run, shown)
        assert shown["feedback"] is None
        system = await stand.client.json("/api/system")
        fits(task_models.System, system)
        assert (system["runs"]["active"], system["runs"]["finished"]) == (1, None)
        await stand.client.json("/api/tasks")

    on_stand(tmp_path, test)


def test_a_verdict_is_shown_while_it_is_on_its_way_to_the_database(tmp_path: Path) -> None:
    """While the database is locked a run that has ended is neither lost nor running."""

    async def test(stand: Stand) -> None:
        locker = sqlite3.connect(stand.path, isolation_level=None, check_same_thread=False)
        locker.execute("BEGIN IMMEDIATE")
        try:
            stand.feed(ticket_run(1))
            await asyncio.to_thread(stand.wait_for_verdict, RUN)
            for _ in range(3):
                (run,) = (await stand.client.json("/api/runs"))["runs"]
                assert run["outcome"] == "partial"
                assert (await stand.client.json(f"/api/runs/{RUN}"))["final"] is True
        finally:
            locker.execute("ROLLBACK")
            locker.close()

    on_stand(tmp_path, test)


# Feedback.


def test_feedback_is_kept_with_the_run(tmp_path: Path) -> None:
    """A correction is shown with its run and counts in the summary, also where the run was named by its trace."""

    async def test(stand: Stand) -> None:
        stand.finish(ticket_run(1))
        said = {
            "run": RUN,
            "id": "a",
            "quality": 7,
            "correct": False,
            "milestones": {"stock": "reached"},
            "author": "Ann",
        }
        answer = await stand.client.post("/v1/feedback", said)
        assert (answer.status, answer.json()) == (201, {"id": "a", "run": RUN, "new": True})
        fits(api_models.Received, answer.json())
        again = await stand.client.post("/v1/feedback", said)
        assert (again.status, again.json()["new"]) == (200, False)
        for _ in range(2):
            by_trace = await stand.client.post("/v1/feedback", {"trace_id": RUN.upper(), "comment": "well done"})
            assert by_trace.status == 201
            stand.forget_lately()
        shown = await stand.client.json(f"/api/runs/{RUN}")
        fits(api_models.Run, shown)
        assert [one["comment"] for one in shown["feedback"]] == [None, "well done", "well done"]
        assert shown["feedback"][0] | {"received": ""} == {
            "id": "a",
            "received": "",
            "quality": 7.0,
            "correct": False,
            "outcome": None,
            "milestones": {"stock": "reached"},
            "comment": None,
            "author": "Ann",
        }
        summed = await stand.client.json("/api/tasks/ticket-handling/summary")
        assert summed["feedback"] == {"entries": 3, "quality": 7.0, "agreed": 0, "disagreed": 1}

    on_stand(tmp_path, test)


def test_feedback_on_a_run_that_goes_on_is_there_when_it_ends(tmp_path: Path) -> None:
    """It is attached by the run's id, before and after the verdict."""

    async def test(stand: Stand) -> None:
        steps = ticket_run(1)
        stand.feed(steps[1:])
        assert (await stand.client.post("/v1/feedback", {"run": RUN, "quality": 3})).status == 201
        assert len((await stand.client.json(f"/api/runs/{RUN}"))["feedback"]) == 1
        stand.finish(steps[:1])
        stand.forget_lately()
        assert len((await stand.client.json(f"/api/runs/{RUN}"))["feedback"]) == 1

    on_stand(tmp_path, test)


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        ({"run": "none", "quality": 5}, 404, "no run of this id"),
        ({"trace_id": "f" * 32, "quality": 5}, 404, "no run of this id"),
        ({"run": RUN}, 422, "say something"),
        ({"quality": 5}, 422, "either run or trace_id"),
        ({"run": RUN, "trace_id": RUN, "quality": 5}, 422, "either run or trace_id"),
        ({"trace_id": "xyz", "quality": 5}, 422, "body.trace_id"),
        ({"run": RUN, "quality": 11}, 422, "less than or equal to 10"),
        ({"run": RUN, "quality": -1}, 422, "greater than or equal to 0"),
        ({"run": RUN, "quality": 5, "correct": "yes"}, 422, "body.correct"),
        ({"run": RUN, "outcome": "running"}, 422, "body.outcome"),
        ({"run": RUN, "milestones": {"stok": "reached"}}, 422, "allowed are read, customer"),
        ({"run": RUN, "milestones": {"stock": "won"}}, 422, "body.milestones.stock"),
        ({"run": RUN, "milestones": {}}, 422, "body.milestones"),
        ({"run": RUN, "comment": "x" * 4_001}, 422, "body.comment"),
        ({"run": RUN, "quality": 5, "id": ""}, 422, "body.id"),
        ({"run": RUN, "quality": 5, "colour": "red"}, 422, "body.colour"),
        ({"run": "x" * 1_001, "quality": 5}, 422, "body.run"),
        ([], 422, "body"),
        (b'{"run": "x", "quality": NaN}', 422, "body.quality"),
        (b'{"run": "\\ud800", "quality": 1}', 422, "body.run"),
        (b'{"\\ud800": 1}', 422, "body"),
        (b"{", 400, "body"),
        (b"\xff", 400, ""),
        (b"[" * 100_000, 400, ""),
        (b"", 422, "body"),
    ],
)
def test_feedback_that_makes_no_sense_is_refused(tmp_path: Path, said: Any, status: int, words: str) -> None:
    """Each mistake has its answer, and nothing is kept."""

    async def test(stand: Stand) -> None:
        stand.finish(ticket_run(1))
        answer = await stand.client.post("/v1/feedback", said)
        assert answer.status == status, answer.body
        api_models.Problem.model_validate_json(answer.body)
        assert words in answer.json()["detail"]
        assert (await stand.client.json(f"/api/runs/{RUN}"))["feedback"] == []

    on_stand(tmp_path, test)


def test_feedback_that_contradicts_is_a_409(tmp_path: Path) -> None:
    """One id for two sayings, too much on one run, and a trace that holds several runs."""

    async def test(stand: Stand) -> None:
        stand.finish(ticket_run(1))
        assert (await stand.client.post("/v1/feedback", {"run": RUN, "id": "a", "quality": 1})).status == 201
        answer = await stand.client.post("/v1/feedback", {"run": RUN, "id": "a", "quality": 2})
        assert (answer.status, "other feedback" in answer.json()["detail"]) == (409, True)
        steps = ticket_run(2)[1:]
        for name in ("one", "two"):
            stand.feed([msgspec.structs.replace(step, run_id=name) for step in steps])
        answer = await stand.client.post("/v1/feedback", {"trace_id": trace_id(2), "quality": 2})
        assert (answer.status, "several runs" in answer.json()["detail"]) == (409, True)
        for n in range(FEEDBACK_A_RUN_MAX - 1):
            assert (await stand.client.post("/v1/feedback", {"run": RUN, "id": f"b{n}", "quality": 1})).status == 201
        answer = await stand.client.post("/v1/feedback", {"run": RUN, "quality": 2})
        assert (answer.status, "too much" in answer.json()["detail"]) == (409, True)

    on_stand(tmp_path, test)


def test_feedback_that_cannot_be_written_is_a_503(tmp_path: Path) -> None:
    """While another process holds the database the sender is told to come again."""

    async def test(stand: Stand) -> None:
        stand.finish(ticket_run(1))
        locker = sqlite3.connect(stand.path, isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        answer = await stand.client.post("/v1/feedback", {"run": RUN, "quality": 2})
        assert (answer.status, int(answer.headers["retry-after"]) > 0) == (503, True)
        locker.execute("ROLLBACK")
        locker.close()
        assert (await stand.client.post("/v1/feedback", {"run": RUN, "quality": 2})).status == 201

    on_stand(tmp_path, test)


# Events.


def test_events_follow_a_run_to_its_end(tmp_path: Path) -> None:
    """Over the stream a run appears, changes and ends, in the shape of the lists."""

    async def test(stand: Stand) -> None:
        exchange = stand.client.open("/api/events")
        start = await exchange.next()
        assert start["status"] == 200
        steps = ticket_run(1)
        text = b""
        for part, event in ((steps[1:2], "run"), (steps[2:], "run"), (steps[:1], "closed")):
            text = b""
            stand.feed(part)
            while f"event: {event}\n".encode() not in text:
                text += (await exchange.next())["body"]
            data = [line[6:] for line in text.decode().split("\n") if line.startswith("data: ")][-1]
            fits(api_models.RunSummary, json.loads(data))
        assert json.loads(data)["outcome"] == "partial"
        exchange.hang_up()
        await asyncio.wait_for(exchange.running, 5)

    on_stand(tmp_path, test)


def test_more_listeners_than_may_be_are_told_to_come_later(tmp_path: Path) -> None:
    """The limit is a 503 with the time to wait."""

    async def test(stand: Stand) -> None:
        exchange = stand.client.open("/api/events")
        await exchange.next()
        answer = await stand.client.get("/api/events")
        assert (answer.status, int(answer.headers["retry-after"]) > 0) == (503, True)
        exchange.hang_up()
        await asyncio.wait_for(exchange.running, 5)

    on_stand(tmp_path, test, clients_max=1)


# OpenAPI.


def test_every_answer_is_documented(tmp_path: Path) -> None:
    """The document names each route with its errors, examples and a schema for every JSON answer."""

    async def test(stand: Stand) -> None:
        document = await stand.client.json("/openapi.json")
        assert set(document["paths"]) == {
            *("/api/runs /api/runs/{run_id} /api/tasks /api/tasks/{name}/summary /api/system /api/events").split(),
            "/v1/feedback",
        }
        for path, methods in document["paths"].items():
            for operation in methods.values():
                answers = operation["responses"]
                assert {"401", "422"} <= set(answers)
                assert operation["summary"]
                for status, answer in answers.items():
                    if status != "304" and path != "/api/events":
                        assert answer["content"]["application/json"]["schema"]
        assert "HTTPValidationError" not in document["components"]["schemas"]
        assert document["components"]["schemas"]["RunSummary"]["examples"]

    on_stand(tmp_path, test)
