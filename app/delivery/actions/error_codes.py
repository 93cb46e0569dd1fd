"""The error codes of steps that fail before a provider was asked, and the codes that do not stop the later steps."""

from app.delivery.messages.outcomes import NO_DEVICE

TOO_LATE = "TOO_LATE"
NO_RECIPIENT = "NO_RECIPIENT"
RECIPIENT_INACTIVE = "RECIPIENT_INACTIVE"
RECIPIENT_RETIRED = "RECIPIENT_RETIRED"
INVALID_ADDRESS = "INVALID_ADDRESS"
UNKNOWN_CHANNEL = "UNKNOWN_CHANNEL"

# The message or its address is wrong, so every attempt would fail. Some of these codes come from providers.
BAD_INPUT = frozenset(
    {
        "COUNTRY_NOT_ALLOWED",
        INVALID_ADDRESS,
        "EMPTY_MESSAGE",
        "INVALID_SUBJECT",
        "INVALID_TEMPLATE",
        "INVALID_TOKEN",
        "NO_CHANNEL",
        NO_DEVICE,
        "PAYLOAD_TOO_LARGE",
        "PRIVATE_ADDRESS",
        RECIPIENT_INACTIVE,
        RECIPIENT_RETIRED,
        "RESERVED_KEY",
        "TEMPLATE_RENDER_FAILED",
        "TWILIO_21211",
        UNKNOWN_CHANNEL,
        "UNKNOWN_TEMPLATE",
        "WHATSAPP_132000",
        "WHATSAPP_132001",
    }
)
