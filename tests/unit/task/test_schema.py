"""The shipped JSON Schema: up to date, complete, and a help to editors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from reach_otel.task import schema
from reach_otel.task.messages import keys_at
from reach_otel.task.model import TaskFile


def test_the_shipped_schema_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reach_otel.task.schema", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_old_schema_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schema, "FILE", tmp_path / "task.schema.json")
    assert schema.main(["--check"]) == 1
    assert "run python -m reach_otel.task.schema --write" in capsys.readouterr().err
    assert schema.main(["--write"]) == 0
    assert schema.main(["--check"]) == 0
    assert schema.main([]) == 2


def test_every_key_of_the_model_is_in_the_schema_and_no_other_is_allowed() -> None:
    made = schema.schema()
    assert set(made["properties"]) == keys_at(())
    assert made["additionalProperties"] is False
    assert set(made["$defs"]["ConditionModel"]["properties"]) == keys_at(("milestones", 0, "verify"))
    assert set(made["$defs"]["Matcher"]["properties"]) == keys_at(("milestones", 0, "verify", "args", "x"))
    assert all(part.get("additionalProperties") is False for name, part in made["$defs"].items() if name != "JsonValue")


def test_keys_are_explained() -> None:
    made = schema.schema()
    self_evident = {"task", "description", "match", "milestones", "traps", "intent", "delivery", "outcome", "weights"}
    assert [
        key for key, part in made["properties"].items() if "description" not in part and key not in self_evident
    ] == []


@pytest.mark.parametrize(
    "name", ["v1", "版本2", "a_.:/@+-b", "v" * 64, "v" * 65, "", "two words", "v\n", "é́", "overflow"]
)
def test_the_form_of_a_variant_is_that_of_the_loader(name: str) -> None:
    """An editor marks just what is refused."""
    of_schema = schema.schema()["properties"]["variant"]["anyOf"][0]
    form = of_schema["pattern"].replace(r"\p{L}\p{N}_", r"\w")  # as Python spells it
    fits = re.search(form.replace("$", r"\Z"), name) is not None and name != of_schema["not"]["const"]
    try:
        TaskFile.model_validate({"task": "t", "variant": name})
    except ValidationError:
        assert not fits
    else:
        assert fits


def test_keys_are_found_through_unions_lists_and_mappings() -> None:
    assert keys_at(("milestones", 3, "depends_on", 0)) == {"any"}
    assert keys_at(("milestones", 0, "verify", "all", 1, "not", "any", 0)) == keys_at(("traps", 0, "verify"))
    assert keys_at(("delivery",)) == {"required", "contains_results_of", "claims_success"}


def test_the_schema_is_plain_json_of_draft_2020_12() -> None:
    made = json.loads(schema.schema_text())
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert made["required"] == ["task"]
    assert set(TaskFile.model_fields) == set(made["properties"])
