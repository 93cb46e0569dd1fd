"""The routes of pages and their files. They show nothing that needs a right: the scripts read everything from the API,
with the token of whoever has signed in."""

from functools import cache
from typing import Annotated

from pydantic import ConfigDict, StringConstraints

from app.api.access import ANYONE
from app.api.errors import RouteUnknown
from app.api.routing import Call, Reply, Routes
from app.api.validation import Request
from app.console.assets import read_assets
from app.console.web_page import WebPage, files, html, policy, tag_of

routes = Routes("Pages")

HTML = "text/html; charset=utf-8"
SCRIPT = "text/javascript; charset=utf-8"
MANIFEST = "application/manifest+json"

HOME = WebPage("Yanında", "home/home.js")
CONSOLE = WebPage(
    "Yanında · Konsol",
    "console/console.js",
    styles=("vendor/leaflet/leaflet.css", "vendor/uplot/uplot.css", "console/views/views.css"),
    has_map=True,
)
ELDER = WebPage("Yanında", "phone/elder.js", ("phone/phone.css",), "/phone/elder.webmanifest", frameable=True)
STUDENT = WebPage("Yanında · Öğrenci", "phone/student.js", ("phone/phone.css",), "/phone/student.webmanifest", True)
BOTH = WebPage("Yanında · Yan yana", "phone/both.js")

AssetPath = Annotated[str, StringConstraints(max_length=200)]


class AnyQuery(Request):
    """Filters in the address are for the script of the page."""

    model_config = ConfigDict(extra="ignore")


@routes.add("GET", "/", who=ANYONE, answers={200: None, 304: None}, content_type=HTML)
def home(call: Call, query: AnyQuery) -> Reply:
    """The first page: three doors, and the description of the API."""
    return _page(call, HOME)


@routes.add("GET", "/console", who=ANYONE, answers={200: None, 304: None}, content_type=HTML)
def console(call: Call, query: AnyQuery) -> Reply:
    """The page of coordinators and admins."""
    return _page(call, CONSOLE)


@routes.add("GET", "/console/{path:place}", who=ANYONE, answers={200: None, 304: None}, content_type=HTML)
def console_at(call: Call, place: AssetPath, query: AnyQuery) -> Reply:
    """The same page: its script shows what the address names."""
    return _page(call, CONSOLE)


@routes.add("GET", "/phone/elder", who=ANYONE, answers={200: None, 304: None}, content_type=HTML)
def elder_phone(call: Call, query: AnyQuery) -> Reply:
    """The elder's app as a page."""
    return _page(call, ELDER)


@routes.add("GET", "/phone/student", who=ANYONE, answers={200: None, 304: None}, content_type=HTML)
def student_phone(call: Call, query: AnyQuery) -> Reply:
    """The student's app as a page."""
    return _page(call, STUDENT)


@routes.add("GET", "/phone/both", who=ANYONE, answers={200: None, 304: None}, content_type=HTML)
def both_phones(call: Call, query: AnyQuery) -> Reply:
    """An elder's and a student's phone side by side."""
    return _page(call, BOTH)


@routes.add("GET", "/phone/worker.js", who=ANYONE, answers={200: None, 304: None}, content_type=SCRIPT)
def phone_worker(call: Call) -> Reply:
    """The service worker of both phones. A browser gives it the pages below its own address, so it cannot be an asset;
    its first line tells it which files to keep."""
    return _conditional(call, _worker(), {})


@routes.add("GET", "/phone/elder.webmanifest", who=ANYONE, answers={200: None, 304: None}, content_type=MANIFEST)
def elder_manifest(call: Call) -> Reply:
    """What a phone needs to install the elder's page as an app."""
    return _manifest(call, "phone/elder.webmanifest")


@routes.add("GET", "/phone/student.webmanifest", who=ANYONE, answers={200: None, 304: None}, content_type=MANIFEST)
def student_manifest(call: Call) -> Reply:
    """What a phone needs to install the student's page as an app."""
    return _manifest(call, "phone/student.webmanifest")


@routes.add("GET", "/assets/{version}/{path:name}", who=ANYONE, answers={200: None})
def asset(call: Call, version: AssetPath, name: AssetPath) -> Reply:
    """A file of the pages. Another version of the same process is another address, so it may be kept for good."""
    assets = read_assets()
    found = assets.files.get(name) if version == assets.version else None
    if found is None:
        raise RouteUnknown("There is nothing at this path.")
    headers = {
        "Content-Type": found.content_type,
        "Cache-Control": "public, max-age=31536000, immutable",
        "Vary": "Accept-Encoding",
    }
    if found.gzipped is not None and "gzip" in call.headers.get("Accept-Encoding", ""):
        return Reply(found.gzipped, headers=headers | {"Content-Encoding": "gzip"})
    return Reply(found.content, headers=headers)


@cache
def _html(page: WebPage) -> bytes:
    """Made once in a process, because it reads all modules of the page to name them."""
    return html(page, read_assets())


@cache
def _worker() -> bytes:
    assets = read_assets()
    kept = dict.fromkeys(name for page in (ELDER, STUDENT) for name in files(page, assets))
    addresses = [assets.address(name) for name in kept]
    first = f"const KEPT = {addresses!r};\nconst VERSION = {assets.version!r};\n"
    return first.encode() + assets.files["phone/worker.js"].content


def _page(call: Call, page: WebPage) -> Reply:
    allowed = policy(page, call.services.settings.tile_address)
    return _conditional(call, _html(page), {"Content-Security-Policy": allowed})


def _manifest(call: Call, name: str) -> Reply:
    assets = read_assets()
    text = assets.files[name].content.decode().replace("{assets}", assets.address("").rstrip("/"))
    return _conditional(call, text.encode(), {})


def _conditional(call: Call, content: bytes, headers: dict[str, str]) -> Reply:
    """A browser asks each time whether a page has changed, and gets it only then."""
    tag = tag_of(content)
    headers |= {"ETag": tag, "Cache-Control": "no-cache"}
    if call.headers.get("If-None-Match") == tag:
        return Reply(None, 304, headers)
    return Reply(content, headers=headers)
