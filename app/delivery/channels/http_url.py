"""A URL as httpcore takes it, and what else may stand in one. No I/O."""

import re
from urllib.parse import quote, unquote, urlsplit

import httpcore
import idna

_HOST = re.compile(r"[!-~]+")
# What may stand in a path or a query as it is; everything else is percent-encoded.
_SAFE = "!$%&'()*+,/:;=?@[]~"


def parse_url(text: str) -> httpcore.URL:
    """Raises `ValueError` for what is no URL. Other hosts than ASCII ones come out in the notation of IDNA, and IPv6
    addresses keep their brackets, which the Host header needs."""
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
    """The user and the password that a URL holds."""
    parts = urlsplit(text)
    if not parts.username or parts.password is None:
        return None
    return unquote(parts.username), unquote(parts.password)
