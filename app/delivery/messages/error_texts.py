"""Explains each error code in a sentence for operators.

The messages of providers are not stored, because they may contain addresses and tokens.
"""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus

REASONS = {
    "ACCOUNT_BLOCKED": "The provider has closed or suspended our account, or it is not paid for.",
    "AUTH_REJECTED": "The provider refuses our credentials.",
    "AUTH_UNAVAILABLE": "The address that gives out access tokens did not answer.",
    "BREAKER_OPEN": "The provider failed too often; messages wait until it answers again.",
    "CANCELLED": "The message was called back before it had been sent.",
    "CHALLENGE_FAILED": "The webhook did not send the challenge back, so nobody there has agreed to get messages.",
    "CHANNEL_ERROR": "The channel failed in a way nobody expected; the log has the place.",
    "CONNECTION_LOST": "The connection broke after the message was handed over, so it may have arrived.",
    "COUNTRY_NOT_ALLOWED": "SMS are not sent to the country of this number; SMS_COUNTRIES lists those they go to.",
    "EMPTY_MESSAGE": "The message has neither a subject nor a body, and this channel carries nothing else.",
    "EVALUATION_KEY_REUSED": "The evaluation key was used before, for another action.",
    "HTTP_410": "The receiver says that it is gone for good. If it is in the directory, its channel was disabled.",
    "INVALID_ADDRESS": "The address is not one of its kind.",
    "INTERNAL": "FCM is broken for the moment.",
    "INVALID_ANSWER": "The provider's answer cannot be read, so the message may have arrived.",
    "INVALID_ARGUMENT": "FCM says that a field of the message has a value that it does not take.",
    "INVALID_REQUEST": "The message is not a request for an action, or names a person who does not exist.",
    "INVALID_SUBJECT": "The subject holds a line break or another character that headers may not hold.",
    "INVALID_TEMPLATE": "What the message says of the provider's template lacks a name, or cannot be read.",
    "INVALID_TOKEN": "The provider does not know this token.",
    "NOT_DELIVERED": "The provider took the message and gave it up at once.",
    "NOT_FOUND": "FCM does not know what the message names; compare the project with that of the service account.",
    "NO_CHANNEL": "No channel is set up that carries messages of this type.",
    "NO_DEVICE": "The person has no device that is registered.",
    "NO_RECIPIENT": "Nobody is to be reached: no route, no profile, or no channel that is enabled and verified.",
    "NO_SECRET": "There is no secret to sign the webhook with.",
    "PAYLOAD_TOO_LARGE": "The message is larger than the provider takes.",
    "PERMISSION_DENIED": "FCM does not let our service account send for this project.",
    "PERSON_NOT_FOUND": "No user has this id; perhaps the account was removed.",
    "PLAN_NOT_FOUND": "There is no such plan, or it is switched off or retired.",
    "PRIVATE_ADDRESS": "The name of the webhook or push service leads into a network, where neither may go.",
    "QUOTA_EXCEEDED": "FCM asks us to send more slowly.",
    "RECIPIENT_INACTIVE": "The person was deactivated before the message left.",
    "RECIPIENT_RETIRED": "The recipient's entry in the directory was switched off or retired before the message left.",
    "REDIRECT_REFUSED": "The webhook answered with a redirect, which is not followed; give the address it leads to.",
    "REQUEST_FAILED": "The action could not be taken in, in a way nobody expected; the log has the place.",
    "RESERVED_KEY": "The data has a key that FCM keeps for itself: from, message_type, google.… or gcm.…",
    "RESOURCE_EXHAUSTED": "FCM asks us to send more slowly.",
    "SENDER_ID_MISMATCH": "The phone's token was made for another Firebase project.",
    "SMTP_TIMEOUT": "The mail server did not answer in time.",
    "SUBSCRIPTION_GONE": "The browser takes no more pushes; its device was removed.",
    "TEMPLATE_RENDER_FAILED": "The template cannot be rendered with what the action gave it.",
    "THIRD_PARTY_AUTH_ERROR": "Apple or the web push service refuses the credentials that FCM has of us.",
    "TIMEOUT": "The provider did not answer in time, so the message may have arrived.",
    "TOO_LATE": "The message had lost its meaning before it could be sent.",
    "TWILIO_20429": "Twilio asks us to send more slowly.",
    "TWILIO_21211": "Twilio says that this is no phone number.",
    "TWILIO_21408": "The Twilio account may not send to this country.",
    "TWILIO_21610": "The recipient has told Twilio that they want no more of our messages.",
    "TWILIO_21611": "Twilio's queue for our number is full.",
    "TWILIO_21612": "Twilio cannot reach this number from ours.",
    "TWILIO_21614": "Twilio says that this is no mobile phone.",
    "TWILIO_30003": "The phone cannot be reached: it is off, or out of range for long.",
    "TWILIO_30004": "The phone or its network blocks our messages.",
    "TWILIO_30005": "The number is not in use.",
    "TWILIO_30006": "The number is a landline, or its network takes no SMS.",
    "TWILIO_30007": "The network took the message for spam.",
    "UNAUTHENTICATED": "FCM refuses our credentials.",
    "UNAVAILABLE": "FCM is overloaded for the moment.",
    "UNKNOWN_CHANNEL": "There is no channel of this type.",
    "UNKNOWN_TEMPLATE": "There is no template of this name.",
    "UNREACHABLE": "The provider cannot be reached.",
    "UNREGISTERED": "The phone does not have the app any more.",
    "VAPID_REJECTED": "The push service refuses our keys, or the browser was subscribed with other keys.",
    "WHATSAPP_130429": "WhatsApp asks us to send more slowly.",
    "WHATSAPP_131026": "WhatsApp cannot deliver to this number: it has no WhatsApp, or one that is too old.",
    "WHATSAPP_131030": "The number is not on the list of those that a test account may write to.",
    "WHATSAPP_131047": "The person has not written for 24 hours, so that WhatsApp takes only an approved template.",
    "WHATSAPP_131048": "WhatsApp lets us send less, because too many took our messages for spam.",
    "WHATSAPP_131056": "Too many messages to this one person in a short time.",
    "WHATSAPP_132000": "The template has another number of parameters than were given.",
    "WHATSAPP_132001": "WhatsApp has no approved template of this name in this language.",
    "WHATSAPP_4": "WhatsApp asks us to send more slowly.",
    "WHATSAPP_80007": "WhatsApp asks us to send more slowly.",
}


def _http(status: int) -> str:
    phrase = f" ({HTTPStatus(status).phrase})" if status in set(HTTPStatus) else ""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        meaning = "it asks us to send more slowly"
    elif status >= 500:
        meaning = "it is broken or overloaded, and may take the message later"
    else:
        meaning = "it does not take the message as it is"
    return f"The provider answered with the status {status}{phrase}: {meaning}."


def _smtp(reply: int) -> str:
    meaning = "put the message off for later" if reply < 500 else "refuses the message for good"
    return f"The mail server {meaning} (reply {reply})."


def _twilio(error: int) -> str:
    return f"Twilio refused the message: https://www.twilio.com/docs/api/errors/{error} has the reason."


def _whatsapp(error: int) -> str:
    return f"WhatsApp refused the message: the error codes of Meta's Cloud API have the reason under {error}."


_BY_NUMBER: Mapping[str, Callable[[int], str]] = {
    "HTTP": _http,
    "SMTP": _smtp,
    "TWILIO": _twilio,
    "WHATSAPP": _whatsapp,
}


def explain(error_code: str) -> str:
    known = REASONS.get(error_code)
    if known is not None:
        return known
    family, _, number = error_code.partition("_")
    if family in _BY_NUMBER and re.fullmatch("[0-9]{1,9}", number):
        return _BY_NUMBER[family](int(number))
    return f"The provider refused the message with its own code {error_code}; its documentation has the reason."
