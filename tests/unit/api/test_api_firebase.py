"""Signed Firebase ID tokens, verified against our own certificate server."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from firebase_admin import _token_gen, _user_mgt

from app.api.firebase import FirebaseTokens
from app.api.firebase_accounts import KEPT_S, PAUSE_S, TOKEN_LIFE_S, AccountUnknown, FirebaseAccount, FirebaseAccounts
from app.api.identities import (
    AnonymousRefused,
    FirebaseUid,
    TokenExpired,
    TokenInvalid,
    TokenRevoked,
    VerifierUnavailable,
)
from app.bootstrap.api import token_verifier
from app.settings.settings import SettingsError
from tests.support.api import settings_for_tests
from tests.support.fcm_server import FcmServer

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
    account: dict[str, Any] | None = None
    """The account that a lookup finds."""
    lookups: list[str]


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

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.lookups.append(self.path)
        users = [self.server.account] if self.server.account else []
        body = json.dumps({"users": users}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[CertificateServer]:
    server = CertificateServer(("127.0.0.1", 0), _Handler)
    server.lookups = []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    # The addresses are constants of the library.
    monkeypatch.setattr(_user_mgt.UserManager, "ID_TOOLKIT_URL", f"http://127.0.0.1:{server.server_port}/v1")
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


@pytest.fixture
def asking(google: CertificateServer, tmp_path: Path) -> Iterator[FirebaseTokens]:
    """A verifier with a service account, so that it asks for accounts."""
    google.account = {"localId": "uid-1", "validSince": "0"}
    with FcmServer().running() as token_server:
        path = str(token_server.write_credentials(tmp_path / "key.json"))
        verifier = FirebaseTokens(PROJECT, credentials_path=path)
        yield verifier
        verifier.close()


def test_account_is_asked_for_once_a_minute(asking: FirebaseTokens, google: CertificateServer):
    for _ in range(5):
        assert asking.verify(signed()) == FirebaseUid("uid-1")
    assert google.lookups == [f"/v1/projects/{PROJECT}/accounts:lookup"]


@pytest.mark.parametrize(
    "account",
    [
        {"localId": "uid-1", "validSince": str(int(time.time()) + 3600)},
        {"localId": "uid-1", "validSince": "0", "disabled": True},
        None,
    ],
    ids=["revoked", "disabled", "deleted"],
)
def test_revoked_token_is_refused(asking: FirebaseTokens, google: CertificateServer, account: Any):
    google.account = account
    with pytest.raises(TokenRevoked):
        asking.verify(signed())


def test_stranger_makes_nobody_ask(asking: FirebaseTokens, google: CertificateServer):
    with pytest.raises(TokenInvalid):
        asking.verify(signed(key=STRANGER))
    assert google.lookups == []


class AskedGoogle:
    """Says what it knows; says nothing while `account` is None."""

    def __init__(self) -> None:
        self.now = 0.0
        self.account: FirebaseAccount | None = FirebaseAccount(is_active=True)
        self.asked = 0

    def ask(self, uid: str) -> FirebaseAccount:
        self.asked += 1
        if self.account is None:
            raise AccountUnknown
        return self.account


def test_revocation_counts_within_a_minute():
    google = AskedGoogle()
    accounts = FirebaseAccounts(google.ask, lambda: google.now)
    assert accounts.find("u").accepts(100)
    google.account = FirebaseAccount(is_active=True, tokens_valid_from_s=200)
    google.now = KEPT_S - 1
    assert accounts.find("u").accepts(100)
    google.now = KEPT_S
    assert not accounts.find("u").accepts(100)
    assert accounts.find("u").accepts(200)


def test_last_answer_counts_while_google_is_silent():
    google = AskedGoogle()
    accounts = FirebaseAccounts(google.ask, lambda: google.now)
    accounts.find("known")
    google.account, google.now = None, KEPT_S
    for _ in range(5):
        assert accounts.find("known").accepts(0)
        with pytest.raises(VerifierUnavailable):
            accounts.find("stranger")
    assert google.asked == 2, "after a failure nobody asks for a while"
    google.now += PAUSE_S
    accounts.find("known")
    assert google.asked == 3
    google.now = TOKEN_LIFE_S + 1
    with pytest.raises(VerifierUnavailable):
        accounts.find("known")


def test_anonymous_sign_in_is_refused(tokens: FirebaseTokens):
    with pytest.raises(AnonymousRefused):
        tokens.verify(signed(firebase={"sign_in_provider": "anonymous"}))
    assert tokens.verify(signed(firebase={"sign_in_provider": "phone"})) == FirebaseUid("uid-1")


def test_token_of_another_tenant_is_refused(tokens: FirebaseTokens, google: CertificateServer):
    of_kadikoy = signed(firebase={"sign_in_provider": "phone", "tenant": "kadikoy-1"})
    with pytest.raises(TokenInvalid):
        tokens.verify(of_kadikoy)
    kadikoy = FirebaseTokens(PROJECT, tenant="kadikoy-1")
    assert kadikoy.verify(of_kadikoy) == FirebaseUid("uid-1")
    for firebase in ({"tenant": "moda-2"}, {}, None, "kadikoy-1"):
        with pytest.raises(TokenInvalid):
            kadikoy.verify(signed(firebase=firebase))
    kadikoy.close()


def test_setting_chooses_the_verifier():
    firebase = token_verifier(settings_for_tests(auth_mode="firebase", firebase_project_id=PROJECT, auth_secret=None))
    assert isinstance(firebase, FirebaseTokens)
    firebase.close()


def test_unusable_service_account_is_named():
    settings = settings_for_tests(
        auth_mode="firebase", firebase_project_id=PROJECT, auth_secret=None, firebase_credentials="/nowhere.json"
    )
    with pytest.raises(SettingsError, match="FIREBASE_CREDENTIALS"):
        token_verifier(settings)


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
