"""Open pages in the Chromium of this machine, and note everything that a browser complains about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tests.support import programs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS: Final = 15_000
WIDE: Final = (1280, 900)
NARROW: Final = (360, 740)

_WATCH_POLICY: Final = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser with a new profile; nothing is downloaded."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        programs.missing("playwright is not here: pip install playwright")
    executable = programs.need("chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """One window on a service: what it complained about is in :attr:`faults`."""

    def __init__(self, browser: Browser, origin: str, *, size: tuple[int, int] = WIDE, **options: Any) -> None:
        self.origin = origin
        self.faults: list[str] = []
        self.refused: set[str] = set()  # beginnings of complaints that a test is about
        self._context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        self._context.set_default_timeout(PATIENCE_MS)
        self._context.add_init_script(_WATCH_POLICY)
        self.page: Page = self._context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.origin).netloc:
            self.faults.append(f"a request left: {request.url}")

    def go(self, path: str) -> Page:
        """Open a page of the service."""
        self.page.goto(self.origin + path)
        return self.page

    def violations(self) -> list[str]:
        """Give what the content-security-policy stopped on the page that is open."""
        return list(self.page.evaluate("window.violations ?? []"))

    def complaints(self) -> list[str]:
        """Give all that went wrong, less what the test is about."""
        found = [*self.faults, *self.violations()]
        return [fault for fault in found if not any(fault.startswith(known) for known in self.refused)]

    def close(self) -> None:
        self._context.close()
