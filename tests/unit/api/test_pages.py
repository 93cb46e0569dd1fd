"""Pages and their files: what browsers may keep, and what a page may load."""

import gzip
import re
from typing import Any

import pytest

from app.console import page_routes
from app.console.assets import STATIC, read_assets
from app.console.web_page import WebPage, html, policy

OURS = sorted(path for path in STATIC.rglob("*") if "vendor" not in path.relative_to(STATIC).parts)
SCRIPTS = [path for path in OURS if path.suffix == ".js"]


def test_file_of_a_page_may_be_kept_for_good(client: Any):
    address = read_assets().address("shared/base.css")
    response = client.get(address, headers={"Accept-Encoding": "gzip, br"})
    assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.content_type == "text/css; charset=utf-8"
    assert gzip.decompress(response.data) == (STATIC / "shared/base.css").read_bytes()
    assert client.get(address).data == (STATIC / "shared/base.css").read_bytes()


@pytest.mark.parametrize("path", ["/assets/0123/shared/base.css", "{now}shared/none.css", "{now}../page.py", "{now}"])
def test_unknown_file_is_not_found(client: Any, path: str):
    response = client.get(path.replace("{now}", read_assets().address("")))
    assert response.status_code == 404
    assert response.headers["Cache-Control"] == "no-store"


def test_page_is_sent_again_only_if_it_has_changed(client: Any):
    first = client.get("/")
    assert first.headers["Cache-Control"] == "no-cache"
    assert first.content_type == "text/html; charset=utf-8"
    again = client.get("/?a=filter", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_page_may_load_only_what_this_service_sends(client: Any):
    policy = client.get("/").headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_only_the_page_with_the_map_may_load_tiles():
    tiles = "https://tiles.example.org/{z}/{x}/{y}.png"
    assert "img-src 'self' data: https://tiles.example.org;" in policy(page_routes.CONSOLE, tiles)
    assert "img-src 'self' data:;" in policy(page_routes.CONSOLE, None)
    assert "tiles" not in policy(page_routes.ELDER, tiles)


def test_page_names_all_its_modules_so_that_they_load_at_once():
    shown = html(page_routes.HOME, read_assets()).decode()
    preloaded = set(re.findall(r'modulepreload" href="/assets/\w+/([^"]+)"', shown))
    assert {"shared/ui.js", "shared/words_tr.js", "vendor/preact/preact.js"} <= preloaded
    assert "home/home.js" not in preloaded


@pytest.mark.parametrize("page", [page_routes.ELDER, page_routes.STUDENT], ids=["elder", "student"])
def test_worker_of_the_phones_keeps_all_that_a_phone_loads(client: Any, page: WebPage):
    loaded = set(re.findall(r'(?:href|src)="(/assets/[^"]+)"', html(page, read_assets()).decode()))
    first_line = client.get("/phone/worker.js").text.partition("\n")[0]
    assert loaded == loaded & set(re.findall(r"'(/assets/[^']+)'", first_line))
    assert len(loaded) > 20


@pytest.mark.parametrize("path", SCRIPTS, ids=[str(path.relative_to(STATIC)) for path in SCRIPTS])
def test_no_script_makes_markup_or_code_from_text(path: Any):
    banned = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|javascript:"
    assert not re.findall(banned, path.read_text())


@pytest.mark.parametrize("path", SCRIPTS, ids=[str(path.relative_to(STATIC)) for path in SCRIPTS])
def test_no_script_shows_emoji_which_many_computers_have_no_font_for(path: Any):
    assert not re.findall("[\U00010000-\U0010ffff]", path.read_text())


def test_words_exist_in_both_languages():
    pairs = [(path, path.with_name("words_en.js")) for path in OURS if path.name == "words_tr.js"]
    assert pairs
    for turkish, english in pairs:
        assert _keys(turkish) == _keys(english), turkish.parent


def _keys(path: Any) -> list[str]:
    keys = re.findall(r"^  (\w+):", path.read_text(), re.MULTILINE)
    assert len(keys) == len(set(keys)), "a key is given twice"
    return keys
