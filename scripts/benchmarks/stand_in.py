"""Starts the stand-in of the providers, sets its behaviour, and reads its log of requests."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from benchmarks import roles
from benchmarks.bench import Bench
from benchmarks.provider import Behaviour, RequestLog

PROJECT = "bench"
PHONE = "+905550000000"
ADDRESSES = {"SMS": PHONE, "WHATSAPP": PHONE, "EMAIL": "elif@example.org", "PUSH": "a-token-of-a-phone"}


@dataclass(frozen=True)
class StandIn:
    port: int
    mail_port: int
    credentials: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        """The settings with which a role uses the stand-in."""
        return {
            "PUSH": "fcm",
            "FCM_BASE_URL": self.url,
            "FIREBASE_CREDENTIALS": str(self.credentials),
            "SMS_GATEWAY_URL": f"{self.url}/sms",
            "SMTP_URL": f"smtp://127.0.0.1:{self.mail_port}?tls=none",
            "SMTP_FROM": "bench@example.org",
            "WEBHOOK_SECRET": "whsec_" + b64encode(bytes(32)).decode(),
            "WEBHOOK_ALLOW_PRIVATE": "true",
            "WHATSAPP_PHONE_NUMBER_ID": "1",
            "WHATSAPP_ACCESS_TOKEN": "bench",
            "WHATSAPP_BASE_URL": f"{self.url}/whatsapp",
        }

    def recipient(self, type_: str) -> str:
        return ADDRESSES.get(type_, f"{self.url}/webhook")

    def behave(self, **behaviour: Behaviour) -> None:
        self._ask("/behaviour", {name: asdict(one) for name, one in behaviour.items()})

    def forget(self) -> None:
        self._ask("/forget")

    def request_logs(self) -> dict[str, RequestLog]:
        return {name: RequestLog(**request_log) for name, request_log in self._ask("/request_logs").items()}

    def _ask(self, path: str, body: Any = None) -> dict[str, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body).encode())
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def stand_in(bench: Bench, seed: int = 1) -> Iterator[StandIn]:
    with roles.module(bench, "provider", "postgres", str(seed)) as said:
        port, mail_port = map(int, said.split()[1:])
        yield StandIn(port, mail_port, _write_credentials(bench.folder / f"account-{port}.json", port))


def _write_credentials(path: Path, port: int) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    account = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": f"sender@{PROJECT}.iam.gserviceaccount.com",
        "token_uri": f"http://127.0.0.1:{port}/token",
    }
    path.write_text(json.dumps(account))
    return path
