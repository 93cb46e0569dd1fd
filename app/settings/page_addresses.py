"""Addresses that pages get from the settings. A page sends people or requests there, so they are checked at start."""

from urllib.parse import urlsplit

HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def sign_in_page(value: str | None) -> str | None:
    if value is not None:
        parts = urlsplit(value)
        encrypted = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in HERE)
        if not encrypted or not parts.hostname or not _is_plain(value) or "@" in parts.netloc:
            raise ValueError("must be a URL that begins with https://")
    return value


def tile_address(value: str | None) -> str | None:
    """The host has no placeholder, because the pages' Content-Security-Policy names it."""
    if value is not None:
        parts = urlsplit(value)
        in_path = f"{parts.path}?{parts.query}"
        if parts.scheme != "https" or not parts.hostname or {"@", "{"} & set(parts.netloc):
            raise ValueError("must be a URL that begins with https:// and a fixed host")
        if not _is_plain(value) or any(in_path.count(name) != 1 for name in ("{z}", "{x}", "{y}")):
            raise ValueError("must hold {z}, {x} and {y}, each once, such as https://tiles.example.org/{z}/{x}/{y}.png")
    return value


def _is_plain(value: str) -> bool:
    """True without the characters that would end an address in a header or a page."""
    return value.isascii() and value.isprintable() and not set(" \"'<>;,\\`") & set(value)
