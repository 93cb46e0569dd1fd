"""Checks the form of an address. Pure: it does not check that the address exists.

Addresses are checked before any channel is open, so the check is here and not in the channel. `traits.py` has the form
of each type.
"""

import re
import unicodedata
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from urllib.parse import SplitResult, quote, urlsplit

import idna

from app.delivery.messages.traits import AddressForm, traits_of
from app.foundation.phone_numbers import InvalidPhone, canonical_phone

LONGEST_LOCAL_PART = 64
LONGEST_EMAIL = 254
LONGEST_URL = 2048
LONGEST_TOKEN = 4096
LONGEST_LINE = 4096
HIGHEST_USER_ID = 2**63 - 1

ABROAD = "is in a country that messages of this type are not sent to"
"""Says which address is refused, and not which countries are allowed."""

# Letters of every alphabet are allowed. The channel finds out whether the mail server supports them (SMTPUTF8).
_LOCAL_PART = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u00a1-\U0010ffff-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u00a1-\U0010ffff-]+)*"
)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
# Resolvers accept IP addresses in many notations (0x7f.1, 2130706433), so no domain may end in a number.
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HARD_SPACES = {0xA0: " ", 0x202F: " "}
_USER = re.compile(r"(?:user:)?([0-9]{1,19})")
_TOKEN = re.compile(r"[\x21-\x7e]+")
# These characters stay in a URL as they are; all others are percent-encoded.
_UNQUOTED = "%/:=&?~+!$,;'()*[]@"


class InvalidAddress(ValueError):
    """The text never contains the address, because it is shown in answers and logs."""


def check_address(notification_type: str, text: str, country_code: str) -> str:
    """The canonical form of an address: different spellings of the same address become equal."""
    if not text.translate(_HARD_SPACES).isprintable():
        raise InvalidAddress("must not hold line breaks or control characters")
    text = text.strip()
    if not text:
        raise InvalidAddress("must not be empty")
    form = traits_of(notification_type).address
    if form is None:
        raise InvalidAddress("is of a type that no channel carries")
    return _phone(text, country_code) if form is AddressForm.PHONE else _CHECKS[form](text)


def is_abroad(notification_type: str, address: str, countries: tuple[str, ...]) -> bool:
    """True if messages of this type do not go to the country of a checked address. Without `countries` they go to
    all. A list of prefixes is enough, because no country code is the beginning of another one."""
    limited = bool(countries) and traits_of(notification_type).is_limited_to_countries
    return limited and not address.removeprefix("+").startswith(countries)


def _email(text: str) -> str:
    local, at, domain = text.rpartition("@")
    local = unicodedata.normalize("NFC", local)
    if not at or "@" in local or "<" in text or " " in text:
        raise InvalidAddress("must be one e-mail address alone, without a name, such as ayse@ornek.org")
    if not _LOCAL_PART.fullmatch(local):
        raise InvalidAddress("has something before the @ that no e-mail address has")
    if len(local.encode()) > LONGEST_LOCAL_PART:
        raise InvalidAddress(f"has more than {LONGEST_LOCAL_PART} bytes before the @")
    domain = _domain(domain)
    if "." not in domain:
        raise InvalidAddress("needs a whole domain after the @, such as ornek.org")
    address = f"{local}@{domain}"
    if len(address) > LONGEST_EMAIL:
        raise InvalidAddress(f"is longer than {LONGEST_EMAIL} characters")
    return address


def _domain(text: str) -> str:
    """The domain in lower case; other alphabets are encoded with IDNA."""
    # Unicode's lower case of this letter is an i with a combining dot, which no domain has.
    text = text.replace("İ", "i")
    try:
        domain = text.lower() if text.isascii() else idna.encode(text, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        raise InvalidAddress("has a domain that cannot exist") from None
    labels = domain.split(".")
    if len(domain) > 253 or not all(_LABEL.fullmatch(label) for label in labels) or _NUMERIC.fullmatch(labels[-1]):
        raise InvalidAddress("has a domain that cannot exist")
    return domain


def _phone(text: str, country_code: str) -> str:
    try:
        return canonical_phone(text, country_code)
    except InvalidPhone as error:
        raise InvalidAddress(*error.args) from None


def _url(text: str) -> str:
    if any(char.isspace() or char in '\\"<>^`{|}' for char in text):
        raise InvalidAddress("must be one URL, without spaces and characters that URLs do not have")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidAddress("is not a URL that can be read") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidAddress("must be a whole URL that begins with https:// or http:// and names a host")
    if "@" in parts.netloc:
        raise InvalidAddress("must not hold a user or a password")
    if "#" in text:
        raise InvalidAddress("must not hold a fragment (#…)")
    if port == 0 or parts.netloc.endswith(":"):
        raise InvalidAddress("has a port that cannot be")
    url = _join_url(parts, _host(parts), port)
    if len(url) > LONGEST_URL:
        raise InvalidAddress(f"is longer than {LONGEST_URL} characters")
    return url


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if "[" in parts.netloc or "%" in host:
        if not isinstance(address, IPv6Address) or address.scope_id:
            raise InvalidAddress("has a host that cannot exist")
        return f"[{address}]"
    return str(address) if address else _domain(host)


def _join_url(parts: SplitResult, host: str, port: int | None) -> str:
    location = host if port is None else f"{host}:{port}"
    query = f"?{quote(parts.query, _UNQUOTED)}" if parts.query else ""
    return f"{parts.scheme}://{location}{quote(parts.path, _UNQUOTED) or '/'}{query}"


def _user(text: str) -> str:
    found = _USER.fullmatch(text)
    if not found or not 1 <= int(found[1]) <= HIGHEST_USER_ID:
        raise InvalidAddress("must be the id of a user, such as user:7")
    return f"user:{int(found[1])}"


def _user_or_token(text: str) -> str:
    if text.startswith("user:") or text.isdigit():
        return _user(text)
    if not _TOKEN.fullmatch(text) or len(text) > LONGEST_TOKEN:
        raise InvalidAddress(f"must be the id of a user, or a device token of at most {LONGEST_TOKEN} characters")
    return text


def _line(text: str) -> str:
    if len(text) > LONGEST_LINE:
        raise InvalidAddress(f"is longer than {LONGEST_LINE} characters")
    return text


_CHECKS: dict[AddressForm, Callable[[str], str]] = {
    AddressForm.EMAIL: _email,
    AddressForm.URL: _url,
    AddressForm.USER: _user,
    AddressForm.USER_OR_TOKEN: _user_or_token,
    AddressForm.LINE: _line,
}
