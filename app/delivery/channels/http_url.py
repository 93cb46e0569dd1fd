"""Parses URLs for httpcore, and reads the credentials in them. No I/O."""

import re
from urllib.parse import quote, unquote, urlsplit

import httpcore
import idna

_HOST = re.compile(r"[!-~]+")
# These characters stay in a path or a query as they are; all others are percent-encoded.
_SAFE = "!$%&'()*+,/:;=?@[]~"


def parse_url(text: str) -> httpcore.URL:
    """Raises `ValueError` if the text is not a URL. A host that is not ASCII is encoded with IDNA. An IPv6 address
    keeps its brackets, because the Host header needs them."""
    parts = urlsplit(text)
    host = parts.hostname or ""
    if not host.isascii():
        host = idna.encode(host, uts46=True).decode()
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        raise ValueError("is not a whole URL of http or https")
    query = f"?{quote(parts.query, _SAFE)}" if parts.query else ""
    return httpcore.URL(
        scheme=parts.scheme.encode(),
        host=f"[{host}]".encode() if ":" in host else host.encode(),
        port=parts.port,
        target=f"{quote(parts.path, _SAFE) or '/'}{query}".encode(),
    )


def credentials_of(text: str) -> tuple[str, str] | None:
    """The user and the password in a URL; None if one of them is missing."""
    parts = urlsplit(text)
    if not parts.username or parts.password is None:
        return None
    return unquote(parts.username), unquote(parts.password)
