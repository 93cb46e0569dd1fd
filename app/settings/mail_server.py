"""Parses `SMTP_URL` (the mail server) and `SMTP_FROM` (the sender). Error messages never repeat the value, because it
holds a password.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import SplitResult, unquote, urlsplit

import idna

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9a-fA-F:.]+")
_SENDER = re.compile(r"(?:(?P<name>[^<>]*)<(?P<in_brackets>[^<>@\s]+@[^<>@\s]+)>|(?P<bare>[^<>@\s]+@[^<>@\s]+))")
_LOCAL_PART = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9][a-z0-9-]{0,61}[a-z0-9]")


class Tls(StrEnum):
    STARTTLS = "starttls"
    IMPLICIT = "implicit"
    NONE = "none"


_DEFAULT_PORTS = {Tls.STARTTLS: 587, Tls.IMPLICIT: 465, Tls.NONE: 25}


@dataclass(frozen=True)
class MailServer:
    host: str
    port: int
    tls: Tls
    user: str | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)


@dataclass(frozen=True)
class MailSender:
    name: str
    local_part: str
    domain: str
    """In IDNA encoding, which signatures and other servers require."""

    @property
    def address(self) -> str:
        return f"{self.local_part}@{self.domain}"


def parse_server(url: str) -> MailServer:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(_UNREADABLE) from None
    tls = _tls(parts)
    if not _HOST.fullmatch(parts.hostname or "") or ".." in (parts.hostname or "") or port == 0:
        raise ValueError(_UNREADABLE)
    if parts.path not in ("", "/") or parts.fragment:
        raise ValueError(_UNREADABLE)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if "\0" in user + password or (bool(user) != bool(password)):
        raise ValueError("needs a user and a password, or neither")
    return MailServer(parts.hostname or "", port or _DEFAULT_PORTS[tls], tls, user or None, password)


_UNREADABLE = (
    "must be smtp://user:password@host:587 or smtps://user:password@host:465, with special characters in user and"
    " password percent-encoded"
)


def _tls(parts: SplitResult) -> Tls:
    if parts.scheme not in ("smtp", "smtps"):
        raise ValueError("must begin with smtp:// (STARTTLS) or smtps://")
    if parts.query == "tls=none" and parts.scheme == "smtp":
        return Tls.NONE
    if parts.query:
        raise ValueError("may have the option ?tls=none and no other, and only with smtp://")
    return Tls.IMPLICIT if parts.scheme == "smtps" else Tls.STARTTLS


def parse_sender(text: str) -> MailSender:
    found = _SENDER.fullmatch(text.strip())
    if not found or not text.isprintable():
        raise ValueError("must be an address, or a name and an address: Yanında <bildirim@ornek.org>")
    local_part, _, domain = (found["in_brackets"] or found["bare"]).partition("@")
    try:
        domain = idna.encode(domain, uts46=True).decode().lower()
    except (idna.IDNAError, UnicodeError):
        raise ValueError("has a domain that cannot exist") from None
    if not _LOCAL_PART.fullmatch(local_part) or len(local_part) > 64 or not _DOMAIN.fullmatch(domain):
        raise ValueError("has an address that cannot exist")
    return MailSender((found["name"] or "").strip().strip('"').strip(), local_part, domain)
