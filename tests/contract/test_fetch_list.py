"""Lists from a path or over HTTP. An unchanged list costs one request, or none of its bytes."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.roster.lists.fetch_list import FetchedList, UnchangedList, Validators, fetch_list
from app.roster.lists.list_refused import ListRefused, Refusal
from app.roster.lists.reading_rules import ListLimits
from tests.support.lists import packed
from tests.support.provider_server import (
    Answer,
    Hang,
    ProviderServer,
    Request,
    Reset,
    Scripted,
    Trickle,
    TrickledHeaders,
)

LIMITS = ListLimits(time_s=20)
QUICK = ListLimits(time_s=0.5)


class Publisher(ProviderServer):
    """Has one list, and knows when it has not changed."""

    def __init__(self, content: bytes, *, tls: bool = False) -> None:
        super().__init__(tls=tls)
        self.headers = {
            "ETag": '"1"',
            "Last-Modified": "Thu, 19 Nov 2026 01:00:00 GMT",
            "Content-Type": "application/zip",
        }
        self.content = content

    def judge(self, request: Request) -> Scripted:
        names = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
        asked = [request.headers.get(name) == self.headers[own] for own, name in names.items() if own in self.headers]
        return Answer(304, b"", self.headers) if asked and all(asked) else Answer(200, self.content, self.headers)


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    return packed(tmp_path / "made.zip", b"a;b").read_bytes()


@pytest.fixture
def publisher(content: bytes) -> Iterator[Publisher]:
    with Publisher(content).running() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "fetched"


def fetch(
    url: str, folder: Path, known: Validators | None = None, limits: ListLimits = LIMITS
) -> FetchedList | UnchangedList:
    return fetch_list(url, known, folder, limits, allow_http_on_loopback=True)


def refusal(url: str, folder: Path, limits: ListLimits = LIMITS) -> Refusal:
    with pytest.raises(ListRefused) as caught:
        fetch(url, folder, limits=limits)
    assert "127.0.0.1" not in caught.value.message, "an address may hold a token"
    assert not list(folder.glob("*")), "nothing is left behind"
    return caught.value.reason


def test_unchanged_list_costs_one_request(publisher: Publisher, folder: Path, content: bytes) -> None:
    first = fetch(publisher.base_url, folder)
    assert (type(first), first.file.read_bytes()) == (FetchedList, content)
    again = fetch(publisher.base_url, folder, first.validators)
    assert again == UnchangedList(first.file, first.validators)
    assert len(publisher.requests) == 2


@pytest.mark.parametrize("kept", [("ETag",), ("Last-Modified",), ()])
def test_servers_may_have_either_validator_or_none(
    publisher: Publisher, folder: Path, content: bytes, kept: tuple[str, ...]
) -> None:
    publisher.headers = {name: value for name, value in publisher.headers.items() if name in (*kept, "Content-Type")}
    first = fetch(publisher.base_url, folder)
    again = fetch(publisher.base_url, folder, first.validators)
    assert again == UnchangedList(first.file, first.validators)
    assert again.file.read_bytes() == content


def test_changed_list_takes_the_place_of_the_one_before(publisher: Publisher, folder: Path, tmp_path: Path) -> None:
    first = fetch(publisher.base_url, folder)
    publisher.headers["ETag"] = '"2"'
    publisher.content = packed(tmp_path / "made.zip", b"other").read_bytes()
    second = fetch(publisher.base_url, folder, first.validators)
    assert (type(second), list(folder.iterdir())) == (FetchedList, [second.file])
    assert second.validators.etag == '"2"'


def test_list_is_fetched_again_if_its_file_is_gone(publisher: Publisher, folder: Path) -> None:
    first = fetch(publisher.base_url, folder)
    first.file.unlink()
    assert isinstance(fetch(publisher.base_url, folder, first.validators), FetchedList)


def test_redirects_are_followed_three_times(publisher: Publisher, folder: Path, content: bytes) -> None:
    publisher.answers.extend(Answer(302, b"", {"Location": f"/{n}"}) for n in range(3))
    assert fetch(publisher.base_url, folder).file.read_bytes() == content
    assert [request.path for request in publisher.requests] == ["/", "/0", "/1", "/2"]
    publisher.answers.extend(Answer(302, b"", {"Location": "/"}) for _ in range(4))
    assert refusal(publisher.base_url, folder.with_name("other")) is Refusal.REDIRECT


@pytest.mark.parametrize("target", ["http://ornek.org/", "ftp://127.0.0.1/", "file:///etc/passwd", "gopher://x"])
def test_redirects_lead_to_https_only(publisher: Publisher, folder: Path, target: str) -> None:
    publisher.answers.append(Answer(301, b"", {"Location": target}))
    assert refusal(publisher.base_url, folder) is Refusal.REDIRECT


def test_http_needs_its_flag(publisher: Publisher, folder: Path) -> None:
    with pytest.raises(ListRefused):
        fetch_list(publisher.base_url, None, folder, LIMITS)
    assert publisher.requests == []


def test_https_is_checked(content: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Publisher(content, tls=True).running() as server:
        assert refusal(server.base_url, folder) is Refusal.UNREACHABLE
        (tmp_path / "ca.pem").write_bytes(server.certificate or b"")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        assert fetch_list(server.base_url, None, folder, LIMITS).file.read_bytes() == content


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(200, "<html>", {"Content-Type": "text/html"}), Refusal.HTML),
        (Answer(200, "\n<!doctype html>", {"Content-Type": "application/zip"}), Refusal.HTML),
        (Answer(200, "a;b"), Refusal.NOT_A_ZIP),
        (Answer(404, ""), Refusal.NOT_READABLE),
        (Answer(304, ""), Refusal.NOT_READABLE),
        (Answer(503, ""), Refusal.NOT_READABLE),
        (Answer(200, b"PK\x03\x04" + bytes(3000)), Refusal.TOO_LARGE),
        (Reset(), Refusal.UNREACHABLE),
    ],
)
def test_answers_without_a_list_are_refused(
    publisher: Publisher, folder: Path, answer: Scripted, reason: Refusal
) -> None:
    publisher.answers.append(answer)
    assert refusal(publisher.base_url, folder, replace(LIMITS, archive_bytes=2000)) is reason


@pytest.mark.parametrize("answer", [Hang(), Trickle(), TrickledHeaders()], ids=["silent", "body", "headers"])
def test_the_time_limit_is_for_all_together(publisher: Publisher, folder: Path, answer: Scripted) -> None:
    publisher.answers.append(answer)
    assert refusal(publisher.base_url, folder, QUICK) is Refusal.TOO_LATE


def test_local_file_is_read_only_when_it_was_touched(tmp_path: Path, folder: Path, content: bytes) -> None:
    file = tmp_path / "list.zip"
    file.write_bytes(content)
    first = fetch(str(file), folder)
    assert (type(first), first.file) == (FetchedList, file)
    known = replace(first.validators, sha256="not looked at")
    assert fetch(str(file), folder, known) == UnchangedList(file, known)
    os.utime(file, (1, 1))
    touched = fetch(str(file), folder, first.validators)
    assert touched == UnchangedList(file, replace(first.validators, mtime_ns=10**9))
    file.write_bytes(content + b"x")
    assert isinstance(fetch(str(file), folder, touched.validators), FetchedList)


def test_local_path_has_to_be_a_file(tmp_path: Path, folder: Path, content: bytes) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "list.zip").write_bytes(content)
    assert refusal(str(tmp_path / "pipe"), folder) is Refusal.NOT_READABLE
    assert refusal(str(tmp_path / "none"), folder) is Refusal.NOT_READABLE
    assert refusal(str(tmp_path / "list.zip"), folder, ListLimits(archive_bytes=10)) is Refusal.TOO_LARGE
