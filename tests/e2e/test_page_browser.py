"""Use the live page as people do: in a real browser, with runs coming in, with a keyboard alone, on a phone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import reach_otel.demo
from tests.support.browser import NARROW, PATIENCE_MS, WIDE, Window, chromium
from tests.support.otlp import Trace
from tests.support.service import JSON, Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e

TASK = Path(reach_otel.demo.__file__).with_name("ticket.task.yaml")
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
OVERRIDE = "abc\u202egpj.exe"
CONTROL = "a\u0000b\u001b[31m"
HOSTILE = (SCRIPT, OVERRIDE, CONTROL, "W" * 1_000_000)
UNSEEN = r"/[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/"
EVERYWHERE = ("/", "/tasks", "/tasks/ticket-handling", "/system", "/runbook")

Open = Callable[..., Window]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@contextmanager
def serving(folder: Path, *flags: str, **options: Any) -> Iterator[Served]:
    with Served(folder, "--task", str(TASK), "--set", "grace=0.2", *flags, **options) as served:
        yield served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("page")) as served:
        yield served


@pytest.fixture
def window(browser: Browser, service: Served) -> Iterator[Open]:
    """Open windows that must have nothing to complain of in the end."""
    opened: list[Window] = []

    def open_(size: tuple[int, int] = WIDE, **options: Any) -> Window:
        opened.append(Window(browser, service.address, size=size, **options))
        return opened[-1]

    yield open_
    complaints = [complaint for one in opened for complaint in one.complaints()]
    for one in opened:
        one.close()
    assert complaints == []


class Teller:
    """Send the spans of one run bit by bit, as an exporter does."""

    def __init__(self, service: Served, name: str, *, agent: str = "ticket-agent") -> None:
        self.service = service
        self.trace = Trace(name, agent=agent)
        self._sent = 0

    @property
    def run(self) -> str:
        return self.trace.trace_id

    def send(self) -> None:
        """Send what is new."""
        spans, self.trace.spans = self.trace.spans, self.trace.spans[self._sent :]
        status, _, body = self.service.ask("POST", "/v1/traces", self.trace.line().encode(), JSON)
        assert status == 200, body
        self.trace.spans = spans
        self._sent = len(spans)

    def tell(self, tool: str, args: Any = None, result: Any = None, **fields: Any) -> None:
        self.trace.call(tool, args, result, **fields)
        self.send()

    def end(self, says: str = "Sorry, ticket T-1 stays open.") -> None:
        self.trace.end(user="Please handle ticket T-1.", says=says)
        self.send()

    def whole(self) -> Teller:
        """Tell a run that looks the customer up for nothing, and stops at a stock that cannot be seen."""
        self.tell("read_ticket", {"ticket_id": "T-1"}, TICKET)
        self.tell("lookup_customer", {"customer_id": "C-9"}, {"status": "ok", "name": "Annabel"})
        self.tell("check_inventory", {"sku": "SKU-1"}, error="503 inventory is down")
        self.end()
        self.service.until(lambda: verdict(self.service, self.run), "the verdict")
        return self


TICKET = {"status": "ok", "record": {"ticket_id": "T-1", "customer_id": "C-9", "sku": "SKU-1"}}


def verdict(service: Served, run: str) -> bool:
    status, _, body = service.ask("GET", f"/api/runs/{run}")
    return status == 200 and b'"final":true' in body


def card(page: Page, run: str) -> Any:
    return page.locator(f'#cards [data-run="{run}"]')


def row(page: Page, run: str) -> Any:
    return page.locator(f'#rows [data-run="{run}"]')


def wait(page: Page, javascript: str) -> None:
    """Wait for something to be true; the driver's own way would evaluate text in the page, which the policy forbids."""
    deadline = time.monotonic() + PATIENCE_MS / 1_000
    while not page.evaluate(javascript):
        assert time.monotonic() < deadline, f"waited in vain for {javascript}"
        page.wait_for_timeout(100)


def node_is(page: Page, run: str, milestone: str, state: str) -> None:
    card(page, run).locator(f'[data-node="{milestone}"][data-state="{state}"]').wait_for()


def live(page: Page) -> None:
    page.locator('#link[data-state="live"]').wait_for()


def texts(element: Any) -> dict[str, str]:
    """Give what each part of a row or card says."""
    return dict(element.evaluate("(e) => [...e.querySelectorAll('[data-t]')].map((t) => [t.dataset.t, t.textContent])"))


def test_a_run_appears_and_fills_up_without_a_reload(service: Served, window: Open) -> None:
    """From the first span to the verdict the page follows, and says in the end what the server says."""
    page = window().go("/")
    live(page)
    page.evaluate("window.here = true")
    teller = Teller(service, "fills up")
    teller.tell("read_ticket", {"ticket_id": "T-1"}, TICKET)
    node_is(page, teller.run, "read", "reached")
    assert card(page, teller.run).get_by_text("1 action", exact=True).is_visible()
    teller.tell("lookup_customer", {"customer_id": "C-9"}, {"status": "ok", "name": "Annabel"})
    node_is(page, teller.run, "customer", "passed")
    assert "customer: unused" in card(page, teller.run).inner_text()
    teller.end()
    row(page, teller.run).wait_for()
    assert "partial" in row(page, teller.run).inner_text()
    assert "high risk" in row(page, teller.run).inner_text()
    assert page.evaluate("window.here") is True
    by_script = row(page, teller.run)
    told, marks = texts(by_script), by_script.locator(".path").inner_text()
    page.reload()
    by_server = row(page, teller.run)
    assert texts(by_server) == told
    assert by_server.locator(".path").inner_text() == marks


def test_a_card_says_the_same_by_script_and_by_server(service: Served, window: Open) -> None:
    """What the script wrote into a card is, word for word and state for state, what the server writes."""
    page = window().go("/")
    live(page)
    teller = Teller(service, "same words")
    teller.tell("read_ticket", {"ticket_id": "T-1"}, TICKET)
    teller.tell("list_orders", {"customer_id": "C-9"}, {"orders": []})
    node_is(page, teller.run, "orders", "reached")
    states = "(e) => [...e.querySelectorAll('[data-node], [data-to]')].map((n) => [n.dataset.state, n.classList.value])"
    by_script = (texts(card(page, teller.run)), card(page, teller.run).evaluate(states))
    page.reload()
    assert (texts(card(page, teller.run)), card(page, teller.run).evaluate(states)) == by_script
    teller.end()


def test_the_page_of_a_run_follows_it(service: Served, window: Open) -> None:
    """Story, milestones with their reason, levels and scores grow while somebody reads, and match a reload."""
    teller = Teller(service, "followed")
    teller.tell("read_ticket", {"ticket_id": "T-1"}, TICKET)
    service.until(lambda: service.ask("GET", f"/api/runs/{teller.run}")[0] == 200, "the run")
    page = window().go(f"/runs/{teller.run}")
    live(page)
    page.evaluate("window.here = true")
    assert page.locator("#steps li.step").count() == 1
    teller.tell("lookup_customer", {"customer_id": "C-9"}, {"status": "ok", "name": "Annabel"})
    page.locator('[data-milestone="customer"][data-state="passed"]').wait_for()
    assert "nothing of its result has been used since" in page.locator('[data-milestone="customer"]').inner_text()
    teller.tell("check_inventory", {"sku": "SKU-1"}, error="503 inventory is down")
    page.get_by_text("◆ obstacle: error, not digested").wait_for()
    teller.end()
    page.locator('#run[data-final="yes"]').wait_for()
    page.get_by_text("break point: L1 resource: never tried").wait_for()
    assert page.evaluate("window.here") is True
    read = "(main) => main.innerText.replace(/\\s+/g, ' ')"
    by_script = page.locator("#run").evaluate(read)
    page.reload()
    assert page.locator("#run").evaluate(read) == by_script


def test_a_reason_is_shown(service: Served, window: Open) -> None:
    """Why a milestone is passed and not reached stands in a sentence."""
    teller = Teller(service, "reason").whole()
    page = window().go("/")
    row(page, teller.run).locator("a").click()
    page.wait_for_url(f"**/runs/{teller.run}")
    assert "nothing of its result has been used since" in page.locator('[data-milestone="customer"]').inner_text()
    assert page.locator('.wide-graph [data-node="customer"][data-state="passed"]').is_visible()


def test_hostile_names_stay_text(service: Served, window: Open) -> None:
    """Live and after a reload, on every page, what spans hold is shown and does nothing."""
    page = window().go("/")
    live(page)
    tellers = []
    for n, name in enumerate(HOSTILE):
        teller = Teller(service, f"hostile {n}", agent=name)
        teller.tell(name, {name: name}, name)
        tellers.append(teller)
    for teller in tellers:
        card(page, teller.run).wait_for()
    assert SCRIPT[:20] in page.locator("#cards").inner_text()
    assert "abc‹U+202E›gpj.exe" in page.locator("#cards").inner_text()
    for teller in tellers:
        teller.end(says=SCRIPT)
    for teller in tellers:
        row(page, teller.run).wait_for()
    for path in (*EVERYWHERE, *(f"/runs/{teller.run}" for teller in tellers)):
        for _ in ("by script", "by server"):
            seen = page.evaluate("document.documentElement.outerHTML.replaceAll('\\n', '')")
            assert page.evaluate(f"(html) => {UNSEEN}.exec(html)", seen) is None
            assert page.locator("img, iframe, script:not([type=module])").count() == 0
            assert len(seen) < 400_000
            page.goto(service.address + path)
    for size in (WIDE, NARROW):
        narrow = window(size).go("/")
        for path in ("/", *(f"/runs/{teller.run}" for teller in tellers)):
            narrow.goto(service.address + path)
            assert narrow.evaluate("document.documentElement.scrollWidth") <= size[0], (size, path)


def test_a_phone_shows_everything(service: Served, window: Open) -> None:
    """In a window of 360 pixels nothing runs out of the side, and graphs run down."""
    teller = Teller(service, "phone").whole()
    page = window(NARROW).go("/")
    for path in (*EVERYWHERE, f"/runs/{teller.run}"):
        page.goto(service.address + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0], path
        for overflowing in page.locator("h1, h2, p, dl, .card, .tile, .graph").all():
            box = overflowing.bounding_box()
            assert box is None or box["x"] + box["width"] <= NARROW[0] + 1, path
    assert page.locator(".tall-graph").is_visible()
    assert not page.locator(".wide-graph").is_visible()


def test_the_keyboard_is_enough(service: Served, window: Open) -> None:
    """Tab reaches the way past the frame, every link and field in order, each seen; Enter opens a run."""
    teller = Teller(service, "keyboard").whole()
    page = window().go("/?task=ticket-handling")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    seen: list[str] = []
    for _ in range(80):
        page.keyboard.press("Tab")
        at = page.evaluate(
            """() => {
              const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
              const shown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.height > 0;
              return [e.getAttribute("href") ?? e.name ?? e.tagName, shown];
            }"""
        )
        assert at[1], f"the focus cannot be seen on {at[0]}"
        seen.append(at[0])
        if at[0] == f"/runs/{teller.run}":
            break
    for wanted in ("/tasks/ticket-handling", "task", "outcome", "agent", "variant", "finding"):
        assert wanted in seen
    assert seen[-1] == f"/runs/{teller.run}"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{teller.run}")
    assert page.locator("h1").inner_text().startswith("Run ")


def test_filters_are_in_the_address(service: Served, window: Open) -> None:
    """Choosing a filter reloads with a short address; the list, and what comes in live, keeps to it."""
    Teller(service, "filtered").whole()
    page = window().go("/")
    page.locator(".filter summary").click()
    page.get_by_label("Outcome").select_option("success")
    page.wait_for_url("**/?outcome=success")
    live(page)
    other = Teller(service, "not this one")
    other.tell("read_ticket", {"ticket_id": "T-1"}, TICKET)
    card(page, other.run).wait_for()
    other.whole()
    page.locator(f'#cards .done[data-run="{other.run}"]').wait_for()
    assert row(page, other.run).count() == 0
    page.goto(service.address + "/?finding=unused")
    assert row(page, other.run).count() == 1


def test_without_a_script_the_page_is_whole(service: Served, window: Open) -> None:
    """Runs, reasons and stories are there when scripts are off."""
    teller = Teller(service, "no script").whole()
    page = window(java_script_enabled=False).page
    page.goto(service.address + "/")
    row(page, teller.run).locator("a").click()
    page.wait_for_url(f"**/runs/{teller.run}")
    assert "nothing of its result has been used since" in page.inner_text("main")
    assert "check_inventory" in page.inner_text("#steps")


def test_a_screen_reader_is_told_and_not_flooded(service: Served, window: Open) -> None:
    """Many runs that end together make one sentence; graphs and regions have names."""
    page = window().go("/")
    live(page)
    page.evaluate(
        """() => {
          window.sentences = [];
          new MutationObserver(() => window.sentences.push(document.getElementById("said").textContent))
            .observe(document.getElementById("said"), {childList: true, characterData: true, subtree: true});
        }"""
    )
    tellers = [Teller(service, f"crowd {n}").whole() for n in range(8)]
    for teller in tellers:
        row(page, teller.run).wait_for()
    wait(page, "window.sentences.length > 0")
    page.wait_for_timeout(1_000)
    assert len(page.evaluate("window.sentences")) <= 2
    assert "Runs finished:" in page.evaluate("window.sentences[0]")
    page.goto(service.address + f"/runs/{tellers[0].run}")
    tree = page.locator("body").aria_snapshot()
    for part in ("banner", "navigation", "main", 'heading "Run', 'heading "Milestones', 'img "Task graph', "table"):
        assert part in tree, part


def test_motion_is_left_out_where_it_is_not_wanted(window: Open) -> None:
    """Who asks the system for less motion gets none."""
    page = window(reduced_motion="reduce").go("/")
    durations = page.evaluate("[...document.querySelectorAll('*')].map((e) => getComputedStyle(e).transitionDuration)")
    assert set(durations) == {"0s"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_ground(service: Served, window: Open, scheme: str) -> None:
    """Every text has a contrast of 4.5 to 1 or more, in light and in dark."""
    teller = Teller(service, f"contrast {scheme}").whole()
    page = window(color_scheme=scheme).go("/")
    for path in (*EVERYWHERE, f"/runs/{teller.run}"):
        page.goto(service.address + path)
        assert page.evaluate(CONTRAST) == []


CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const shine = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const box = at.matches?.("g.node") ? at.querySelector(".box") : null;
      const colour = parse(box ? getComputedStyle(box).fill : getComputedStyle(at).backgroundColor);
      if (colour.length && (colour[3] ?? 1) > 0) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll("main *, header *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility() || e.closest("title, desc, option, .sr")) continue;
    const svg = e instanceof SVGElement;
    const ink = parse(svg ? getComputedStyle(e).fill : getComputedStyle(e).color);
    const [light, dark] = [shine(ink), shine(ground(e))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    const name = `${e.tagName}.${e.getAttribute("class")} ${e.textContent.trim().slice(0, 20)}`;
    if (ratio < 4.5) bad.push(`${name} ${ratio.toFixed(2)}`);
  }
  return [...new Set(bad)].slice(0, 10);
}"""


def test_a_broken_line_is_mended(browser: Browser, tmp_path: Path) -> None:
    """While the service is away the page says so; when it is back, the page catches up without a reload."""
    with serving(tmp_path) as first:
        teller = Teller(first, "over the gap")
        teller.tell("read_ticket", {"ticket_id": "T-1"}, TICKET)
        window = Window(browser, first.address)
        window.refused = {"console: Failed to load resource"}
        page = window.go("/")
        live(page)
        card(page, teller.run).wait_for()
        page.evaluate("window.here = true")
        first.kill()
        page.locator('#link[data-state="lost"]').wait_for()
        with serving(tmp_path, port=first.port) as second:
            teller.service = second
            teller.whole()
            live(page)
            row(page, teller.run).wait_for()
            assert page.evaluate("window.here") is True
            assert window.complaints() == []
            window.close()


def test_a_token_opens_the_page(browser: Browser, tmp_path: Path) -> None:
    """The form asks for it, keeps it in a cookie that scripts cannot see, and the live line works with it."""
    with serving(tmp_path, env={"REACH_SERVE_READ_TOKEN": "read-me-7"}) as served:
        window = Window(browser, served.address)
        window.refused = {"console: Failed to load resource: the server responded with a status of 403"}
        page = window.go("/tasks")
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        page.get_by_label("Token").fill("read-me-7")
        page.keyboard.press("Enter")
        page.wait_for_url("**/tasks")
        page.goto(served.address + "/")
        live(page)
        assert page.evaluate("document.cookie") == ""
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Token").wait_for()
        page.goto(served.address + "/system")
        page.get_by_label("Token").wait_for()
        assert window.complaints() == []
        window.close()
