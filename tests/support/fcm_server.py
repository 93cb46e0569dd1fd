"""A stand-in for Firebase Cloud Messaging and for Google's token address, speaking their wire contract.

It checks what the real ones check: the signed assertion, the bearer, the project in the path, one address for each
message, data made of strings only. What it answers next is scripted; without a script it takes the message.
"""

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

PROJECT = "yaninda-test"
CLIENT_EMAIL = f"sender@{PROJECT}.iam.gserviceaccount.com"
# Whatever the account file says of `token_uri`, assertions are made out to this address.
AUDIENCE = "https://oauth2.googleapis.com/token"
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class Hang:
    """Says nothing until the server closes."""


class Reset:
    """Takes the whole request, then breaks the connection."""


def fcm_error(status: int, name: str, code: str | None, message: str = "No.", **headers: str) -> Answer:
    details = [{"@type": FCM_ERROR, "errorCode": code}] if code else []
    error = {"code": status, "message": message, "status": name, "details": details}
    return Answer(status, {"error": error}, {key.replace("_", "-"): value for key, value in headers.items()})


UNREGISTERED = fcm_error(404, "NOT_FOUND", "UNREGISTERED", "Requested entity was not found.")
NOT_FOUND = fcm_error(404, "NOT_FOUND", None, "Requested entity was not found.")
BAD_TOKEN = fcm_error(
    400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token"
)
BAD_ARGUMENT = fcm_error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "Request contains an invalid argument.")
UNAUTHENTICATED = fcm_error(401, "UNAUTHENTICATED", None)
THIRD_PARTY_AUTH = fcm_error(401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR")
SENDER_MISMATCH = fcm_error(403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH")
INTERNAL = fcm_error(500, "INTERNAL", "INTERNAL")
UNAVAILABLE = fcm_error(503, "UNAVAILABLE", "UNAVAILABLE")
GARBAGE = Answer(200, "this is { no json")
Scripted = Answer | Hang | Reset


def bad_field(name: str) -> Answer:
    violation = {"field": name, "description": f"Invalid value at '{name}'"}
    details = [{"@type": BAD_REQUEST, "fieldViolations": [violation]}]
    error = {"code": 400, "message": violation["description"], "status": "INVALID_ARGUMENT", "details": details}
    return Answer(400, {"error": error})


def quota_exceeded(**headers: str) -> Answer:
    return fcm_error(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", **headers)


class FcmServer:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        """Every message that reached the address for sending, whatever was answered."""
        self.bearers: list[str] = []
        self.token_requests = 0
        self.answers: deque[Scripted] = deque()
        self.token_answers: deque[Scripted] = deque()
        self.by_address: dict[str, Scripted] = {}
        """What is always answered to one token."""
        self.closing = threading.Event()
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._issued: set[str] = set()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.token_uri = f"{self.base_url}/token"

    def start(self) -> None:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def write_credentials(self, path: Path, key: rsa.RSAPrivateKey | None = None) -> Path:
        pem = (key or self.key).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        account = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "1",
            "private_key": pem.decode(),
            "client_email": CLIENT_EMAIL,
            "token_uri": self.token_uri,
        }
        path.write_text(json.dumps(account))
        return path

    def answer_token(self, form: dict[str, list[str]]) -> Scripted:
        with self._lock:
            self.token_requests += 1
            if self.token_answers:
                return self.token_answers.popleft()
            try:
                claims = jwt.decode(
                    form["assertion"][0], self.key.public_key(), algorithms=["RS256"], audience=AUDIENCE
                )
                assert claims["iss"] == CLIENT_EMAIL and "firebase" in claims["scope"]
            except (jwt.InvalidTokenError, AssertionError, KeyError):
                return Answer(400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
            token = f"ya29.{self.token_requests}"
            self._issued.add(token)
            return Answer(200, {"access_token": token, "expires_in": 3599, "token_type": "Bearer"})

    def answer_send(self, path: str, bearer: str, body: bytes) -> Scripted:
        with self._lock:
            self.bearers.append(bearer)
            if path != f"/v1/projects/{PROJECT}/messages:send":
                return NOT_FOUND
            if bearer.removeprefix("Bearer ") not in self._issued:
                return UNAUTHENTICATED
            message = json.loads(body)["message"]
            self.messages.append(message)
            always = self.by_address.get(message.get("token", message.get("fid")))
            scripted = always or (self.answers.popleft() if self.answers else None)
            return scripted or _judge(message, len(self.messages))

    @contextmanager
    def running(self) -> Iterator["FcmServer"]:
        self.start()
        try:
            yield self
        finally:
            self.close()


def _judge(message: dict[str, Any], number: int) -> Answer:
    if sum(key in message for key in ("token", "fid", "topic", "condition")) != 1:
        return bad_field("message")
    if not all(isinstance(value, str) for value in message.get("data", {}).values()):
        return bad_field("message.data[0].value")
    return Answer(200, {"name": f"projects/{PROJECT}/messages/{number}"})


def _handler(server: FcmServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.path == "/token":
                self._give(server.answer_token(parse_qs(body.decode())))
            else:
                self._give(server.answer_send(self.path, self.headers.get("Authorization", ""), body))

        def _give(self, answer: Scripted) -> None:
            if isinstance(answer, Hang):
                server.closing.wait(30)
                self.close_connection = True
            elif isinstance(answer, Reset):
                # Closing with a zero linger time sends RST instead of FIN.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
            else:
                self._write(answer)

        def _write(self, answer: Answer) -> None:
            body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    return Handler
