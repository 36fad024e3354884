"""Check ``reach-otel serve`` from outside: flags, variables, files, what it refuses, and a clean end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reach_otel.cli.main import app
from tests.support.service import Served

TASK = "task: shop\nmatch: {agent: bot}\nmilestones:\n  - {id: read, verify: {tool: read_ticket}}\n"


def refused(*flags: str) -> str:
    """Start with flags that must not work; gives the one message."""
    done = subprocess.run(
        [sys.executable, "-m", "reach_otel.cli.main", "serve", *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


@pytest.mark.e2e
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_it_starts_says_where_and_ends_cleanly(tmp_path: Path, sig: int) -> None:
    """The address is printed once it listens; both signals end it with 0, also while somebody watches the events."""
    (tmp_path / "shop.task.yaml").write_text(TASK, encoding="utf-8")
    served = Served(tmp_path, "--task", str(tmp_path))
    try:
        served.until(lambda: served.get("/readyz")["ready"], "readiness")
        assert [task["name"] for task in served.get("/api/tasks")["tasks"]] == ["shop"]
        watching = served.connect()
        watching.request("GET", "/api/events")
        assert watching.getresponse().status == 200
    finally:
        code = served.stop(sig)
    watching.close()
    assert code == 0
    assert served.database.stat().st_mode & 0o777 == 0o600
    said = "".join(served.said)
    assert "Traceback" not in said, said


@pytest.mark.e2e
def test_settings_come_from_flags_variables_and_file(tmp_path: Path) -> None:
    """A flag wins over a variable, and that over the file; names of both tables may stand in the file."""
    (tmp_path / "shop.task.yaml").write_text(TASK, encoding="utf-8")
    config = tmp_path / "serve.toml"
    config.write_text(f'tasks = ["{tmp_path}"]\nbody_max = 10\nspans_max = 7\nread_token = "file"\n', encoding="utf-8")
    env = {"REACH_SERVE_BODY_MAX": "2000", "REACH_SERVE_READ_TOKEN": "variable", "REACH_VARIANT": "v2"}
    with Served(tmp_path, "--config", str(config), "--set", "read_token=flag", env=env) as served:
        read = {"Authorization": "Bearer flag"}
        assert b"shop" in served.ask("GET", "/api/tasks", headers=read)[2]
        for other in ("file", "variable"):
            assert served.ask("GET", "/api/tasks", headers={"Authorization": f"Bearer {other}"})[0] == 401
        media = {"Content-Type": "application/json"}
        assert served.ask("POST", "/v1/traces", b"{" + b" " * 1_000 + b"}", media)[0] == 200
        assert served.ask("POST", "/v1/traces", b"{" + b" " * 3_000 + b"}", media)[0] == 413
        assert b'variant="v2"' in served.ask("GET", "/metrics", headers=read)[2]


def test_it_refuses_to_stand_open(tmp_path: Path) -> None:
    """Without tokens only this machine may reach it."""
    said = refused("--host", "0.0.0.0", "--database", str(tmp_path / "x.db"))
    assert said.startswith("reach-otel: host: found '0.0.0.0', which other machines can reach, without ingest_token")
    assert "REACH_SERVE_INGEST_TOKEN" in said


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    """The message says which, and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused("--port", str(port), "--database", str(tmp_path / "x.db"))
    assert said.startswith(f"reach-otel: 127.0.0.1:{port} cannot be listened on")
    assert "--port" in said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--set", "bodymax=1"), "bodymax: unknown setting; did you mean body_max?"),
        (("--set", "body_max"), "--set: found 'body_max', want NAME=VALUE"),
        (("--set", "body_max=many"), "body_max: found 'many', want a whole number from 1 up"),
        (("--set", "trace_url=http://x"), "want an http:// or https:// address with {trace_id} in it"),
        (("--port", "99999"), "port: found 99999, want a port, such as 4318"),
        (("--config", "/nowhere/x.toml"), "/nowhere/x.toml: it cannot be read"),
        (("--host", "no.such.host.invalid", "--insecure"), "is no address to listen on"),
        (("--task", "/nowhere"), "/nowhere"),
    ],
)
def test_wrong_settings_are_told(tmp_path: Path, flags: tuple[str, ...], message: str) -> None:
    """Each says what was found and what is allowed, and nothing is started."""
    done = CliRunner().invoke(app, ["serve", "--database", str(tmp_path / "x.db"), *flags])
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_wrong_file_is_told(tmp_path: Path) -> None:
    """What is no TOML, and names that are no settings, are told with the file's name."""
    config = tmp_path / "serve.toml"
    for text, message in (
        ("port 1", "found no TOML"),
        ("porto = 1", f"unknown setting in {config}; did you mean port"),
    ):
        config.write_text(text, encoding="utf-8")
        done = CliRunner().invoke(app, ["serve", "--config", str(config)])
        assert done.exit_code == 2
        assert message in done.stderr


@pytest.mark.parametrize("variable", ["REACH_SERVE_PROT", "REACH_SERVE_READTOKEN"])
def test_a_misspelt_variable_refuses_to_start(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that was misspelt must not quietly mean none."""
    monkeypatch.setenv(variable, "1")
    done = CliRunner().invoke(app, ["serve"])
    assert done.exit_code == 2
    assert f"{variable}: unknown environment variable; did you mean REACH_SERVE_" in done.stderr


def test_a_secret_is_not_shown(tmp_path: Path) -> None:
    """Neither in an error nor in the settings' own text."""
    from reach_otel.settings import read_serve

    serve, _ = read_serve({"ingest_token": "s3cret", "read_token": "s3cret"}, {})
    assert "s3cret" not in repr(serve)
    config = tmp_path / "serve.toml"
    config.write_text("read_token = 12345\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["serve", "--config", str(config)])
    assert done.exit_code == 2
    assert "12345" not in done.stderr
