"""Ask Prometheus and Alertmanager over their APIs what they know."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from tools.stack.process import DIRECT

TIMEOUT_SECONDS = 10.0


def query(prometheus: str, expression: str) -> list[dict[str, Any]]:
    """Return the samples of an instant query: each has ``metric`` (labels) and ``value`` (time, text)."""
    answer = _get(f"{prometheus}/api/v1/query?{urlencode({'query': expression})}")
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


def value(prometheus: str, expression: str) -> float | None:
    """Return the value of an instant query with one sample or none.

    :raises ValueError: there are more.
    """
    found = query(prometheus, expression)
    if len(found) > 1:
        raise ValueError(f"{expression} has {len(found)} samples")
    return float(found[0]["value"][1]) if found else None


def rule_groups(prometheus: str) -> list[dict[str, Any]]:
    """Return the groups of rules with what each rule last came to."""
    found: list[dict[str, Any]] = _get(f"{prometheus}/api/v1/rules")["data"]["groups"]
    return found


def targets(prometheus: str) -> list[dict[str, Any]]:
    """Return what is scraped, each with its ``health``."""
    found: list[dict[str, Any]] = _get(f"{prometheus}/api/v1/targets?state=active")["data"]["activeTargets"]
    return found


def alerts(alertmanager: str) -> list[dict[str, Any]]:
    """Return all alerts that Alertmanager knows, also those that are silenced or inhibited (``status``)."""
    found: list[dict[str, Any]] = _get(f"{alertmanager}/api/v2/alerts")
    return found


def _get(url: str) -> Any:
    with DIRECT.open(url, timeout=TIMEOUT_SECONDS) as answer:
        return json.load(answer)
