"""Check the application as a whole: metrics, health, who may ask, what it says of itself."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from reach_otel.errors import SettingsError, TaskError
from reach_otel.publish.catalog import METRICS, SERVICE_METRICS
from reach_otel.service.app import create_app
from reach_otel.settings import ServeSettings, Settings

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def client_of(folder: Path, base_url: str = "http://localhost", **settings: Any) -> TestClient:
    return TestClient(create_app(ServeSettings(database=str(folder / "x.db"), **settings), Settings()), base_url)


def test_every_metric_is_exposed_as_openmetrics(tmp_path: Path) -> None:
    """What the catalogue lists is there from the start, in the format that carries exemplars."""
    with client_of(tmp_path) as client:
        answer = client.get("/metrics", headers={"Accept": OPENMETRICS})
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        assert client.get("/metrics").headers["content-type"].startswith("text/plain")
    found = {family.name for family in text_string_to_metric_families(answer.text)}  # type: ignore[no-untyped-call]
    listed = {m.name.removesuffix("_total").removesuffix("_info") for m in (*METRICS, *SERVICE_METRICS)}
    assert listed <= found
    assert {name for name in found if name.startswith("reach_")} == listed


def test_reading_needs_the_token_where_one_is_set(tmp_path: Path) -> None:
    """Metrics, API and page ask for it; the checks of the machine room do not."""
    with client_of(tmp_path, read_token="out-secret") as client:
        for path in ("/metrics", "/api/runs", "/api/system", "/api/tasks"):
            assert client.get(path).status_code == 401, path
            assert client.get(path, headers={"Authorization": "Bearer out-secret"}).status_code == 200, path
        assert client.get("/", follow_redirects=False).status_code == 303
        assert client.get("/healthz").json() == {"status": "ok"}
        while (said := client.get("/readyz").json()) == {"ready": False, "reasons": ["the journal is being replayed"]}:
            time.sleep(0.002)
        assert said == {"ready": True, "reasons": []}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", ""])
def test_another_sites_name_is_refused_while_no_token_protects(tmp_path: Path, host: str) -> None:
    """A page of another site that points its name at this machine gets nothing."""
    with client_of(tmp_path) as client:
        assert client.get("/api/runs", headers={"Host": host}).status_code == 421
        for own in ("localhost:4318", "127.0.0.1", "[::1]:4318", "LOCALHOST"):
            assert client.get("/api/runs", headers={"Host": own}).status_code == 200, own
    with client_of(tmp_path, ingest_token="a", read_token="b") as client:
        headers = {"Host": host, "Authorization": "Bearer b"}
        assert client.get("/api/runs", headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "scorer.example"])
def test_an_open_service_refuses_to_start(tmp_path: Path, host: str) -> None:
    """Where others can reach it both tokens are needed, or the word that it is meant."""
    database = str(tmp_path / "x.db")
    some: tuple[dict[str, Any], ...] = ({}, {"ingest_token": "a"}, {"read_token": "b"})
    for tokens in some:
        with pytest.raises(SettingsError, match="which other machines can reach, without"):
            create_app(ServeSettings(database=database, host=host, **tokens), Settings())
    assert not Path(database).exists()
    with TestClient(create_app(ServeSettings(database=database, host=host, insecure=True), Settings())) as client:
        assert client.get("/healthz").status_code == 200
    both = ServeSettings(database=database, host=host, ingest_token="a", read_token="b")
    with TestClient(create_app(both, Settings())) as client:
        assert client.get("/healthz").status_code == 200


def test_a_wrong_task_file_refuses_to_start(tmp_path: Path) -> None:
    """The message names file and line, and no database is left behind."""
    (tmp_path / "bad.task.yaml").write_text("task: bad\nmilestone: []\n", encoding="utf-8")
    with pytest.raises(TaskError, match=r"bad\.task\.yaml:2"):
        create_app(ServeSettings(database=str(tmp_path / "x.db")), Settings(tasks=(str(tmp_path),)))
    assert not (tmp_path / "x.db").exists()


def test_the_collector_is_left_as_it_was(tmp_path: Path) -> None:
    """The thresholds for a process that serves are taken back when it ends, as tests and notebooks start several."""
    before = gc.get_threshold()
    with client_of(tmp_path):
        assert gc.get_threshold() != before
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before


def test_the_api_describes_itself_without_foreign_scripts(tmp_path: Path) -> None:
    """OpenAPI has the ways in with both types and all refusals; the pages that load scripts from elsewhere are off."""
    with client_of(tmp_path) as client:
        described = client.get("/openapi.json").json()
        assert client.get("/docs").status_code == 404
        assert client.get("/redoc").status_code == 404
    for path in ("/v1/traces", "/v1/logs"):
        route = described["paths"][path]["post"]
        assert set(route["requestBody"]["content"]) == {"application/json", "application/x-protobuf"}
        assert set(route["responses"]) == {"200", "400", "401", "408", "413", "415", "429", "503"}
    assert {"/metrics", "/healthz", "/readyz", "/api/runs"} <= set(described["paths"])
