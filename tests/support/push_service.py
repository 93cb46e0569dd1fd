"""A browser with its push service: the receiving side of RFC 8030, 8188, 8291 and 8292.

Written from the RFCs and not from our own code, so that it does not share its mistakes. The service checks what real
ones check: the headers, the length, and who sends. The browser decrypts what the service has stored for it.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import jwt
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from app.delivery.channels.public_addresses import Resolver
from app.delivery.messages.values import Device
from app.settings import vapid_keys
from app.settings.vapid_keys import VapidKeys
from app.users.models import AddressKind
from tests.support.provider_server import Answer, ProviderServer, Request, Scripted

HOST = "push.localhost"
"""A named host, in the certificate of the server."""
RESOLVER = Resolver(lambda host: ["127.0.0.1"])
LARGEST_BODY = 4096


def new_settings() -> dict[str, str]:
    public, private = vapid_keys.create()
    return {"vapid_public_key": public, "vapid_private_key": private, "vapid_subject": "mailto:nobet@ornek.org"}


def new_keys() -> VapidKeys:
    public, private, subject = new_settings().values()
    return VapidKeys(b64decode(public), b64decode(private), subject)


class Browser:
    def __init__(self, endpoint: str, name: str = "browser") -> None:
        self.endpoint = endpoint
        self.name = name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.auth = b"sixteen bytes at"

    @property
    def subscription(self) -> dict[str, Any]:
        """As `JSON.stringify(subscription)` in a page gives it."""
        keys = {"p256dh": b64encode(point(self.key.public_key())), "auth": b64encode(self.auth)}
        return {"endpoint": self.endpoint, "expirationTime": None, "keys": keys}

    @property
    def device(self) -> Device:
        return Device(self.name, json.dumps(self.subscription, separators=(",", ":")), AddressKind.WEB_PUSH)

    def read(self, body: bytes) -> dict[str, Any]:
        """Raises an error if the message is not for this browser, or was changed on its way."""
        salt, record_size, id_length = body[:16], int.from_bytes(body[16:20]), body[20]
        sender, record = body[21 : 21 + id_length], body[21 + id_length :]
        assert len(record) <= record_size and id_length == 65
        own = point(self.key.public_key())
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        combined = _hmac(_hmac(self.auth, shared), b"WebPush: info\x00" + own + sender + b"\x01")
        extracted = _hmac(salt, combined)
        key = _hmac(extracted, b"Content-Encoding: aes128gcm\x00\x01")[:16]
        nonce = _hmac(extracted, b"Content-Encoding: nonce\x00\x01")[:12]
        padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\x00")
        assert padded[-1:] == b"\x02", "the mark of the last record"
        return json.loads(padded[:-1].decode())


class PushService(ProviderServer):
    """`answers` are used for messages that passed the checks."""

    def __init__(self, keys: VapidKeys, now_s: Callable[[], float]) -> None:
        super().__init__(tls=True)
        self.origin = f"https://{HOST}:{self.port}"
        self.stored: list[tuple[Browser, Request]] = []
        """Every message that passed these checks, whatever the answer was."""
        self.by_browser: dict[str, Scripted] = {}
        """A fixed answer by the name of a browser."""
        self._keys = keys
        self._now_s = now_s
        self._browsers: dict[str, Browser] = {}

    def subscribe(self, name: str = "browser") -> Browser:
        path = f"/wpush/v2/{name}"
        browser = self._browsers[path] = Browser(self.origin + path, name)
        return browser

    @property
    def shown(self) -> list[dict[str, Any]]:
        return [browser.read(request.body) for browser, request in self.stored]

    def answer(self, request: Request) -> Scripted:
        browser = self._browsers.get(request.path)
        if browser is None:
            return Answer(404, "")
        refused = self._refusal(request)
        if refused is not None:
            return refused
        self.stored.append((browser, request))
        if browser.name in self.by_browser:
            return self.by_browser[browser.name]
        return self.answers.popleft() if self.answers else Answer(201, "", {"Location": f"{self.origin}/m/1"})

    def _refusal(self, request: Request) -> Answer | None:
        headers = request.headers
        if request.method != "POST" or not re.fullmatch("[0-9]+", headers.get("TTL", "")):
            return Answer(400, "TTL")
        if headers.get("Content-Encoding") != "aes128gcm" or headers.get("Urgency") not in ("normal", "high"):
            return Answer(400, "Content-Encoding")
        if not re.fullmatch("[A-Za-z0-9_-]{0,32}", headers.get("Topic", "")):
            return Answer(400, "Topic")
        if len(request.body) > LARGEST_BODY:
            return Answer(413, "")
        return None if self._knows_sender(headers.get("Authorization", "")) else Answer(403, "")

    def _knows_sender(self, authorization: str) -> bool:
        found = re.fullmatch(r"vapid t=([^, ]+), k=([A-Za-z0-9_-]+)", authorization)
        if not found or b64decode(found[2]) != self._keys.public:
            return False
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), self._keys.public)
        try:
            claims = jwt.decode(
                found[1], key, algorithms=["ES256"], audience=self.origin, options={"verify_exp": False}
            )
        except jwt.InvalidTokenError:
            return False
        return self._now_s() < claims["exp"] <= self._now_s() + 24 * 3600 and claims["sub"] == self._keys.subject


def b64encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def b64decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _hmac(key: bytes, message: bytes) -> bytes:
    made = hmac.HMAC(key, hashes.SHA256())
    made.update(message)
    return made.finalize()
