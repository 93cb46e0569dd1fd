"""How long a page takes from its address to what people came for, in Chromium on a processor four times slower.

Each load is in a browser context of its own, so nothing is cached. A page has arrived once what people look for is
there and the browser has done what was waiting, so that a click would be answered.
"""

import gzip
import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from machine import packages
from playwright.sync_api import Browser, sync_playwright

from app.api.tokens import LocalTokens
from app.console.assets import read_assets
from app.console.page_routes import CONSOLE, ELDER, STUDENT
from app.console.web_page import WebPage, files
from app.jobs import service as jobs
from benchmarks import http as presses
from benchmarks import roles
from benchmarks.attempts import keeping
from benchmarks.bench import SECRET, TIME_ZONE, Bench, say
from benchmarks.client import Tokens, all_at_once
from benchmarks.figures import Spread, spread
from benchmarks.report import Row, Section

DATABASE = "pages"
SLOWED = 4
GOAL_MS = 1_000
REQUESTS = 12
TITLE = (
    f"pages: from the address to what people came for, processor of the page {SLOWED} times slower, nothing cached, ms,"
    " p50 / p99; floor: a page that loads the same bytes as one style and one script, whose functions nobody calls"
)
_IMPORT = re.compile(
    r"^(?:import|export)\b[^;]*?\bfrom\s*[\"'][^\"']+[\"'];?|^import\s*[\"'][^\"']+[\"'];?", re.MULTILINE
)
_EXPORT = re.compile(r"\bexport\s*\{[^}]*\};?|^export (?:default )?", re.MULTILINE)
NOTE_ARRIVAL = """
(() => {
    const came = {};
    const wanted = %s;
    const look = () => Object.entries(wanted).forEach(([name, selector]) => {
        if (name in came || !document.querySelector(selector)) return;
        came[name] = null;
        setTimeout(() => (came[name] = performance.now()));
    });
    new MutationObserver(look).observe(document, { subtree: true, childList: true });
    globalThis.arrivals = () => (Object.keys(wanted).every((name) => came[name]) ? came : null);
})()
"""


@dataclass(frozen=True)
class Opened:
    page: WebPage
    person: str
    """By name, of the demo."""
    viewport: tuple[int, int]
    wanted: dict[str, str]
    """What is looked for, and the selector of it."""


OPENED = {
    "console": Opened(
        CONSOLE, "Zeynep Koç", (1280, 800), {"requests": "a.request", "requests and map": ".map-buttons"}
    ),
    "elder": Opened(ELDER, "Ayşe Yılmaz", (390, 844), {"button": "button.press"}),
    "student": Opened(STUDENT, "Ahmet Çelik", (390, 844), {"duty": "[role=switch]"}),
}


def measure(bench: Bench) -> Section:
    bench.create(DATABASE)
    with bench.database(DATABASE) as db, db.transaction() as conn:
        by_key = jobs.settle_neighbourhood(conn, TIME_ZONE)
    ids = {one.name: by_key.pop(one.key) for one in jobs.YOURS}
    elders = [id_ for key, id_ in sorted(by_key.items()) if "elder" in key]
    rounds = bench.size(30, 2)
    ours: dict[tuple[str, str], list[float]] = {}
    floors: dict[str, list[float]] = {}

    def section() -> Section:
        rows = [
            _row(f"{kind}: {name}", spread(found), spread(floors[kind]), bench.quick)
            for (kind, name), found in ours.items()
            if kind in floors
        ]
        return Section("pages", TITLE, rows, [f"The console shows {REQUESTS} requests.", *map(_size, OPENED)])

    with (
        keeping(section),
        bench.redis(),
        roles.api(bench, DATABASE, DEMO_SIGN_IN="true", API_WORKERS="1") as (_, port),
        _chromium() as browser,
    ):
        _press(port, elders[:REQUESTS])
        with _bare_pages() as bare_port:
            for turn in range(rounds):
                say(f"pages, round {turn + 1} of {rounds}")
                for kind, opened in OPENED.items():
                    for name, at in _open(browser, port, kind, opened, ids[opened.person]).items():
                        ours.setdefault((kind, name), []).append(at)
                    floors.setdefault(kind, []).append(_open_bare(browser, bare_port, kind))
    bench.drop(DATABASE)
    return section()


def _row(name: str, ours: Spread, floor: Spread, quick: bool) -> Row:
    return Row(name, ours, floor, goal=f"p50 ≤{GOAL_MS:,} ms", met=None if quick else ours.p50 <= GOAL_MS)


def _size(kind: str) -> str:
    loaded = files(OPENED[kind].page, read_assets())
    return f"{kind}: {len(loaded)} files at first, {sum(map(len, _gzipped(loaded))) / 1e3:.0f} KB"


def _gzipped(names: list[str]) -> Iterator[bytes]:
    found = read_assets().files
    return (found[name].gzipped or found[name].content for name in names)


def _press(port: int, elders: list[int]) -> None:
    tokens = Tokens()
    requests = [tokens.request(elder, "POST", "/tasks", presses.BODY) for elder in elders]
    all_at_once(port, requests, expected=201, connections=1)


# ---- in the browser ----


@contextmanager
def _chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=packages.browser(), args=["--headless=new", "--no-sandbox"]
        )
        yield browser
        browser.close()


def _open(browser: Browser, port: int, kind: str, opened: Opened, person: int) -> dict[str, float]:
    token = f"sessionStorage['yaninda.token.{kind}'] ??= '{LocalTokens(SECRET).issue(person)}'"
    address = f"http://127.0.0.1:{port}/{kind if kind == 'console' else f'phone/{kind}'}"
    return _load(browser, address, opened.viewport, opened.wanted, token)


def _open_bare(browser: Browser, port: int, kind: str) -> float:
    [at] = _load(browser, f"http://127.0.0.1:{port}/{kind}", OPENED[kind].viewport, {"shown": "p"}).values()
    return at


def _load(
    browser: Browser, address: str, viewport: tuple[int, int], wanted: dict[str, str], *scripts: str
) -> dict[str, float]:
    width, height = viewport
    context = browser.new_context(viewport={"width": width, "height": height}, service_workers="block")
    try:
        page = context.new_page()
        for script in (*scripts, NOTE_ARRIVAL % wanted):
            page.add_init_script(script)
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
        page.goto(address)
        found: Any = page.wait_for_function("() => arrivals()", timeout=60_000).json_value()
        return found
    finally:
        context.close()


# ---- the floor ----


@contextmanager
def _bare_pages() -> Iterator[int]:
    """Yields the port of a server of nothing but the floor of each page."""
    answers = {path: answer for kind, opened in OPENED.items() for path, answer in _bare_answers(kind, opened)}

    class Bare(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            content_type, content = answers.get(self.path, ("text/plain", b""))
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", f"{len(content)}")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bare)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _bare_answers(kind: str, opened: Opened) -> Iterator[tuple[str, tuple[str, bytes]]]:
    contents = {name: read_assets().files[name].content.decode() for name in files(opened.page, read_assets())}
    scripts = [_uncalled(number, text) for number, (name, text) in enumerate(contents.items()) if name.endswith(".js")]
    show = "document.body.append(Object.assign(document.createElement('p'), { textContent: 'Yanında' }));"
    styles = "\n".join(text for name, text in contents.items() if name.endswith(".css"))
    html = f"<!doctype html><link rel=stylesheet href=/{kind}.css><body><script type=module src=/{kind}.js></script>"
    yield f"/{kind}", ("text/html; charset=utf-8", gzip.compress(html.encode()))
    yield f"/{kind}.css", ("text/css; charset=utf-8", gzip.compress(styles.encode()))
    yield f"/{kind}.js", ("text/javascript; charset=utf-8", gzip.compress("\n".join([*scripts, show]).encode()))


def _uncalled(number: int, text: str) -> str:
    """A module as the body of a function."""
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    return f"async function module{number}() {{\n{body}\n}}"
