"""The system's Chromium for tests of pages, and the check that they are accessible."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from machine import packages
from playwright.sync_api import Browser, Frame, Page, TimeoutError, sync_playwright
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# The size of targets is a rule of WCAG 2.2 that axe leaves out unless it is asked for.
AXE_OPTIONS = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=packages.browser(), args=list(ARGUMENTS))
        yield browser
        browser.close()


def assert_accessible(page: Page | Frame) -> None:
    """Fails with all that axe has to say about the page as it is now. Frames in it are asked by themselves."""
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate("options => axe.run(options)", AXE_OPTIONS)
    said = [_said(violation) for violation in found["violations"]]
    assert not said, "\n".join(said)


def assert_large_text_fits(page: Page, shortened: str = "none") -> None:
    """With text twice as large nothing scrolls sideways, and no text is cut off but in what the selector finds, which
    is in full elsewhere."""
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    try:
        # Lists measure their rows anew within a second.
        page.wait_for_function(f"(shortened) => ({CUT_OFF})(shortened).length === 0", arg=shortened, timeout=5000)
    except TimeoutError:
        raise AssertionError("\n".join([page.url, *page.evaluate(CUT_OFF, shortened)])) from None
    finally:
        page.evaluate("document.documentElement.style.fontSize = ''")


CUT_OFF = """(shortened) => [...document.querySelectorAll("html, main, body *")].filter((one) => {
    if (one.matches("html, main")) return one.scrollWidth > one.clientWidth;
    const { overflowX, overflowY } = getComputedStyle(one);
    const [wide, high] = [one.scrollWidth - one.clientWidth > 1, one.scrollHeight - one.clientHeight > 1];
    const hides = (overflow) => ["hidden", "clip"].includes(overflow);
    const isSeen = one.checkVisibility() && one.clientWidth > 1 && one.clientHeight > 1;
    const counts = isSeen && one.textContent.trim() && !one.closest(`.map, .cell-map, svg, ${shortened}`);
    return counts && ((wide && hides(overflowX)) || (high && hides(overflowY)));
}).map((one) => one.outerHTML.slice(0, 200))"""


def _said(violation: dict[str, Any]) -> str:
    places = "; ".join(f"{node['target']} {node['html']} {node['failureSummary']}" for node in violation["nodes"])
    return f"{violation['id']}: {violation['help']}: {places}"


class _Server(ThreadedWSGIServer):
    daemon_threads = True
    """A stream that nobody reads any more ends with the process."""


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any, **__: Any) -> None: ...


@contextmanager
def served_in_threads(app: Any) -> Iterator[str]:
    """Serves a WSGI application, one thread for each request; yields its address."""
    server = _Server("127.0.0.1", 0, app, handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()
