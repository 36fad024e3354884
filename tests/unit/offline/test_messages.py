"""Cutting recorded files into requests."""

from __future__ import annotations

import gzip
import io
import json
import sys
from typing import TYPE_CHECKING

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from reach_otel.errors import InputError
from reach_otel.offline import cut_json, message
from reach_otel.offline.message import Message, Problem
from reach_otel.offline.messages import messages
from reach_otel.offline.sources import sources

if TYPE_CHECKING:
    from pathlib import Path

TRACES = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1"}]}]}]}
LOGS = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "resourceSpans"}}]}]}]}
METRICS: dict[str, object] = {"resourceMetrics": []}


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def traces_request(trace_id: bytes = b"t" * 16, name: str = "chat") -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    scope.scope.name = "s"
    scope.spans.add(trace_id=trace_id, span_id=b"s" * 8, name=name, start_time_unix_nano=1, end_time_unix_nano=2)
    return bytes(request.SerializeToString())


def logs_request() -> bytes:
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add()
    records.resource.attributes.add(key="service.name").value.string_value = "shop"
    records.scope_logs.add().log_records.add(time_unix_nano=5, trace_id=b"t" * 16, span_id=b"s" * 8)
    return bytes(request.SerializeToString())


def metrics_request() -> bytes:
    request = ExportMetricsServiceRequest()
    request.resource_metrics.add().scope_metrics.add().metrics.add(name="requests", description="d")
    return bytes(request.SerializeToString())


def prefixed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def no_problem(problem: Problem) -> None:
    pytest.fail(f"{problem.where}: {problem.what}")


def cut(path: Path) -> tuple[list[Message], list[Problem]]:
    problems: list[Problem] = []
    (source,) = sources([path])
    return list(messages(source, problems.append)), problems


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (line(TRACES) + line(LOGS), [("traces", "json", ":1"), ("logs", "json", ":2")]),
        (b"\n\n" + line(TRACES), [("traces", "json", ":3")]),
        (b"\xef\xbb\xbf" + line(TRACES), [("traces", "json", ":1")]),
        (line(TRACES).rstrip(), [("traces", "json", ":1")]),
        (json.dumps(TRACES, indent=2).encode(), [("traces", "json", ":1")]),
        (
            json.dumps(TRACES, indent=2).encode() + b"\n" + json.dumps(LOGS, indent=2).encode(),
            [("traces", "json", ":1"), ("logs", "json", ":17")],
        ),
        (json.dumps([TRACES, LOGS]).encode(), [("traces", "json", ":1"), ("logs", "json", ":1")]),
        (line(METRICS) + line(LOGS), [("logs", "json", ":2")]),
        (traces_request(), [("traces", "protobuf", "")]),
        (logs_request(), [("logs", "protobuf", "")]),
        (
            prefixed(traces_request(), metrics_request(), logs_request()),
            [("traces", "protobuf", ": message 1"), ("logs", "protobuf", ": message 3")],
        ),
    ],
    ids=[
        "lines", "blank-lines", "byte-order-mark", "no-newline-at-end", "one-document", "two-documents", "list",
        "metrics-are-passed-over", "one-request", "one-logs-request", "messages-behind-lengths",
    ],
)  # fmt: skip
def test_the_form_is_told_by_content(
    tmp_path: Path, pack: object, content: bytes, expected: list[tuple[str, str, str]]
) -> None:
    """The name says nothing: all forms are read from a file with the same name."""
    path = write(tmp_path / "recorded.bin", pack(content))  # type: ignore[operator]
    found, problems = cut(path)
    assert [(m.signal, m.form, m.where.removeprefix(str(path))) for m in found] == expected
    assert problems == []


def test_a_protobuf_request_that_looks_like_json_is_protobuf(tmp_path: Path) -> None:
    r"""A request starts with ``\n`` and its length: with 123 bytes that is ``\n{``, with 32 ``\n `` and so on."""
    for length in range(40, 300):
        name = "n" * length
        found, problems = cut(write(tmp_path / "one", traces_request(name=name)))
        assert [(m.signal, m.form) for m in found] == [("traces", "protobuf")], length
        assert problems == []


def test_a_bad_line_is_reported_with_its_place_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = write(
        tmp_path / "runs.jsonl",
        b'{"resourceSpans": [{"sco\n' + line(TRACES) + line({"a": 1}) + b"garbage\n" + line(LOGS),
    )
    found, problems = cut(path)
    assert [m.where for m in found] == [f"{path}:2", f"{path}:5"]
    assert [p.where for p in problems] == [f"{path}:1", f"{path}:3", f"{path}:4"]
    assert "neither resourceSpans nor resourceLogs" in problems[1].what


def test_a_truncated_message_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.pb", prefixed(traces_request(), traces_request())[:-5])
    found, problems = cut(path)
    assert len(found) == 1
    assert problems[0].where == f"{path}: message 2"
    assert "ends after" in problems[0].what


def test_a_wrong_length_ends_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.pb", prefixed(traces_request()) + b"\xff\xff\xff\xff" + traces_request())
    found, problems = cut(path)
    assert len(found) == 1
    assert "length" in problems[0].what


def test_gzip_cut_short_gives_what_it_holds(tmp_path: Path) -> None:
    body = b"".join(line(TRACES | {"pad": [i, i * 7919 % 1009]}) for i in range(2000))
    path = write(tmp_path / "runs.jsonl.gz", gzip.compress(body)[:-2000])
    found, problems = cut(path)
    assert 0 < len(found) < 2000
    assert "gzip" in problems[-1].what


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_json, "MESSAGE_BYTES_MAX", 1000)
    path = write(tmp_path / "runs.jsonl", line(TRACES) + line(TRACES | {"pad": "x" * 3_000_000}) + line(LOGS))
    found, problems = cut(path)
    assert [m.where for m in found] == [f"{path}:1", f"{path}:3"]
    assert "longer than 1000 bytes" in problems[0].what


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"\n \n", "it is empty"),
        (b"# Readme\n", "neither JSON nor OTLP protobuf"),
        (b"\x28\xb5\x2f\xfd rest", "zstd"),
        (b"\x00\x00\x00\x09\x28\xb5\x2f\xfd rest", "zstd"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"PAR1....", "Parquet"),
        (line({"data": [{"traceID": "1"}]}), "neither resourceSpans nor resourceLogs"),
        (line([{"traceId": "1"}]), "neither resourceSpans nor resourceLogs"),
        (b'{"resourceSpans": [', "not JSON"),
        (b"\n\x0bnot protobuf", "not OTLP protobuf"),
        (gzip.compress(b"hello"), "neither JSON nor OTLP protobuf"),
        (b"\x1f\x8b\x08 broken", "gzip"),
    ],
)
def test_a_file_with_nothing_to_read_is_an_error_that_says_what_was_expected(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = write(tmp_path / "runs", content)
    with pytest.raises(InputError, match="expected OTLP traces or logs") as error:
        cut(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)


def test_a_folder_gives_all_that_is_otlp_and_passes_over_the_rest(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "b.jsonl", line(TRACES))
    write(tmp_path / "a.pb", traces_request())
    write(tmp_path / "README.md", b"# hello\n")
    write(tmp_path / ".hidden", line(TRACES))
    problems: list[Problem] = []
    found = [m.where for source in sources([tmp_path]) for m in messages(source, problems.append)]
    assert found == [str(tmp_path / "a.pb"), f"{tmp_path / 'deep' / 'b.jsonl'}:1"]
    assert [p.where for p in problems] == [str(tmp_path / "README.md")]
    assert "passed over" in problems[0].what


def test_paths_that_are_not_there_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        sources([tmp_path / "nothing"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no file"):
        sources([tmp_path / "empty"])


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(line(TRACES)))))
    (source,) = sources(["-"])
    assert [m.where for m in messages(source, no_problem)] == ["<stdin>:1"]
    assert not sys.stdin.closed


def test_bytes_read_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.jsonl", line(TRACES) * 5000)
    (source,) = sources([path])
    told: list[int] = []
    assert len(list(messages(source, no_problem, told.append))) == 5000
    assert sum(told) == path.stat().st_size == source.size
    assert len(told) > 2


def test_limits_are_above_what_exporters_write() -> None:
    assert message.MESSAGE_BYTES_MAX >= 16 << 20
    assert message.DOCUMENT_BYTES_MAX >= message.MESSAGE_BYTES_MAX
