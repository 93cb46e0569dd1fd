"""Connections that are kept between requests, directly or through a proxy that the environment names."""

import ssl
import threading
from collections import OrderedDict
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.request import getproxies, proxy_bypass

import certifi
import httpcore

from app.delivery.channels.connections import TimedBackend
from app.delivery.channels.http_url import credentials_of, parse_url
from app.settings.settings import trusted_certificates

# A webhook's receivers are many. httpcore looks at each idle connection of a pool twice in a request, so that one pool
# for all would be slow.
_MOST_POOLS = 10

_Way = tuple[bytes, bytes, int | None, str | None]
"""Scheme, host, port and proxy."""


class HttpPools:
    """A pool for each host, as long as it is among those that were asked last."""

    def __init__(self, *, connections: int, network: TimedBackend, ca_file: str | None, trust_env: bool) -> None:
        """`connections` is how many each pool keeps for the next requests. More are opened if more threads ask at the
        same time, so that none waits for another."""
        self._connections = connections
        self._network = network
        self._ca_file = ca_file
        self._trust_env = trust_env
        self._pools: OrderedDict[_Way, httpcore.ConnectionPool] = OrderedDict()
        self._context: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def pool_for(self, url: httpcore.URL) -> httpcore.ConnectionPool:
        """Raises `ValueError` if the environment names a proxy that is none of HTTP."""
        proxy = proxy_for(url) if self._trust_env else None
        way = (url.scheme, url.host, url.port, proxy)
        with self._lock:
            pool = self._pools.get(way) or self._open(url, proxy)
            self._pools[way] = pool
            self._pools.move_to_end(way)
            oldest = self._pools.popitem(last=False)[1] if len(self._pools) > _MOST_POOLS else None
        if oldest is not None:
            _close_idle(oldest)
        return pool

    def close(self) -> None:
        with self._lock:
            pools = list(self._pools.values())
        for pool in pools:
            _close_idle(pool)

    def _open(self, url: httpcore.URL, proxy: str | None) -> httpcore.ConnectionPool:
        if self._context is None and (proxy or url.scheme == b"https"):
            self._context = self._load_context()
        return httpcore.ConnectionPool(
            ssl_context=self._context,
            proxy=_open_proxy(proxy, self._context) if proxy else None,
            max_connections=None,
            max_keepalive_connections=self._connections,
            network_backend=self._network,
        )

    def _load_context(self) -> ssl.SSLContext:
        """Takes longer than a request. Mozilla's authorities are trusted where no others are named."""
        trusted = self._ca_file or (trusted_certificates() if self._trust_env else None) or certifi.where()
        if Path(trusted).is_dir():
            return ssl.create_default_context(capath=trusted)
        return ssl.create_default_context(cafile=trusted)


def _close_idle(pool: httpcore.ConnectionPool) -> None:
    """Connections in use go on until their requests end."""
    for connection in pool.connections:
        if connection.is_idle():
            connection.close()


def proxy_for(url: httpcore.URL) -> str | None:
    """By HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in small letters or capitals."""
    origin = url.origin
    host = origin.host.decode().strip("[]")
    proxies = getproxies()
    if proxy_bypass(f"{host}:{origin.port}") or _is_in_a_network(host, proxies.get("no", "")):
        return None
    return proxies.get(origin.scheme.decode()) or proxies.get("all")


def _is_in_a_network(host: str, networks: str) -> bool:
    """NO_PROXY may hold addresses and networks, such as 10.0.0.0/8; the standard library compares names only."""
    for network in networks.split(","):
        with suppress(ValueError):
            if ip_address(host) in ip_network(network.strip(), strict=False):
                return True
    return False


def _open_proxy(text: str, context: ssl.SSLContext | None) -> httpcore.Proxy:
    text = text if "://" in text else f"http://{text}"
    credentials = credentials_of(text)
    auth = credentials and (credentials[0].encode(), credentials[1].encode())
    return httpcore.Proxy(parse_url(text), auth=auth, ssl_context=context)
