"""A stand-in for Firebase Cloud Messaging and for Google's token endpoint, with their wire contracts.

It checks what the real servers check: the signed assertion, the bearer, the project in the path, one address in each
message, data of strings only. Tests script the next answers; without a script it accepts the message.
"""

import json
from collections import deque
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.provider_server import Answer, ProviderServer, Request, Scripted

PROJECT = "yaninda-test"
CLIENT_EMAIL = f"sender@{PROJECT}.iam.gserviceaccount.com"
# The audience of assertions is always this address, whatever `token_uri` the account file has.
AUDIENCE = "https://oauth2.googleapis.com/token"
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_NONE: Mapping[str, str] = {}


def fcm_error(
    status: int, name: str, code: str | None, message: str = "No.", headers: Mapping[str, str] = _NONE
) -> Answer:
    details = [{"@type": FCM_ERROR, "errorCode": code}] if code else []
    error = {"code": status, "message": message, "status": name, "details": details}
    return Answer(status, {"error": error}, dict(headers))


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


def bad_field(name: str) -> Answer:
    violation = {"field": name, "description": f"Invalid value at '{name}'"}
    details = [{"@type": BAD_REQUEST, "fieldViolations": [violation]}]
    error = {"code": 400, "message": violation["description"], "status": "INVALID_ARGUMENT", "details": details}
    return Answer(400, {"error": error})


def quota_exceeded(headers: Mapping[str, str] = _NONE) -> Answer:
    return fcm_error(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", headers=headers)


class FcmServer(ProviderServer):
    """`answers` are used for messages that passed the checks of path and bearer."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[dict[str, Any]] = []
        """Every message that passed these checks, whatever the answer was."""
        self.bearers: list[str] = []
        self.token_requests = 0
        self.token_answers: deque[Scripted] = deque()
        self.by_address: dict[str, Scripted] = {}
        """A fixed answer by token or installation id."""
        self.key = _key()
        self.token_uri = f"{self.base_url}/token"
        self._issued: set[str] = set()

    def answer(self, request: Request) -> Scripted:
        if request.path == "/token":
            return self._answer_token(request.form())
        return self._answer_send(request)

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

    def _answer_token(self, form: dict[str, str]) -> Scripted:
        self.token_requests += 1
        if self.token_answers:
            return self.token_answers.popleft()
        try:
            claims = jwt.decode(form["assertion"], self.key.public_key(), algorithms=["RS256"], audience=AUDIENCE)
            assert claims["iss"] == CLIENT_EMAIL and "firebase" in claims["scope"]
        except (jwt.InvalidTokenError, AssertionError, KeyError):
            return Answer(400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
        token = f"ya29.{self.token_requests}"
        self._issued.add(token)
        return Answer(200, {"access_token": token, "expires_in": 3599, "token_type": "Bearer"})

    def _answer_send(self, request: Request) -> Scripted:
        bearer = request.headers.get("Authorization", "")
        self.bearers.append(bearer)
        if request.path != f"/v1/projects/{PROJECT}/messages:send":
            return NOT_FOUND
        if bearer.removeprefix("Bearer ") not in self._issued:
            return UNAUTHENTICATED
        message = request.json()["message"]
        self.messages.append(message)
        always = self.by_address.get(message.get("token", message.get("fid")))
        scripted = always or (self.answers.popleft() if self.answers else None)
        return scripted or _judge(message, len(self.messages))


@cache
def _key() -> rsa.RSAPrivateKey:
    """The same for every server, and short: to make it, and to load it in each test, takes longer than the test."""
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)


def _judge(message: dict[str, Any], number: int) -> Answer:
    if sum(key in message for key in ("token", "fid", "topic", "condition")) != 1:
        return bad_field("message")
    if not all(isinstance(value, str) for value in message.get("data", {}).values()):
        return bad_field("message.data[0].value")
    return Answer(200, {"name": f"projects/{PROJECT}/messages/{number}"})
