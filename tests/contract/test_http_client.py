"""One HTTP request to a provider: its time limit, and its result when it is unknown what the server did."""

import gzip
import socket
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from app.delivery.channels.http import Answer, HttpClient, as_code, judge_status, parse_retry_after
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import Outcome
from tests.support import provider_server
from tests.support.provider_server import Hang, ProviderServer, Reset, ResetAtOnce, Scripted, Slow, Trickle

NOW = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)
QUICK = RetryPolicy(timeout_s=0.6, retries=0)
PATIENT = RetryPolicy(timeout_s=10, retries=0)
LOST, TIMEOUT = SendResult(Outcome.UNKNOWN, "CONNECTION_LOST"), SendResult(Outcome.UNKNOWN, "TIMEOUT")
UNREACHABLE = SendResult(Outcome.TRANSIENT, "UNREACHABLE")


@pytest.fixture
def client() -> Iterator[HttpClient]:
    made = HttpClient(QUICK, connections=2)
    yield made
    made.close()


@pytest.fixture
def patient() -> Iterator[HttpClient]:
    """With a time limit that a busy machine does not reach."""
    made = HttpClient(PATIENT, connections=2)
    yield made
    made.close()


@pytest.fixture(params=[False, True], ids=["http", "https"])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer(tls=request.param).running() as running:
        if running.certificate:
            (tmp_path / "ca.pem").write_bytes(running.certificate)
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        yield running


def test_answer_that_does_not_end_in_time_is_a_timeout(server: ProviderServer) -> None:
    """All of them at the same time, because each case lasts as long as the time limit."""
    answers: list[Scripted] = [Hang(), Slow(0.9, provider_server.Answer(200)), Trickle(), Trickle(in_headers=True)]
    server.answers.extend(answers)
    with closing(HttpClient(QUICK, connections=len(answers))) as client, ThreadPoolExecutor(len(answers)) as pool:
        began = time.monotonic()
        results = list(pool.map(lambda _: client.post(server.base_url, b"{}", {}), answers))
        assert time.monotonic() - began < 2 * QUICK.timeout_s
    assert results == [TIMEOUT] * len(answers)
    assert len(server.requests) == len(answers)


@pytest.mark.parametrize("answer", [Reset(), ResetAtOnce()])
def test_broken_connection_has_an_unknown_outcome(client: HttpClient, server: ProviderServer, answer: Scripted) -> None:
    server.answers.append(answer)
    assert client.post(server.base_url, b"{}", {}) == LOST
    assert len(server.requests) <= 1


def test_connection_is_reused_and_each_answer_has_its_own_time_limit(
    client: HttpClient, server: ProviderServer
) -> None:
    server.answers.extend([Slow(0.25, provider_server.Answer(200, {"a": 1}))] * 3)
    for _ in range(3):
        answer = client.post(server.base_url, b"{}", {})
        assert isinstance(answer, Answer) and answer.json() == {"a": 1}
    assert server.connections == 1


def test_long_answer_is_read_only_to_the_limit(client: HttpClient, server: ProviderServer) -> None:
    server.answers.append(provider_server.Answer(200, b"x" * 1_000_000))
    answer = client.post(server.base_url, b"{}", {})
    assert isinstance(answer, Answer) and 64 * 1024 <= len(answer.body) < 80 * 1024


@cache
def gzip_bomb() -> bytes:
    """65 KB that unpack to 64 MB."""
    return gzip.compress(bytes(1 << 26), 9)


@pytest.mark.parametrize("needs_body", [True, False])
def test_body_of_a_redirect_is_unpacked_only_to_the_limit(
    patient: HttpClient, server: ProviderServer, needs_body: bool
) -> None:
    server.answers.append(provider_server.Answer(302, gzip_bomb(), {"Location": "/", "Content-Encoding": "gzip"}))
    tracemalloc.start()
    answer = patient.post(server.base_url, b"{}", {}, needs_body=needs_body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(answer, Answer) and answer.status == 302
    assert peak < 20_000_000


@pytest.mark.parametrize("location", ["http://[", "http://a:99999/", "\xff\xfe", "//", "x" * 9_000])
def test_invalid_location_of_a_redirect_is_no_failure(
    client: HttpClient, server: ProviderServer, location: str
) -> None:
    server.answers.append(provider_server.Answer(307, "", {"Location": location}))
    answer = client.post(server.base_url, b"{}", {})
    assert isinstance(answer, Answer) and answer.status == 307


def test_redirects_are_not_followed(client: HttpClient, server: ProviderServer) -> None:
    server.answers.append(provider_server.Answer(307, "", {"Location": f"{server.base_url}/other"}))
    answer = client.post(server.base_url, b"{}", {})
    assert isinstance(answer, Answer) and answer.status == 307
    assert len(server.requests) == 1


def test_nothing_is_sent_to_a_server_with_an_untrusted_certificate(client: HttpClient) -> None:
    with ProviderServer(tls=True).running() as server:
        assert client.post(server.base_url, b"{}", {}) == UNREACHABLE
        assert server.requests == []


def test_nothing_is_sent_to_a_server_without_tls(client: HttpClient) -> None:
    with ProviderServer().running() as server:
        assert client.post(server.base_url.replace("http:", "https:"), b"{}", {}) == UNREACHABLE
        assert server.requests == []


def test_port_without_a_server_is_unreachable(client: HttpClient) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert client.post(f"http://127.0.0.1:{taken.getsockname()[1]}", b"{}", {}) == UNREACHABLE
    assert client.post("http://nobody.invalid", b"{}", {}) == UNREACHABLE


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {}, SendResult(Outcome.SENT)),
        (204, {}, SendResult(Outcome.SENT)),
        (302, {}, SendResult(Outcome.PERMANENT, "HTTP_302")),
        (400, {}, SendResult(Outcome.PERMANENT, "HTTP_400")),
        (401, {}, SendResult(Outcome.PERMANENT, "AUTH_REJECTED")),
        (408, {}, SendResult(Outcome.TRANSIENT, "HTTP_408")),
        (413, {}, SendResult(Outcome.PERMANENT, "PAYLOAD_TOO_LARGE")),
        (425, {}, SendResult(Outcome.TRANSIENT, "HTTP_425")),
        (429, {}, SendResult(Outcome.TRANSIENT, "HTTP_429", at_fault=False)),
        (429, {"Retry-After": "7"}, SendResult(Outcome.TRANSIENT, "HTTP_429", retry_after_s=7, at_fault=False)),
        (500, {}, SendResult(Outcome.TRANSIENT, "HTTP_500", overloaded=True)),
        (503, {"Retry-After": "7"}, SendResult(Outcome.TRANSIENT, "HTTP_503", retry_after_s=7, overloaded=True)),
        (504, {}, SendResult(Outcome.UNKNOWN, "HTTP_504", overloaded=True)),
    ],
)
def test_each_status_has_its_result(status: int, headers: dict[str, str], expected: SendResult) -> None:
    assert judge_status(Answer(status, headers, b""), NOW) == expected


@pytest.mark.parametrize(("headers", "expected"), **provider_server.retry_afters(NOW))
def test_retry_after_is_read_in_every_form(headers: dict[str, str], expected: float | None) -> None:
    assert parse_retry_after(headers.get("Retry-After"), NOW) == expected


@pytest.mark.parametrize(
    "value",
    [
        "Mon, 01 Jan 99999 00:00:00 GMT",
        "Mon, 01 Jan 2024 00:00:00 +99999999999",
        "1 Jan 2024 0:0:0 +99999999999999999999",
        "\x00",
    ],
)
def test_impossible_date_is_ignored(value: str) -> None:
    assert parse_retry_after(value, NOW) is None


@pytest.mark.parametrize("value", ["+905551234567", "905551234567", "free text", "lower", "", "A" * 64, 7, None, ["A"]])
def test_text_that_is_not_an_error_code_is_dropped(value: object) -> None:
    assert as_code(value) is None


def test_error_code_is_kept() -> None:
    assert as_code("QUOTA_EXCEEDED_2") == "QUOTA_EXCEEDED_2"
