"""Signed Firebase ID tokens, verified against our own certificate server."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from firebase_admin import _token_gen

from app.api.firebase import FirebaseTokens
from app.api.identities import FirebaseUid, TokenExpired, TokenInvalid, VerifierUnavailable
from app.bootstrap.api import token_verifier
from tests.support.api import settings_for_tests

PROJECT = "yaninda-test"
KEY_ID = "key-1"


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _certificate(key: rsa.RSAPrivateKey) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "securetoken")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.PEM).decode()


SIGNER, STRANGER = _key(), _key()
CERTIFICATES = json.dumps({KEY_ID: _certificate(SIGNER)}).encode()


class CertificateServer(ThreadingHTTPServer):
    answer: tuple[int, bytes] = (200, CERTIFICATES)
    requests = 0


class _Handler(BaseHTTPRequestHandler):
    server: CertificateServer

    def do_GET(self) -> None:
        self.server.requests += 1
        status, body = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "public, max-age=3600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[CertificateServer]:
    server = CertificateServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    # The address is a constant of the library.
    monkeypatch.setattr(_token_gen, "ID_TOKEN_CERT_URI", f"http://127.0.0.1:{server.server_port}/certs")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def tokens(google: CertificateServer) -> Iterator[FirebaseTokens]:
    verifier = FirebaseTokens(PROJECT)
    yield verifier
    verifier.close()


def signed(key: Any = SIGNER, algorithm: str = "RS256", headers: dict[str, Any] | None = None, **changes: Any) -> str:
    now = int(time.time())
    claims = {
        "iss": f"https://securetoken.google.com/{PROJECT}",
        "aud": PROJECT,
        "sub": "uid-1",
        "iat": now - 10,
        "exp": now + 3600,
        "auth_time": now - 10,
    } | changes
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": KEY_ID} if headers is None else headers)


def test_token_of_our_project_returns_its_user(tokens: FirebaseTokens):
    assert tokens.verify(signed()) == FirebaseUid("uid-1")


def test_certificates_are_fetched_once(tokens: FirebaseTokens, google: CertificateServer):
    for _ in range(5):
        tokens.verify(signed())
    for _ in range(5):
        with pytest.raises(TokenInvalid):
            tokens.verify(signed(headers={"kid": "never-seen"}))
    assert google.requests == 1


REFUSED: dict[str, dict[str, Any]] = {
    "signed by a stranger": {"key": STRANGER},
    "key unknown": {"headers": {"kid": "key-2"}},
    "no key named": {"headers": {}},
    "other project": {"aud": "another-project"},
    "other issuer": {"iss": "https://securetoken.google.com/another-project"},
    "no subject": {"sub": None},
    "empty subject": {"sub": ""},
    "long subject": {"sub": "u" * 129},
    "from the future": {"iat": int(time.time()) + 3600},
    "no beginning": {"iat": None},
    "no end": {"exp": None},
    "shared secret": {"key": "k" * 40, "algorithm": "HS256"},
    "unsigned": {"key": None, "algorithm": "none"},
}


@pytest.mark.parametrize("how", REFUSED.values(), ids=REFUSED.keys())
def test_forged_token_is_refused(tokens: FirebaseTokens, how: dict[str, Any]):
    with pytest.raises(TokenInvalid):
        tokens.verify(signed(**how))


@pytest.mark.parametrize("token", ["", "a", "a.b.c", "..", "W10.W10.AA", "bnVsbA.bnVsbA.AA", "e30.MQ.AA", "e30.e30.AA"])
def test_malformed_token_is_refused(tokens: FirebaseTokens, token: str):
    with pytest.raises(TokenInvalid):
        tokens.verify(token)


def test_expired_token_is_reported_as_expired(tokens: FirebaseTokens):
    now = int(time.time())
    with pytest.raises(TokenExpired):
        tokens.verify(signed(iat=now - 7200, exp=now - 3600))


@pytest.mark.parametrize("answer", [(500, b""), (404, b"{}")])
def test_missing_certificates_are_not_blamed_on_the_token(
    tokens: FirebaseTokens, google: CertificateServer, answer: Any
):
    google.answer = answer
    with pytest.raises(VerifierUnavailable):
        tokens.verify(signed())


def test_network_failure_is_not_blamed_on_the_token(tokens: FirebaseTokens, google: CertificateServer):
    google.shutdown()
    google.server_close()
    with pytest.raises(VerifierUnavailable):
        tokens.verify(signed())


def test_setting_chooses_the_verifier():
    firebase = token_verifier(settings_for_tests(auth_mode="firebase", firebase_project_id=PROJECT, auth_secret=None))
    assert isinstance(firebase, FirebaseTokens)
    firebase.close()


def test_emulator_is_trusted_only_if_configured(tokens: FirebaseTokens, monkeypatch: pytest.MonkeyPatch):
    unsigned = signed(key=None, algorithm="none", headers={})
    with pytest.raises(TokenInvalid):
        tokens.verify(unsigned)
    monkeypatch.setenv("FIREBASE_AUTH_EMULATOR_HOST", "127.0.0.1:9099")
    # The settings name no emulator, so the variable alone must not make the token valid.
    with pytest.raises(VerifierUnavailable):
        tokens.verify(unsigned)
    emulated = FirebaseTokens(PROJECT, emulator=True)
    assert emulated.verify(unsigned) == FirebaseUid("uid-1")
    emulated.close()
