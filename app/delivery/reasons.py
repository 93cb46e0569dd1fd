"""What an error code means, in a sentence for whoever has to mend it.

Providers' own texts are not kept: they repeat addresses and tokens.
"""

REASONS = {
    "AUTH_REJECTED": "The provider refuses our credentials.",
    "AUTH_UNAVAILABLE": "The address that gives out access tokens did not answer.",
    "BREAKER_OPEN": "The provider failed too often; messages wait until it answers again.",
    "CHALLENGE_FAILED": "The webhook did not send the challenge back, so nobody there has agreed to get messages.",
    "CHANNEL_ERROR": "The channel failed in a way nobody expected; the log has the place.",
    "CONNECTION_LOST": "The connection broke after the message was handed over, so it may have arrived.",
    "EVALUATION_KEY_REUSED": "The evaluation key was used before, for another action.",
    "HTTP_410": "The receiver says that it is gone for good; its entry in the directory was switched off.",
    "INVALID_ADDRESS": "The address is not one of its kind.",
    "INVALID_ANSWER": "The provider's answer cannot be read, so the message may have arrived.",
    "INVALID_REQUEST": "The message is not a request for an action; README tells what one looks like.",
    "INVALID_SUBJECT": "The subject holds a line break or another character that headers may not hold.",
    "INVALID_TOKEN": "The provider does not know this token.",
    "NO_CHANNEL": "No channel is set up that carries messages of this type.",
    "NO_DEVICE": "The person has no device that is registered.",
    "NO_RECIPIENT": "Nobody is to be reached: no route, no profile, or no channel that is enabled and verified.",
    "NO_SECRET": "There is no secret to sign the webhook with.",
    "PAYLOAD_TOO_LARGE": "The message is larger than the provider takes.",
    "PERSON_NOT_FOUND": "There is no such person, or they are not active any more.",
    "PLAN_NOT_FOUND": "There is no such plan, or it is switched off or retired.",
    "PRIVATE_ADDRESS": "The name of the webhook leads to an address inside a network, where webhooks may not go.",
    "RECIPIENT_RETIRED": "The recipient's entry in the directory was switched off or retired before the message left.",
    "REDIRECT_REFUSED": "The webhook answered with a redirect, which is not followed; give the address it leads to.",
    "REQUEST_FAILED": "The action could not be taken in, in a way nobody expected; the log has the place.",
    "SMTP_TIMEOUT": "The mail server did not answer in time.",
    "TEMPLATE_RENDER_FAILED": "The template cannot be rendered with what the action gave it.",
    "TIMEOUT": "The provider did not answer in time, so the message may have arrived.",
    "TOO_LATE": "The message had lost its meaning before it could be sent.",
    "UNKNOWN_CHANNEL": "There is no channel of this type.",
    "UNKNOWN_TEMPLATE": "There is no template of this name.",
    "UNREACHABLE": "The provider cannot be reached.",
    "UNREGISTERED": "The phone does not have the app any more.",
}


def explain(error_code: str) -> str:
    return REASONS.get(error_code, f"The provider answered {error_code}.")
