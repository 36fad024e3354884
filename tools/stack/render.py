"""Write the configuration of one stack: copies of the committed files, with its addresses and its time scale."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tools.stack import ports, scale
from tools.stack.process import StackError

PAGE: Final = f"http://{ports.HOST}:{ports.SCORER_HTTP}"
"""How the links in Prometheus' external labels begin when they lead to the page of a scorer: runbook and runs."""

WITH_RULES: Final = "prometheus-with-rules.yml"


def prometheus(source: Path, target: Path, *, page: str, factor: float) -> Path:
    """Copy Prometheus' folder with every duration divided; return the configuration's path.

    The configuration is without rules until :func:`with_rules` puts them in.

    They keep their names and their text for people. Links to a scorer lead to ``page``. Who is scraped,
    :func:`targets` says.
    """
    _need(source / "prometheus.yml")
    shutil.copytree(source, target, dirs_exist_ok=True)
    for file in sorted((target / "rules").glob("*.yml")):
        _write(file, scale.configuration(_read(file), factor))
    config = scale.configuration(_read(target / "prometheus.yml"), factor)
    labels = config.get("global", {}).get("external_labels", {})
    for name, value in labels.items():
        if str(value).startswith(PAGE):
            labels[name] = page + str(value).removeprefix(PAGE)
    _write(target / WITH_RULES, config)
    _write(target / "prometheus.yml", {name: value for name, value in config.items() if name != "rule_files"})
    return target / "prometheus.yml"


def with_rules(config: Path) -> None:
    """Put the rules into a copy; Prometheus takes them up when it is told to read its configuration again."""
    (config.parent / WITH_RULES).replace(config)


def targets(folder: Path, name: str, addresses: Sequence[str]) -> None:
    """Say which addresses a job of the copy scrapes; a running Prometheus takes it up by itself."""
    file = folder / "targets" / f"{name}.yml"
    _write(file, [{**_first_group(file), "targets": list(addresses)}])


def alertmanager(source: Path, target: Path, *, webhook: str, factor: float) -> Path:
    """Copy Alertmanager's configuration; what goes to somebody, or to the first receiver, goes to our webhook."""
    _need(source)
    config = scale.configuration(_read(source), factor)
    for receiver in config["receivers"]:
        sent = [name for name in receiver if name.endswith("_configs")]
        for name in sent:
            del receiver[name]
        if sent or receiver["name"] == config["route"]["receiver"]:
            receiver["webhook_configs"] = [{"url": webhook, "send_resolved": True}]
    _write(target, config)
    return target


def _first_group(file: Path) -> dict[str, Any]:
    """Return the first group of targets in a committed file, so that its labels stay."""
    groups = _read(file) if file.is_file() else []
    return dict(groups[0]) if groups else {}


def _need(file: Path) -> None:
    if not file.is_file():
        raise StackError(f"{file} is not there; is this a whole checkout of the repository?")


def _read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def _write(file: Path, document: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)
    half = file.with_name(f".{file.name}.new")  # Prometheus watches the folder, and is not to see half a file
    half.write_text(text, encoding="utf-8")
    half.replace(file)
