"""Callers who send slowly, do not read, or send what is no HTTP, against one process of the api with four threads.
Loopback has many addresses, so the callers come from others than their victim."""

import contextlib
import io
import json
import re
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import pytest

from app.api.caller_connection import HEADERS_WITHIN_S, LINGER_S, MOST_HEADER_BYTES
from app.db.database import Database
from app.roster.models import ConsumerScope
from tests.support.api_process import ApiProcess, running_api
from tests.support.world import leave_consumer

REQUEST_TIMEOUT_S = 3
MOST_PER_ADDRESS = 310
CALLERS = 300
PUSHER = b"yr_pusher"
LIST = "/api/v1/roster/students/lists/enrolment"
HEAD = b"GET /me HTTP/1.1\r\nHost: yaninda\r\n"
PRESS = b"POST /tasks HTTP/1.1\r\nHost: yaninda\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def api(database_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with running_api(
        database_url,
        redis_url,
        API_THREADS="4",
        REQUEST_TIMEOUT_S=str(REQUEST_TIMEOUT_S),
        CONNECTIONS_PER_ADDRESS=str(MOST_PER_ADDRESS),
        METRICS_TOKEN="m" * 32,
        ROSTER_DIR=str(tmp_path_factory.mktemp("roster")),
    ) as started:
        db = Database(database_url, pool_size=1)
        with db.transaction() as conn:
            leave_consumer(conn, "students", ConsumerScope.PUSH, PUSHER.decode())
        db.close()
        yield started


@contextmanager
def callers(api: ApiProcess, number: int, sent: bytes, host: int = 2) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(closing(api.connect(sent, f"127.0.0.{host}"))) for _ in range(number)]


def answer_of(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    received = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            received += part
    return bytes(received)


def status_of_answer(received: bytes) -> tuple[int, str | None]:
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 "), received[:100]
    is_problem = b"application/problem+json" in head
    return int(head[9:12]), json.loads(body)["code"] if is_problem else None


@pytest.mark.parametrize(
    "sent",
    [HEAD, PRESS + b"Content-Length: 1000\r\n\r\n{", PRESS + b"Transfer-Encoding: chunked\r\n\r\n1000\r\n{", b""],
    ids=["headers", "body", "chunks", "nothing"],
)
def test_silent_callers_hold_no_thread(api: ApiProcess, sent: bytes) -> None:
    with callers(api, CALLERS, sent):
        took = [api.ask("GET", "/docs").took_s for _ in range(20)]
    assert max(took) < 1.0


@pytest.mark.parametrize(
    ("sent", "within_s"),
    [(HEAD, HEADERS_WITHIN_S), (PRESS + b"Content-Length: 9\r\n\r\n{", REQUEST_TIMEOUT_S)],
    ids=["headers", "body"],
)
def test_a_request_that_is_not_complete_in_time_is_refused(api: ApiProcess, sent: bytes, within_s: float) -> None:
    with closing(api.connect(sent)) as slow:
        began = time.monotonic()
        # A byte now and then gives no more time.
        slow.settimeout(within_s / 2)
        with pytest.raises(TimeoutError):
            slow.recv(1)
        slow.sendall(b"x")
        slow.settimeout(10)
        received = answer_of(slow)
    assert within_s * 0.7 < time.monotonic() - began < within_s + 2
    assert status_of_answer(received) == (408, "request_too_slow")


def test_callers_who_do_not_read_hold_no_thread(api: ApiProcess) -> None:
    # Each asks for more than the kernel holds for them.
    with callers(api, 20, b"GET /openapi.json HTTP/1.1\r\nHost: yaninda\r\n\r\n" * 12):
        took = [api.ask("GET", "/healthz").took_s for _ in range(20)]
    assert max(took) < 1.0


def test_connections_of_one_address_are_bounded(api: ApiProcess) -> None:
    with callers(api, MOST_PER_ADDRESS, b"", host=3):
        with closing(api.connect(HEAD + b"\r\n", "127.0.0.3")) as one_more:
            assert answer_of(one_more) == b""
        assert api.ask("GET", "/healthz").status == 200
    assert api.ask("GET", "/healthz", source="127.0.0.3").status == 200


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 400),
        (PRESS + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
        (b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 10_000, 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * (2 * MOST_HEADER_BYTES), 431),
    ],
    ids=lambda value: value[:60].decode("latin-1") if isinstance(value, bytes) else str(value),
)
def test_what_is_no_request_is_a_problem_and_ends_the_connection(api: ApiProcess, sent: bytes, expected: int) -> None:
    with closing(api.connect(sent)) as connection:
        status, code = status_of_answer(answer_of(connection))
    assert (status, code) == (expected, {400: "bad_request", 431: "headers_too_large"}[expected])


def test_bytes_behind_a_body_are_the_next_request(api: ApiProcess) -> None:
    first = PRESS + b"Content-Length: 2\r\n\r\n{}"
    last = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with closing(api.connect(first + b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n" + last)) as connection:
        received = answer_of(connection)
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"401", b"404", b"200"]


def test_a_header_behind_the_body_is_none(api: ApiProcess) -> None:
    body = b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    with closing(api.connect(PRESS + body + b"Authorization: Bearer x\r\n\r\n")) as connection:
        assert status_of_answer(answer_of(connection)) == (401, "token_missing")


def test_a_flood_of_requests_on_one_connection_ends_it(api: ApiProcess) -> None:
    before = api.memory_mb()
    with closing(api.connect()) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n" * 50_000)
        assert len(re.findall(rb"HTTP/1.1 404", answer_of(connection))) < 20
    assert api.memory_mb() - before < 20


def test_a_body_that_ends_early_leaves_the_process_well(api: ApiProcess) -> None:
    with closing(api.connect(PRESS + b"Content-Length: 9\r\n\r\n{")) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert answer_of(connection) == b""
    assert api.ask("GET", "/healthz").status == 200


def test_a_caller_who_has_closed_its_side_reads_the_answer(api: ApiProcess) -> None:
    with closing(api.connect(HEAD + b"\r\n")) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert status_of_answer(answer_of(connection)) == (401, "token_missing")


def test_an_endless_body_is_refused_before_it_is_read(api: ApiProcess) -> None:
    with closing(api.connect(PRESS + b"Content-Length: 1000000000\r\n\r\n{")) as connection:
        began = time.monotonic()
        status, code = status_of_answer(answer_of(connection))
        assert (status, code) == (401, "token_missing")
        assert time.monotonic() - began < LINGER_S + 1


@pytest.mark.parametrize(
    "target",
    [
        "//metrics",
        "/%2e/metrics",
        "/./metrics",
        "/x/../metrics",
        "/%6Detrics",
        "/metrics%00",
        "http://a/metrics",
        "/\\metrics",
    ],
)
def test_only_the_normal_spelling_of_a_path_is_taken(api: ApiProcess, target: str) -> None:
    answer = api.ask("GET", target, {"Authorization": "Bearer " + "m" * 32})
    assert (answer.status, answer.code) == (404, "route_unknown")


@pytest.mark.parametrize("name", ["SCRIPT_NAME", "Script-Name", "X-Script-Name", "PATH_INFO", "X-Forwarded-Prefix"])
def test_no_header_moves_the_path(api: ApiProcess, name: str) -> None:
    assert api.ask("GET", "/me/metrics", {name: "/me"}).status == 404
    assert api.ask("GET", "/healthz", {name: "/healthz"}).status == 200


def test_metrics_need_the_token(api: ApiProcess) -> None:
    assert api.ask("GET", "/metrics").status == 401
    assert api.ask("GET", "/metrics", {"Authorization": "Bearer " + "m" * 32}).status == 200


def test_scrapers_without_a_pause_delay_nobody(api: ApiProcess) -> None:
    """The figures are made once a second, however many ask: each making would count the requests before it."""
    token, stop, began = {"Authorization": "Bearer " + "m" * 32}, threading.Event(), time.monotonic()

    def scrape_on(number: int) -> list[bytes]:
        read: list[bytes] = []
        while not stop.is_set():
            read.append(api.ask("GET", "/metrics", token, source=f"127.0.0.{4 + number % 4}").body)
        return read

    with ThreadPoolExecutor(32) as threads:
        scrapers = [threads.submit(scrape_on, number) for number in range(32)]
        took = [api.ask("GET", "/docs").took_s for _ in range(20)]
        stop.set()
        read = [body for scraper in scrapers for body in scraper.result()]
    assert max(took) < 1.0
    assert len(set(read)) <= time.monotonic() - began + 1 < len(read)


def test_slow_uploads_block_nobody(api: ApiProcess) -> None:
    upload = f"PUT {LIST} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n".encode()
    with callers(api, 20, upload + b"Authorization: Bearer " + PUSHER + b"\r\n\r\nPK"):
        took = [api.ask("GET", "/docs").took_s for _ in range(20)]
    assert max(took) < 1.0


@pytest.mark.parametrize("is_chunked", [False, True], ids=["with its length", "in chunks"])
def test_a_large_upload_is_never_held_as_a_whole(api: ApiProcess, is_chunked: bool) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("enrolment.csv", bytes(40_000_000))
    content, before = packed.getvalue(), api.memory_mb()
    pieces = (content[first : first + 100_000] for first in range(0, len(content), 100_000))
    answer = api.ask("PUT", LIST, {"Authorization": f"Bearer {PUSHER.decode()}"}, pieces if is_chunked else content)
    assert (answer.status, json.loads(answer.body)["size"]) == (200, len(content))
    assert api.memory_mb() - before < 20
