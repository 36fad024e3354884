"""Cut recorded files into single OTLP requests, whatever form they were written in.

Forms, told apart by content and never by name; each may be gzipped:

- JSON lines, one request a line (the Collector's file exporter, SDK file exporters);
- one JSON document over many lines: a request, several one after another, or a list of them;
- protobuf messages, each behind its length in 4 bytes, high byte first (the file exporter with ``format: proto``);
- one protobuf request and nothing else (the body of one HTTP export).
"""

from __future__ import annotations

import gzip
import re
import zlib
from typing import TYPE_CHECKING, Any

from reach_otel.errors import InputError
from reach_otel.offline.cut_json import cut_json
from reach_otel.offline.cut_protobuf import cut_prefixed, cut_request
from reach_otel.offline.message import EXPECTED, MESSAGE_BYTES_MAX, Advance, Message, Problem, Report
from reach_otel.offline.sources import Counted, Source, look, open_raw

if TYPE_CHECKING:
    from collections.abc import Iterator

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BOM = b"\xef\xbb\xbf"
# A protobuf request starts with "\n" and a length, which may well be the code of "{": so look one token further.
_JSON_START = re.compile(rb'\s*(?:\{\s*(?:"[A-Za-z]|\})|\[\s*(?:\{|\]))')
_REQUEST_TAG = b"\n"  # field 1, length-delimited: resource_spans and resource_logs alike
_PROBLEMS_FIRST_MAX = 10_000


def messages(source: Source, report: Report, advance: Advance | None = None) -> Iterator[Message]:
    """Yield the requests of one input in the order in which they stand, and report each piece that is none.

    ``advance`` is told the bytes read from the input since it was last called (compressed bytes of a gzipped one).
    A listed input with not one request in it raises :class:`InputError`; one found in a folder is passed over and
    reported.
    """
    found = False
    held: list[Problem] = []  # not reported yet: if nothing good follows, the input as a whole is the problem
    for item in _cut(source, advance):
        if isinstance(item, Message):
            if not found:
                found = True
                for problem in held:
                    report(problem)
            yield item
        elif found:
            report(item)
        elif len(held) < _PROBLEMS_FIRST_MAX:
            held.append(item)
        else:
            break
    if not found:
        where, what = (held[0].where, held[0].what) if held else (source.name, "it is empty")
        if source.listed:
            raise InputError(f"{where}: {what}; {EXPECTED}")
        report(Problem(where, f"file passed over: {what}"))


def _cut(source: Source, advance: Advance | None) -> Iterator[Message | Problem]:
    try:
        with open_raw(source) as raw:
            counted = Counted(raw, advance)
            try:
                yield from _read(counted, source.name)
            finally:
                counted.tell_rest()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        yield Problem(source.name, f"the gzip data is broken or ends early ({error})")
    except OSError as error:
        yield Problem(source.name, f"it cannot be read ({error.strerror or error})")


def _read(raw: Any, name: str) -> Iterator[Message | Problem]:
    head, stream = look(raw)
    if head.startswith(_GZIP):
        head, stream = look(gzip.GzipFile(fileobj=stream))
    if head.startswith(_BOM):
        stream.read(len(_BOM))
        head = head[len(_BOM) :]
    if _JSON_START.match(head):
        yield from cut_json(stream, name)
    elif head[:1] == _REQUEST_TAG and not head.isspace():
        yield from cut_request(stream, name)
    elif head[4:5] == _REQUEST_TAG and 0 < int.from_bytes(head[:4], "big") <= MESSAGE_BYTES_MAX:
        yield from cut_prefixed(stream, name)
    elif head.strip():
        yield Problem(name, _strange(head))


def _strange(head: bytes) -> str:
    if head.startswith(_ZSTD) or head[4:8] == _ZSTD:
        return "it is compressed with zstd, which is not read here: unpack it first (zstd -d)"
    if head.startswith(b"PAR1"):
        return "it is a Parquet file"
    if head.startswith(b"SQLite format 3"):
        return "it is an SQLite database"
    return f"it starts with {head[:12]!r}, which is neither JSON nor OTLP protobuf"
