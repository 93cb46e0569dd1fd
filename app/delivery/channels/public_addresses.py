"""Distinguishes public addresses from private ones, and looks up names within a time limit.

A user who enters the URL of a webhook chooses the host that our servers connect to, and must not reach private networks
in this way. So a name is looked up once, all its addresses are checked, and the connection goes to a checked address.
"""

import queue
import socket
import threading
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Lookup = Callable[[str], list[str]]

# Python's `is_global` uses the same IANA registry, but counts multicast, NAT64 and others as public, and differs
# between versions.
_PRIVATE_V4 = [
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
# All public IPv6 addresses are in the first network. The others are exceptions in it: IETF protocols with Teredo,
# documentation, 6to4, and documentation again.
_PUBLIC_V6 = IPv6Network("2000::/3")
_PRIVATE_V6 = [IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
# Networks without IPv4 reach IPv4 addresses through this prefix.
_NAT64 = IPv6Network("64:ff9b::/96")


class PrivateAddress(Exception):
    """The error does not name the address, because that would reveal our network."""


def is_public(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return _is_public_address(address)


def _is_public_address(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _PRIVATE_V4)
    reached = _reached_ipv4(address)
    if reached is not None:
        return _is_public_address(reached)
    return address.scope_id is None and address in _PUBLIC_V6 and not any(address in network for network in _PRIVATE_V6)


def _reached_ipv4(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a connection to this IPv6 address reaches; None if there is none."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped


def require_public(addresses: list[str]) -> None:
    """Refuses if any address is private, so that the order of the addresses does not matter."""
    if not all(is_public(address) for address in addresses):
        raise PrivateAddress


def look_up(host: str) -> list[str]:
    """The addresses of a host, in the order of the system's resolver. It also reads addresses in unusual notations."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Resolver:
    """Looks up names within a time limit, which the system's resolver lacks."""

    def __init__(self, lookup: Lookup = look_up, *, most_at_once: int = 64) -> None:
        self._lookup = lookup
        # A look-up at a name server that hangs keeps its thread until the system's resolver gives up.
        self._free_threads = threading.BoundedSemaphore(most_at_once)

    def addresses(self, host: str, limit_s: float) -> list[str]:
        """At least one address. Raises OSError if the name has none, TimeoutError if the answer is too late."""
        if not self._free_threads.acquire(blocking=False):
            raise TimeoutError
        answers: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()
        # Not a thread pool: the end of the process joins its threads, so a hanging look-up would keep it alive.
        threading.Thread(target=self._run_lookup, args=(host, answers), name="look-up", daemon=True).start()
        try:
            answer = answers.get(timeout=max(limit_s, 0))
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(answer, OSError):
            raise answer
        return answer

    def _run_lookup(self, host: str, answers: "queue.SimpleQueue[list[str] | OSError]") -> None:
        try:
            found = self._lookup(host)
            answers.put(found or OSError("no address"))
        except OSError as error:
            answers.put(error)
        except UnicodeError:
            # A label is empty or too long for the resolver's encoding.
            answers.put(OSError("no such name"))
        finally:
            self._free_threads.release()
