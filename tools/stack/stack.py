"""Start the parts of the stack in order, know where each is, and end them all together."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

from tools.stack import ask, ports, programs, render, scale
from tools.stack.folder import Folder
from tools.stack.ports import HOST
from tools.stack.process import Part, StackError, answers, says
from tools.stack.webhook import Notice, Webhook

NEEDS: Final = ("otelcol", "prometheus", "alertmanager")
TASK: Final = programs.ROOT / "reach_otel" / "demo" / "ticket.task.yaml"
NO_TRACE_STORE: Final = Path(__file__).with_name("collector.yaml")
REACH_OTEL: Final = (sys.executable, "-m", "reach_otel.cli.main")

LOOKBACK: Final = "5m"
RESEND: Final = "1m"
BATCH_MS: Final = 1_000
BATCH_MS_MIN: Final = 250
AT_WORK: Final = "agents send their spans to"


@dataclass(frozen=True, slots=True)
class Sources:
    """Say where the committed configuration is."""

    collector: Path = programs.ROOT / "collector"
    prometheus: Path = programs.ROOT / "dashboards" / "prometheus"
    alertmanager: Path = programs.ROOT / "dashboards" / "alertmanager" / "alertmanager.yml"


@dataclass(slots=True)
class Scorer:
    """One ``reach-otel serve`` with a database of its own, and where it is."""

    name: str
    url: str
    grpc: str
    part: Part
    asked: Callable[[], bool] = field(default=lambda: False, repr=False)

    def start(self) -> None:
        """Start it, and wait until it takes spans."""
        self.part.start()
        self.part.wait(self.asked)

    def stop(self) -> None:
        """Let it end in good order."""
        self.part.stop()

    def kill(self) -> None:
        """End it at once."""
        self.part.kill()


class Stack:
    """Be the whole stack while the ``with`` block lasts: two scorers, Collector, Prometheus, Alertmanager, a webhook.

    ``time_scale`` divides every duration of Prometheus' rules and configuration and of Alertmanager's: at 20 an alert
    that takes five minutes takes 15 seconds. Without ``chosen`` ports any free ones are taken. ``webhook`` is called
    for every notice, from a thread of its own; ``on_ready`` for every part with its name and how long it took.

    :raises MissingProgram: on entering, before anything starts.
    :raises StackError: on entering, when a part does not start; nothing is left behind.
    """

    def __init__(
        self,
        folder: Path,
        *,
        scorers: int = 2,
        collector: str = "scaled",
        time_scale: float = 1.0,
        webhook: Callable[[Notice], None] | None = None,
        chosen: dict[str, int] | None = None,
        tasks: Sequence[Path] = (TASK,),
        scorer_flags: Sequence[str] = (),
        keep: bool = False,
        sources: Sources | None = None,
        on_ready: Callable[[str, float], None] = lambda _name, _seconds: None,
        asked: Callable[[], bool] = lambda: False,
    ) -> None:
        self.folder = folder.absolute()
        self.time_scale = time_scale
        self.ports = chosen or ports.choose_any(ports.wanted(scorers))
        self.scorers: list[Scorer] = []
        self.agents: list[Part] = []
        self.prometheus = self._url("prometheus")
        self.alertmanager = self._url("alertmanager")
        self.collector_http = self._url("collector http")
        self.collector_grpc = self._address("collector grpc")
        self.traces = self.folder / "traces.jsonl"
        self.logs = self.folder / "logs"
        self.webhook = Webhook(self.ports["webhook"], webhook)
        self._scorer_count = scorers
        self._collector_file = f"{collector}.yaml"
        self._tasks = tuple(tasks)
        self._scorer_flags = tuple(scorer_flags)
        self._sources = sources or Sources()
        self._on_ready = on_ready
        self._asked = asked
        self._owned = Folder(self.folder, keep=keep)
        self._parts: dict[str, Part] = {}
        self._programs: dict[str, Path] = {}
        self._exits = ExitStack()

    def __enter__(self) -> Stack:
        self._programs = programs.find_all(*NEEDS)
        with ExitStack() as exits:
            exits.enter_context(self._owned)
            exits.enter_context(self.webhook)
            exits.callback(self._stop_all)
            self._start_all()
            self._exits = exits.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exits.close()

    def part(self, name: str) -> Part:
        """Return a part by its name: ``scorer 1``, ``collector``, ``prometheus``, ``alertmanager``, ``agents``."""
        return self._parts[name]

    def parts(self) -> Iterator[Part]:
        """Yield all parts in the order in which they are to end: who sends before who receives."""
        yield from self.agents
        for name in ("collector", *(scorer.name for scorer in self.scorers), "prometheus", "alertmanager"):
            if name in self._parts:
                yield self._parts[name]

    def check(self) -> None:
        """Raise :class:`StackError` when a part has ended by itself, with the last lines of its log."""
        for part in self.parts():
            part.check()

    def start_agents(self, *options: str, name: str = "agents") -> Part:
        """Let demo agents work against the Collector; ``options`` are those of ``reach-otel demo``."""
        log = self.logs / f"{name}.log"
        command = [*REACH_OTEL, "demo", "--plain", "--endpoint", self.collector_http, *options]
        env = {
            "PYTHONUNBUFFERED": "1",
            "OTEL_SERVICE_NAME": "ticket-agents",
            "OTEL_BSP_SCHEDULE_DELAY": f"{max(BATCH_MS_MIN, BATCH_MS / self.time_scale):.0f}",
        }
        agents = self._make(name, command, env=env, is_ready=says(log, AT_WORK))
        self.agents.append(agents)
        self._start([agents])
        return agents

    # Start and end.

    def _start_all(self) -> None:
        scorers = [self._scorer(f"scorer {n}") for n in range(1, self._scorer_count + 1)]
        self._start([*(scorer.part for scorer in scorers), self._collector(), self._alertmanager()])
        self._start_prometheus()

    def _start_prometheus(self) -> None:
        """Start it; where minutes pass in seconds, give it the rules only once it has scraped everything.

        Its first look at its targets comes some seconds after its start, however short the intervals are. To a rule
        that waits a minute, divided by 20, that would look as if there were no scorers.
        """
        prometheus, config = self._prometheus()
        if self.time_scale == 1:
            render.with_rules(config)
            self._start([prometheus])
            return
        prometheus.start()
        self._note()
        prometheus.wait_for(self._scrapes_all, "its first scrapes", self._asked)
        render.with_rules(config)
        prometheus.reload()
        prometheus.wait_for(lambda: bool(ask.rule_groups(self.prometheus)), "its rules", self._asked)
        self._is_ready(prometheus)

    def _scrapes_all(self) -> bool:
        wanted = len(self.scorers) + 1
        with suppress(OSError):
            return [target["health"] for target in ask.targets(self.prometheus)].count("up") == wanted
        return False

    def _start(self, parts: Sequence[Part]) -> None:
        for part in parts:
            part.start()
        self._note()
        for part in parts:
            part.wait(self._asked)
            self._is_ready(part)

    def _note(self) -> None:
        self._owned.note([part.pid for part in self.parts() if part.pid is not None])

    def _is_ready(self, part: Part) -> None:
        self._on_ready(part.name, time.monotonic() - part.started_at)

    def _stop_all(self) -> None:
        with ExitStack() as stops:
            for part in reversed(list(self.parts())):  # the last callback runs first
                stops.callback(part.stop)

    # What each part is.

    def _make(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        is_ready: Callable[[], bool],
        env: dict[str, str] | None = None,
    ) -> Part:
        log = self.logs / f"{name.replace(' ', '-')}.log"
        part = Part(name, command, log, env=env, is_ready=is_ready, inherits=[self._owned.lock])
        self._parts[name] = part
        return part

    def _scorer(self, name: str) -> Scorer:
        port, grpc_port = self.ports[name], self.ports[f"{name} grpc"]
        database = self.folder / f"{name.replace(' ', '-')}.db"
        command = [*REACH_OTEL, "serve", "--host", HOST, "--port", str(port), "--grpc-port", str(grpc_port)]
        command += ["--database", str(database), *self._scorer_flags]
        for task in self._tasks:
            command += ["--task", str(task)]
        url = self._url(name)
        part = self._make(name, command, is_ready=answers(f"{url}/readyz"))
        scorer = Scorer(name, url, f"{HOST}:{grpc_port}", part, self._asked)
        self.scorers.append(scorer)
        return scorer

    def _collector(self) -> Part:
        config = self._sources.collector / self._collector_file
        if not config.is_file():
            raise StackError(f"{config} is not there; is this a whole checkout of the repository?")
        storage = self.folder / "collector"
        storage.mkdir(parents=True, exist_ok=True)
        env = {
            "OTLP_HOST": HOST,
            "OTLP_GRPC_PORT": str(self.ports["collector grpc"]),
            "OTLP_HTTP_PORT": str(self.ports["collector http"]),
            "HEALTH_ENDPOINT": self._address("collector health"),
            "METRICS_HOST": HOST,
            "METRICS_PORT": str(self.ports["collector metrics"]),
            "SCORER_ENDPOINT": self.scorers[0].grpc,
            "SCORERS": f"[{', '.join(scorer.grpc for scorer in self.scorers)}]",
            "STORAGE_DIR": str(storage),
            "REDACTION_KEY": secrets.token_hex(16),
            "TRACES_FILE": str(self.traces),
        }
        command: list[str | Path] = [self._programs["otelcol"], f"--config=file:{config}"]
        command.append(f"--config=file:{NO_TRACE_STORE}")
        return self._make("collector", command, env=env, is_ready=answers(f"http://{env['HEALTH_ENDPOINT']}/"))

    def _alertmanager(self) -> Part:
        config = render.alertmanager(
            self._sources.alertmanager,
            self.folder / "alertmanager.yml",
            webhook=self.webhook.url,
            factor=self.time_scale,
        )
        command: list[str | Path] = [
            self._programs["alertmanager"],
            f"--config.file={config}",
            f"--storage.path={self.folder / 'alertmanager'}",
            f"--web.listen-address={self._address('alertmanager')}",
            f"--web.external-url={self.alertmanager}",
            "--cluster.listen-address=",
        ]
        return self._make("alertmanager", command, is_ready=answers(f"{self.alertmanager}/-/ready"))

    def _prometheus(self) -> tuple[Part, Path]:
        config = render.prometheus(
            self._sources.prometheus,
            self.folder / "prometheus",
            page=self.scorers[0].url,
            factor=self.time_scale,
        )
        self._tell_prometheus()
        command: list[str | Path] = [
            self._programs["prometheus"],
            f"--config.file={config}",
            f"--storage.tsdb.path={self.folder / 'prometheus-data'}",
            f"--web.listen-address={self._address('prometheus')}",
            f"--web.external-url={self.prometheus}",
            "--enable-feature=exemplar-storage",
            f"--query.lookback-delta={scale.duration(LOOKBACK, self.time_scale)}",
            f"--rules.alert.resend-delay={scale.duration(RESEND, self.time_scale)}",
        ]
        return self._make("prometheus", command, is_ready=answers(f"{self.prometheus}/-/ready")), config

    def _tell_prometheus(self) -> None:
        """Write down what it scrapes and whom it alerts."""
        addresses = {
            "scorers": [scorer.url.removeprefix("http://") for scorer in self.scorers],
            "collector": [self._address("collector metrics")],
            "alertmanagers": [self._address("alertmanager")],
        }
        for name, found in addresses.items():
            render.targets(self.folder / "prometheus", name, found)

    def _address(self, name: str) -> str:
        return f"{HOST}:{self.ports[name]}"

    def _url(self, name: str) -> str:
        return f"http://{self._address(name)}"
