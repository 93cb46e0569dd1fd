"""Encodes a notification as an e-mail.

A DKIM signature has to stay valid on the way. So each header occurs once, the domain is the sender's own, no line is
long enough to be wrapped, and the text is ASCII.
"""

import re
import unicodedata
from base64 import b64encode
from dataclasses import dataclass, field

from app.delivery.messages.values import Notification
from app.settings.mail_server import MailSender

# Unicode categories: control characters, surrogates, and line and paragraph separators.
_NOT_IN_A_HEADER = frozenset({"Cc", "Cs", "Zl", "Zp"})
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,64}[\x21-\x7e])?")
# This many bytes become an encoded word of 75 characters, the longest that is allowed.
_WORD_BYTES = 45


class InvalidSubject(ValueError):
    """The subject holds a character that a header may not hold."""


@dataclass(frozen=True)
class Mail:
    """An e-mail with its envelope."""

    sender: str
    recipient: str = field(repr=False)
    message_id: str
    content: bytes = field(repr=False)

    @property
    def needs_smtputf8(self) -> bool:
        return not self.recipient.isascii()


def compose(notification: Notification, sender: MailSender, recipient: str) -> Mail:
    """The same notification gives the same bytes at every attempt, so that mail programs recognise a repeated mail.

    The subject is encoded here, because Python's own encoding would decode encoded words in the text, and line breaks
    in them would become headers.
    """
    # Imported here because the registry imports this module in every copy, and few of them send e-mail.
    from email.headerregistry import Address
    from email.message import EmailMessage
    from email.policy import SMTP, SMTPUTF8

    subject = encode_subject(notification.subject)
    local_part, _, domain = recipient.rpartition("@")
    message_id = f"<{notification.id}@{sender.domain}>"
    message = EmailMessage(policy=SMTP if recipient.isascii() else SMTPUTF8)
    message["From"] = Address(sender.name, sender.local_part, sender.domain)
    message["To"] = Address("", local_part, domain)
    message["Date"] = notification.created_at
    message["Message-ID"] = message_id
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(notification.body, cte="quoted-printable")
    content = b"Subject: " + subject.encode("ascii") + b"\r\n" + message.as_bytes()
    return Mail(sender.address, recipient, message_id, content)


def encode_subject(subject: str) -> str:
    if any(unicodedata.category(char) in _NOT_IN_A_HEADER for char in subject):
        raise InvalidSubject
    if not subject or (_PLAIN.fullmatch(subject) and "=?" not in subject):
        return subject
    return "\r\n ".join(f"=?utf-8?b?{b64encode(piece).decode()}?=" for piece in _pieces(subject))


def _pieces(text: str) -> list[bytes]:
    """Splits the text between characters, never within one."""
    pieces = [b""]
    for char in text:
        encoded = char.encode()
        if len(pieces[-1]) + len(encoded) > _WORD_BYTES:
            pieces.append(b"")
        pieces[-1] += encoded
    return pieces
