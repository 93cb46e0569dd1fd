"""Why a step fails before any provider was asked, and which failures say nothing about the steps after it."""

TOO_LATE = "TOO_LATE"
NO_RECIPIENT = "NO_RECIPIENT"
RECIPIENT_RETIRED = "RECIPIENT_RETIRED"
INVALID_ADDRESS = "INVALID_ADDRESS"
UNKNOWN_CHANNEL = "UNKNOWN_CHANNEL"

# The request itself was wrong, and would be wrong at every attempt. Some providers have codes of their own for it.
BAD_INPUT = frozenset(
    {
        INVALID_ADDRESS,
        "EMPTY_MESSAGE",
        "INVALID_SUBJECT",
        "INVALID_TEMPLATE",
        "INVALID_TOKEN",
        "NO_CHANNEL",
        "PAYLOAD_TOO_LARGE",
        "PRIVATE_ADDRESS",
        RECIPIENT_RETIRED,
        "TEMPLATE_RENDER_FAILED",
        "TWILIO_21211",
        UNKNOWN_CHANNEL,
        "UNKNOWN_TEMPLATE",
        "WHATSAPP_132000",
        "WHATSAPP_132001",
    }
)
