"""Whether the URL of a store may be used in production: on another host with a password, and with TLS unless the
network is private. Error messages never repeat the URL, because it holds the password."""

from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from app.settings.secret_strength import is_known_default

_ENCRYPTED_MODES = frozenset({"require", "verify-ca", "verify-full"})


def problem_with_store(url: str, private_network: bool) -> str | None:
    try:
        parts = urlsplit(url)
        options = parse_qs(parts.query)
        hosts = _hosts(parts, options)
    except ValueError:
        return "is not a URL that can be read"
    if all(map(_is_this_host, hosts)):
        return None
    password = unquote(parts.password or "") or options.get("password", [""])[-1]
    if not password and "sslcert" not in options:
        return "names a store on another host without a password"
    if password and is_known_default(password):
        return "has a password that is a known default"
    if not private_network and not _is_encrypted(parts, options):
        return (
            "names a store on another host without TLS: use rediss:// or ?sslmode=verify-full,"
            " or set PRIVATE_NETWORK=true if nobody else can read that network"
        )
    return None


def _hosts(parts: SplitResult, options: dict[str, list[str]]) -> list[str]:
    """PostgreSQL takes several hosts, and an option may replace those of the URL."""
    named = [host for name in ("hostaddr", "host") for value in options.get(name, ()) for host in value.split(",")]
    if named:
        return named
    addresses = parts.netloc.rpartition("@")[2].split(",")
    return [unquote(urlsplit(f"//{address}").hostname or "") for address in addresses]


def _is_this_host(host: str) -> bool:
    """Also true for a Unix socket, which is a path, or no host at all."""
    if not host or host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_encrypted(parts: SplitResult, options: dict[str, list[str]]) -> bool:
    if parts.scheme.startswith("redis"):
        return parts.scheme == "rediss"
    return options.get("sslmode", [""])[-1] in _ENCRYPTED_MODES
