"""Connections that a client keeps, and its proxies and certificates from the environment."""

import gzip
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from app.delivery.channels.connections import TimedBackend
from app.delivery.channels.http import Answer, HttpClient, bearer
from app.delivery.channels.public_addresses import Resolver
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import Outcome
from tests.support import provider_server
from tests.support.certificates import Authority
from tests.support.provider_server import Hang, ProviderServer, Reset, Slow
from tests.support.smtp_server import rude_server

QUICK = RetryPolicy(timeout_s=1.5, retries=0)
PATIENT = RetryPolicy(timeout_s=10, retries=0)
# For requests without TLS that end at the time limit.
HURRIED = RetryPolicy(timeout_s=0.6, retries=0)
LOST, TIMEOUT = SendResult(Outcome.UNKNOWN, "CONNECTION_LOST"), SendResult(Outcome.UNKNOWN, "TIMEOUT")
UNREACHABLE = SendResult(Outcome.TRANSIENT, "UNREACHABLE")
INVALID = SendResult(Outcome.PERMANENT, "INVALID_ADDRESS")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def client() -> Iterator[HttpClient]:
    made = HttpClient(QUICK, connections=2)
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer().running() as running:
        yield running


def read_request(conn: socket.socket) -> bytes:
    """The head of a request without a body."""
    head = b""
    while b"\r\n\r\n" not in head and (piece := conn.recv(65536)):
        head += piece
    return head


def post(client: HttpClient, port: int, body: bytes = b"") -> Answer | SendResult:
    return client.post(f"http://127.0.0.1:{port}/", body, {})


# Reuse of connections.


def test_connection_closed_by_the_server_is_replaced(client: HttpClient) -> None:
    closed = threading.Semaphore(0)

    def answer_once(conn: socket.socket) -> None:
        read_request(conn)
        conn.sendall(OK)
        conn.shutdown(socket.SHUT_RDWR)
        closed.release()

    with rude_server(answer_once) as port:
        for _ in range(3):
            assert isinstance(post(client, port), Answer)
            closed.acquire(timeout=5)
            time.sleep(0.05)


def test_connection_with_connection_close_is_not_reused(client: HttpClient) -> None:
    def answer_once(conn: socket.socket) -> None:
        read_request(conn)
        conn.sendall(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        read_request(conn)

    with rude_server(answer_once) as port:
        assert [isinstance(post(client, port), Answer) for _ in range(3)] == [True] * 3


@pytest.mark.parametrize("answer", [provider_server.Answer(200, "{}"), provider_server.Answer(404, "x" * 1000)])
def test_connection_is_reused_after_a_short_unneeded_body(
    client: HttpClient, server: ProviderServer, answer: provider_server.Answer
) -> None:
    server.answers.extend([answer] * 3)
    for _ in range(3):
        assert isinstance(client.post(server.base_url, b"{}", {}, needs_body=False), Answer)
    assert server.connections == 1


def test_request_after_a_failure_has_a_new_connection(server: ProviderServer) -> None:
    ok = provider_server.Answer(200, {})
    server.answers.extend([ok, Reset(), ok, Hang(), ok])
    with closing(HttpClient(HURRIED, connections=2)) as client:
        answers = [client.post(server.base_url, b"{}", {}) for _ in range(5)]
    assert [one if isinstance(one, SendResult) else one.status for one in answers] == [200, LOST, 200, TIMEOUT, 200]
    assert server.connections == 3


def test_threads_never_wait_for_a_connection_and_few_are_kept(server: ProviderServer) -> None:
    client = HttpClient(PATIENT, connections=2)
    server.answers.extend([Slow(0.5, provider_server.Answer(200, {}))] * 12)
    with ThreadPoolExecutor(6) as pool:
        for opened in (6, 6 + 4):
            assert all(isinstance(one, Answer) for one in pool.map(lambda _: post(client, server.port), range(6)))
            assert (server.connections, server.most_at_once) == (opened, 6)
    client.close()


def test_connections_to_the_most_recent_hosts_are_kept() -> None:
    client = HttpClient(PATIENT, connections=2)
    with ExitStack() as stack:
        servers = [stack.enter_context(ProviderServer().running()) for _ in range(11)]
        for server in (*servers[:10], *servers[:10], servers[10], servers[10], servers[0], *servers[2:]):
            assert isinstance(post(client, server.port), Answer)
        assert [server.connections for server in servers] == [2] + [1] * 10
    client.close()


def test_closed_client_lets_a_request_end(server: ProviderServer) -> None:
    client = HttpClient(PATIENT, connections=2)
    server.answers.append(Slow(0.5, provider_server.Answer(200, {})))
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(post, client, server.port)
        while not server.requests:
            time.sleep(0.01)
        client.close()
        assert isinstance(answer.result(), Answer)
    client.close()


# Time limits.


def test_server_that_reads_slowly_does_not_extend_the_time_limit() -> None:
    """Each read makes room to send more, so that no single wait is long."""

    def read_slowly(conn: socket.socket) -> None:
        while conn.recv(16_384):
            time.sleep(0.05)

    with rude_server(read_slowly, small_buffers=True) as port, closing(HttpClient(HURRIED, connections=2)) as client:
        began = time.monotonic()
        assert post(client, port, b"x" * 1_000_000) == TIMEOUT
        assert time.monotonic() - began < HURRIED.timeout_s + 0.4


def test_address_that_drops_packets_leaves_time_for_the_next(server: ProviderServer) -> None:
    network = TimedBackend(Resolver(lambda host: ["127.0.0.2", "127.0.0.1"]))
    client = HttpClient(RetryPolicy(timeout_s=3, retries=0), connections=2, network=network)
    with silent_address("127.0.0.2", server.port):
        assert isinstance(client.post(f"http://hooks.example:{server.port}/", b"{}", {}), Answer)
    client.close()


@contextmanager
def silent_address(host: str, port: int) -> Iterator[None]:
    """Fills the backlog of a listening socket, so that the packets of the next client are dropped."""
    with ExitStack() as stack:
        stack.enter_context(socket.create_server((host, port), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((host, port))
        yield


# Requests and answers.


def test_compressed_answer_is_read(client: HttpClient, server: ProviderServer) -> None:
    packed = gzip.compress(b'{"id": "7"}')
    server.answers.append(provider_server.Answer(200, packed, {"Content-Encoding": "gzip"}))
    answer = client.post(server.base_url, b"{}", {})
    assert isinstance(answer, Answer) and answer.json() == {"id": "7"}


def test_broken_compressed_answer_has_an_unknown_outcome(client: HttpClient, server: ProviderServer) -> None:
    server.answers.append(provider_server.Answer(200, b"no gzip", {"Content-Encoding": "gzip"}))
    assert client.post(server.base_url, b"{}", {}) == LOST


def test_headers_are_found_in_any_case(client: HttpClient, server: ProviderServer) -> None:
    server.answers.append(provider_server.Answer(200, {}, {"X-Queued": "yes"}))
    answer = client.post(server.base_url, b"{}", {})
    assert isinstance(answer, Answer)
    assert answer.headers["x-queued"] == answer.headers.get("X-QUEUED") == "yes"
    assert answer.headers.get("x-other") is None


@pytest.mark.parametrize("content", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 2oo OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: y"])
def test_invalid_answer_has_an_unknown_outcome(client: HttpClient, content: bytes) -> None:
    def answer(conn: socket.socket) -> None:
        read_request(conn)
        conn.sendall(content)
        conn.shutdown(socket.SHUT_RDWR)

    with rude_server(answer) as port:
        assert post(client, port) == LOST


def test_credentials_in_the_url_become_a_header(client: HttpClient, server: ProviderServer) -> None:
    url = server.base_url.replace("http://", "http://ay%40se:gizli@")
    client.post(url, b"{}", {})
    client.post(url, b"{}", {}, auth=bearer("t"))
    # Base64 of "ay@se:gizli".
    assert [one.headers["Authorization"] for one in server.requests] == ["Basic YXlAc2U6Z2l6bGk=", "Bearer t"]
    assert server.requests[0].headers["Host"] == f"127.0.0.1:{server.port}"


def test_non_ascii_characters_of_a_url_are_encoded(client: HttpClient, server: ProviderServer) -> None:
    client.post(f"{server.base_url}/çağrı %2Fa?şehir=İzmir&b=%C3%A7#parça", b"{}", {})
    assert server.requests[0].path == "/%C3%A7a%C4%9Fr%C4%B1%20%2Fa?%C5%9Fehir=%C4%B0zmir&b=%C3%A7"


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://127.0.0.1/", "http://", "http://a:99999/", "http://a b/"])
def test_invalid_url_is_refused_without_a_request(client: HttpClient, url: str) -> None:
    assert client.post(url, b"{}", {}) == INVALID


@pytest.mark.parametrize("value", ["a\r\nHost: b", "a\nb", " a", "ş"])
def test_invalid_header_is_refused_without_a_request(client: HttpClient, server: ProviderServer, value: str) -> None:
    assert client.post(server.base_url, b"{}", {"X-Cut": value}) == INVALID
    assert server.requests == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_ipv6_host_keeps_its_brackets(tmp_path: Path, scheme: str) -> None:
    authority = Authority(tmp_path)
    context = authority.serve_as("::1")
    client = HttpClient(PATIENT, connections=2, ca_file=str(authority.file))
    heads: list[bytes] = []

    def serve(listening: socket.socket) -> None:
        conn, _ = listening.accept()
        with context.wrap_socket(conn, server_side=True) if scheme == "https" else conn as conn:
            heads.append(read_request(conn))
            conn.sendall(OK)

    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        port = listening.getsockname()[1]
        assert isinstance(client.post(f"{scheme}://[::1]:{port}/", b"", {}), Answer)
    assert f"\r\nHost: [::1]:{port}\r\n".encode() in heads[0]
    client.close()


# Proxies and certificates.


@contextmanager
def tunnel(target: int | None = None, answer: bytes = b"HTTP/1.1 200 Go\r\n\r\n") -> Iterator[tuple[int, list[bytes]]]:
    """A proxy for https:// that connects to a local port, or only sends `answer` and closes."""
    heads: list[bytes] = []

    def behave(conn: socket.socket) -> None:
        heads.append(read_request(conn))
        conn.sendall(answer)
        if target is None:
            conn.shutdown(socket.SHUT_RDWR)
            return
        with socket.create_connection(("127.0.0.1", target)) as onward:
            back = threading.Thread(target=copy, args=(onward, conn), daemon=True)
            back.start()
            copy(conn, onward)
            back.join(5)

    with rude_server(behave) as port:
        yield port, heads


def copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def test_http_proxy_receives_the_whole_url(
    client: HttpClient, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://kim:ne%20ki@127.0.0.1:{server.port}")
    for _ in range(2):
        assert isinstance(client.post("http://gateway.invalid:81/send?a=b", b"{}", {}), Answer)
    first, second = server.requests
    assert (first.path, first.headers["Host"]) == ("http://gateway.invalid:81/send?a=b", "gateway.invalid:81")
    assert first.headers["Proxy-Authorization"] == "Basic a2ltOm5lIGtp"
    assert second.body == b"{}" and server.connections == 1


@pytest.fixture
def tls_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer(tls=True).running() as running:
        assert running.certificate is not None
        (tmp_path / "ca.pem").write_bytes(running.certificate)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        yield running


def test_https_proxy_opens_a_tunnel_that_is_reused(
    client: HttpClient, tls_server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tunnel(tls_server.port) as (port, heads):
        monkeypatch.setenv("HTTPS_PROXY", f"http://kim:ne@127.0.0.1:{port}")
        for _ in range(2):
            answer = client.post("https://localhost:444/send", b"{}", {}, auth=bearer("t"))
            assert isinstance(answer, Answer) and answer.status == 200
        client.close()
    [head] = heads
    assert head.startswith(b"CONNECT localhost:444 HTTP/1.")
    assert b"proxy-authorization: basic a2ltom5l" in head.lower() and b"Bearer" not in head
    assert tls_server.requests[0].path == "/send" and tls_server.requests[0].headers["Proxy-Authorization"] is None


REFUSALS: dict[str, Callable[[], object]] = {
    "refuses": lambda: tunnel(answer=b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"),
    "hangs up": lambda: tunnel(answer=b""),
    "babbles": lambda: tunnel(answer=b"SSH-2.0-OpenSSH\r\n\r\n"),
    "breaks the handshake": lambda: tunnel(),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
def test_proxy_that_opens_no_tunnel_is_unreachable(
    client: HttpClient, refusal: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        port, _ = stack.enter_context(refusal())  # type: ignore[arg-type]
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        assert client.post("https://localhost:444/", b"{}", {}) == UNREACHABLE


def test_silent_proxy_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    with rude_server(lambda conn: time.sleep(3)) as port, closing(HttpClient(HURRIED, connections=2)) as client:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        began = time.monotonic()
        assert client.post("https://localhost:444/", b"{}", {}) == UNREACHABLE
        assert time.monotonic() - began < HURRIED.timeout_s + 0.4


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_missing_proxy_is_unreachable(client: HttpClient, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert client.post(f"{scheme}://localhost:444/", b"{}", {}) == UNREACHABLE


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(Hang(), TIMEOUT), (Reset(), LOST)],
)
def test_failure_inside_a_tunnel_has_an_unknown_outcome(
    client: HttpClient,
    tls_server: ProviderServer,
    answer: provider_server.Scripted,
    expected: SendResult,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tls_server.answers.append(answer)
    with tunnel(tls_server.port) as (port, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        assert client.post("https://localhost:444/", b"{}", {}) == expected


@pytest.mark.parametrize(
    ("except_for", "is_direct"),
    [
        ("127.0.0.1", True),
        ("elsewhere.example, 127.0.0.0/8", True),
        ("*", True),
        ("10.0.0.0/8", False),
        ("elsewhere.example", False),
        ("not/anything", False),
        ("", False),
    ],
)
def test_hosts_in_no_proxy_are_connected_directly(
    client: HttpClient, server: ProviderServer, except_for: str, is_direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", except_for)
    assert isinstance(post(client, server.port), Answer) is is_direct


@pytest.mark.parametrize(
    ("except_for", "is_direct"),
    [("localhost", True), (".localhost", True), ("host", False), ("localhost:81", False), ("LOCALHOST:{port}", True)],
)
def test_no_proxy_matches_the_last_labels_of_a_host(
    client: HttpClient, server: ProviderServer, except_for: str, is_direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", except_for.format(port=server.port))
    assert isinstance(client.post(f"http://localhost:{server.port}/", b"{}", {}), Answer) is is_direct


def test_unsupported_kind_of_proxy_is_refused(client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    assert client.post("http://localhost:444/", b"{}", {}) == INVALID


def test_client_without_trust_env_uses_no_proxy(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    client = HttpClient(QUICK, connections=2, trust_env=False)
    assert isinstance(post(client, server.port), Answer)
    client.close()


def test_passwords_of_a_netrc_file_are_not_sent(
    client: HttpClient, server: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login kim password ne\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert isinstance(post(client, server.port), Answer)
    assert server.requests[0].headers["Authorization"] is None


def test_curl_ca_bundle_is_read(
    client: HttpClient, tls_server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURL_CA_BUNDLE", os.environ["REQUESTS_CA_BUNDLE"])
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    assert isinstance(client.post(tls_server.base_url, b"{}", {}), Answer)
