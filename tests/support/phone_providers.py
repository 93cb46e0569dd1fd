"""Stand-ins for the providers that send to phone numbers, Twilio and WhatsApp's Cloud API, with their wire contracts.

Each checks what the real server checks and answers as it does. `answers` are used for requests that passed the checks.
"""

import base64
from typing import Any

from tests.support.provider_server import Answer, ProviderServer, Request, Scripted

ACCOUNT_SID = "AC0123456789abcdef0123456789abcdef"
AUTH_TOKEN = "auth-token-of-the-account"
NUMBER_ID = "106540352242922"
ACCESS_TOKEN = "EAAJB-access-token"


def twilio_error(status: int, code: int, message: str = "No, not +905551234567.", **headers: str) -> Answer:
    body = {
        "code": code,
        "message": message,
        "more_info": f"https://www.twilio.com/docs/errors/{code}",
        "status": status,
    }
    return Answer(status, body, headers)


def twilio_message(form: dict[str, str], **changes: Any) -> Answer:
    body: dict[str, Any] = {
        "account_sid": ACCOUNT_SID,
        "sid": "SM00000000000000000000000000000001",
        "status": "queued",
        "to": form.get("To"),
        "from": form.get("From"),
        "messaging_service_sid": form.get("MessagingServiceSid"),
        "body": form.get("Body"),
        "num_segments": "1",
        "error_code": None,
        "error_message": None,
    }
    return Answer(201, body | changes)


class TwilioServer(ProviderServer):
    def answer(self, request: Request) -> Scripted:
        expected = base64.b64encode(f"{ACCOUNT_SID}:{AUTH_TOKEN}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {expected}":
            return twilio_error(401, 20003, "Authenticate")
        if request.path != f"/2010-04-01/Accounts/{ACCOUNT_SID}/Messages.json":
            return twilio_error(404, 20404, "The requested resource was not found")
        return super().answer(request)

    def judge(self, request: Request) -> Scripted:
        form = request.form()
        if not form.get("To"):
            return twilio_error(400, 21604, "A 'To' phone number is required.")
        if not form.get("From") and not form.get("MessagingServiceSid"):
            return twilio_error(400, 21603, "A 'From' phone number is required.")
        if not form.get("Body"):
            return twilio_error(400, 21602, "Message body is required.")
        return twilio_message(form)


def cloud_error(status: int, code: int, headers: dict[str, str] | None = None, **changes: Any) -> Answer:
    error: dict[str, Any] = {
        "message": f"(#{code}) No, not +905551234567",
        "type": "OAuthException",
        "code": code,
        "error_data": {"messaging_product": "whatsapp", "details": "Not 905551234567."},
        "fbtrace_id": "AbCdEf",
    }
    return Answer(status, {"error": error | changes}, headers or {})


class CloudApiServer(ProviderServer):
    def answer(self, request: Request) -> Scripted:
        if request.headers.get("Authorization") != f"Bearer {ACCESS_TOKEN}":
            return cloud_error(401, 190, error_subcode=463)
        if request.path != f"/v21.0/{NUMBER_ID}/messages":
            return cloud_error(400, 100, error_subcode=33)
        return super().answer(request)

    def judge(self, request: Request) -> Scripted:
        message = request.json()
        kind = message.get("type")
        if message.get("messaging_product") != "whatsapp" or not message.get("to") or kind not in message:
            return cloud_error(400, 131008)
        contact = {"input": message["to"], "wa_id": message["to"].removeprefix("+")}
        body = {"messaging_product": "whatsapp", "contacts": [contact], "messages": [{"id": "wamid.HBgMOTA1"}]}
        return Answer(200, body)
