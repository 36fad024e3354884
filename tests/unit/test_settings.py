"""Check that settings are read strictly, from one table."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from reach_otel import SettingsError
from reach_otel.settings import PortRange, Settings, markdown, otlp_protocol, read, read_serve, table, variable_of


def test_defaults_are_those_of_the_table() -> None:
    """With nothing given, every setting has its default."""
    assert read(environ={}) == Settings()


def test_given_wins_over_environment_and_that_over_default() -> None:
    """A keyword argument wins over a variable, a variable over the default."""
    settings = read({"grace": 1}, {"REACH_GRACE": "7", "REACH_IDLE": "9"})
    assert (settings.grace, settings.idle, settings.parent_wait) == (1.0, 9.0, 30.0)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("enabled", "off", False),
        ("enabled", "TRUE", True),
        ("tasks", "a:b/c.task.yaml", ("a", "b/c.task.yaml")),
        ("variant", " registry/gpt-4o:2@x ", "registry/gpt-4o:2@x"),
        ("variant", "", None),
        ("variants", "", ()),
        ("variants", "v1, registry/agent:2@x ,v1", ("v1", "registry/agent:2@x")),
        ("run_scope", "conversation", "conversation"),
        ("grace", "0", 0.0),
        ("idle", "1e3", 1000.0),
        ("runs_max", "50_000", 50_000),
        ("metrics_port", "none", None),
        ("metrics_port", "9464-9479", PortRange(9464, 9479)),
        ("metrics_port", "0", PortRange(0, 0)),
        ("endpoint", "http://scorer:4318/", "http://scorer:4318"),
        ("endpoint", "", None),
        ("endpoint", "https://[::1]:4318/a@b/", "https://[::1]:4318/a@b"),
        ("token", "a+b/c.d-e_f~g==\n", "a+b/c.d-e_f~g=="),
        ("token", "", None),
        ("redact", "no", False),
    ],
)
def test_a_variable_is_read(name: str, text: str, value: Any) -> None:
    """Each kind of setting reads its text."""
    assert getattr(read(environ={variable_of(name): text}), name) == value


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("tasks", Path("tasks"), ("tasks",)),
        ("tasks", [Path("a"), "b"], ("a", "b")),
        ("metrics_port", 9999, PortRange(9999, 9999)),
        ("metrics_port", None, None),
        ("variant", None, None),
        ("variants", ["v1", "v2"], ("v1", "v2")),
        ("variants", None, ()),
    ],
)
def test_a_python_value_is_read(name: str, value: Any, expected: Any) -> None:
    """Keyword arguments may have the type that one would expect."""
    assert getattr(read({name: value}, {}), name) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("redact", "maybe"),
        ("redact", "1.0"),
        ("enabled", ""),
        ("grace", "2s"),
        ("grace", "-1"),
        ("grace", "nan"),
        ("grace", True),
        ("runs_max", "0"),
        ("runs_max", "many"),
        ("runs_max", 1.5),
        ("variant", "prompt v2"),
        ("variant", "v" * 65),
        ("variant", "overflow"),
        ("variant", " "),
        ("variant", 2),
        ("variants", "two words"),
        ("variants", "v1;v2"),
        ("variants", "v" * 65),
        ("variants", "v1,overflow"),
        ("variants", 3),
        ("run_scope", "thread"),
        ("metrics_port", "70000"),
        ("metrics_port", "9479-9464"),
        ("metrics_port", "0-5"),
        ("metrics_port", True),
        ("metrics_host", " "),
        ("endpoint", "scorer:4318"),
        ("endpoint", "ftp://scorer"),
        ("endpoint", "http://sco rer"),
        ("endpoint", "http://scorer\x7f"),
        ("endpoint", "http://scorer:port"),
        ("endpoint", "http://[scorer"),
        ("tasks", 3),
    ],
)
def test_an_unreadable_value_refuses_to_start(name: str, value: Any) -> None:
    """A value that cannot be read raises, and says what was found and what is allowed."""
    with pytest.raises(
        SettingsError, match=f"{re.escape(f'{name}: found {value!r}, want ')}.*; leave it out for the default"
    ):
        read({name: value}, {})


def test_an_unreadable_variable_is_named() -> None:
    """The message for a variable names the variable."""
    with pytest.raises(SettingsError, match=r"^REACH_REDACT: found 'ture', want true or false; unset it"):
        read(environ={"REACH_REDACT": "ture"})


@pytest.mark.parametrize(
    ("given", "environ", "hint"),
    [
        ({"metric_port": 1}, {}, "metric_port: unknown setting; did you mean metrics_port"),
        ({}, {"REACH_REDCAT": "1"}, "REACH_REDCAT: unknown environment variable; did you mean REACH_REDACT"),
        ({}, {"REACH_METRIC_PORT": "9464"}, "did you mean REACH_METRICS_PORT"),
        ({}, {"REACH_grace": "1"}, "did you mean|known are"),
        ({"zzz": 1}, {}, "known are enabled, tasks"),
    ],
)
def test_an_unknown_name_refuses_to_start(given: dict[str, Any], environ: dict[str, str], hint: str) -> None:
    """A misspelt name raises with the name that was probably meant."""
    with pytest.raises(SettingsError, match=hint):
        read(given, environ)


def test_service_links_of_kubernetes_are_no_settings() -> None:
    """What Kubernetes sets for a service named reach-otel is let pass."""
    environ = {
        "REACH_OTEL_SERVICE_HOST": "10.0.0.1",
        "REACH_OTEL_SERVICE_PORT": "9464",
        "REACH_OTEL_SERVICE_PORT_METRICS": "9464",
        "REACH_OTEL_PORT": "tcp://10.0.0.1:9464",
        "REACH_OTEL_PORT_9464_TCP_ADDR": "10.0.0.1",
        "REACH_SERVE_PORT": "4318",
    }
    assert read(environ=environ) == Settings()


def test_a_secret_is_not_shown() -> None:
    """The token appears neither in an error nor in the settings' text."""
    with pytest.raises(SettingsError) as raised:
        read({"token": 12345}, {})
    assert "12345" not in str(raised.value)
    assert "s3cret" not in repr(read({"token": "s3cret"}, {}))


def test_a_variant_of_another_form_is_refused_with_what_is_allowed() -> None:
    """It would count as ``other`` and nobody would know why."""
    with pytest.raises(SettingsError) as raised:
        read(environ={"REACH_VARIANT": "prompt v2"})
    assert str(raised.value) == (
        "REACH_VARIANT: found 'prompt v2', want a name of 1 to 64 letters, digits and _.:/@+-, such as prompt-v2, "
        "and not 'overflow'; unset it for the default (none)"
    )


@pytest.mark.parametrize("name", ["REACH_ENDPOINT", "REACH_SERVE_EVALUATIONS_ENDPOINT", "REACH_SERVE_TRACE_URL"])
@pytest.mark.parametrize(
    "address",
    [
        "http://me:s3cret@host:4318/{trace_id}",
        "http://s3cret@host:4318/{trace_id}",
        "http://me:s3cret@ho st/{trace_id}",
        "ftp://me:s3cret@host/{trace_id}",
        "me:s3cret@host/{trace_id}",
        "http://me:s3cret@host:port/{trace_id}",
        "http://me:s3cret@[host/{trace_id}",
        "http://me:s3cret\uff20host@x/{trace_id}",  # the library's own message would repeat this one
    ],
)
def test_a_password_in_an_address_is_refused_unseen(name: str, address: str) -> None:
    """Addresses are printed, logged and linked to: no password is taken there, and the message does not repeat it."""
    with pytest.raises(SettingsError, match=f"^{name}: found a value that is not shown, want an ") as raised:
        read_serve({}, {name: address})
    assert "s3cret" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_it_says_where_a_token_belongs() -> None:
    """Each address has a setting of its own for that."""
    for name, token in (
        ("REACH_ENDPOINT", "REACH_TOKEN"),
        ("REACH_SERVE_EVALUATIONS_ENDPOINT", "REACH_SERVE_EVALUATIONS_TOKEN"),
    ):
        with pytest.raises(SettingsError, match=f"without user name and password, .*; give a token by {token} instead"):
            read_serve({}, {name: "http://me:s3cret@host"})
        for address in ("http://host?token=s3cret", "http://host/#s3cret", "http://host?"):
            with pytest.raises(SettingsError, match=rf"{name}: found a value that is not shown, .*without \? and #"):
                read_serve({}, {name: address})


def test_a_link_to_a_trace_may_have_a_query() -> None:
    """It is for a browser, and shows to whoever reads the page."""
    link = "https://grafana.example/explore?trace={trace_id}#x"
    assert read_serve({"trace_url": link}, {})[0].trace_url == link
    with pytest.raises(
        SettingsError, match=r"found 'http://host/x', want an http:// or https:// address with \{trace_id\}"
    ):
        read_serve({"trace_url": "http://host/x"}, {})


@pytest.mark.parametrize("name", ["token", "ingest_token", "read_token", "evaluations_token"])
@pytest.mark.parametrize("value", ["s3cret x", "s3cret\nx", "s3cret\x00", "s3cret\u20ac", " "])
def test_a_token_that_no_header_can_carry_is_refused_unseen(name: str, value: str) -> None:
    """Every request would fail with it, each time with the token in the message."""
    with pytest.raises(SettingsError, match=f"{name}: found a value that is not shown, want a t") as raised:
        read_serve({name: value}, {})
    assert "s3cret" not in str(raised.value)


def test_the_rendered_table_has_every_setting() -> None:
    """The README's table is made from the rows, one line each."""
    lines = markdown().splitlines()
    assert len(lines) == 2 + len(table()) == 2 + len(dataclasses.fields(Settings))
    for line, name in zip(lines[2:], table(), strict=True):
        assert line.startswith(f"| `{name}` | `{variable_of(name)}` |")
        assert line.count("|") == 7


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "http"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "grpc"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "http"),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, None),
        ({"OTEL_TRACES_EXPORTER": "none"}, None),
    ],
)
def test_standard_variables_ask_for_otlp(environ: dict[str, str], protocol: str | None) -> None:
    """The standard variables decide whether and how traces are exported."""
    assert otlp_protocol(environ) == protocol
