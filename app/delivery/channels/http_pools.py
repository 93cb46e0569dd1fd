"""Keeps connections between requests, direct ones or through a proxy from the environment."""

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

# Webhooks have many receivers. One pool for all of them would be slow, because httpcore looks at each idle connection
# of a pool twice in a request.
_MOST_POOLS = 10

_PoolKey = tuple[bytes, bytes, int | None, str | None]
"""Scheme, host, port and proxy."""


class HttpPools:
    """A pool for each host. Only the pools that were used last are kept."""

    def __init__(self, *, connections: int, network: TimedBackend, ca_file: str | None, trust_env: bool) -> None:
        """`connections` is the number of idle connections that each pool keeps. More are opened while more threads need
        one, so that no thread waits for another."""
        self._connections = connections
        self._network = network
        self._ca_file = ca_file
        self._trust_env = trust_env
        self._pools: OrderedDict[_PoolKey, httpcore.ConnectionPool] = OrderedDict()
        self._context: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def pool_for(self, url: httpcore.URL) -> httpcore.ConnectionPool:
        """Raises `ValueError` if the environment names a proxy that is not an HTTP proxy."""
        proxy = proxy_for(url) if self._trust_env else None
        key = (url.scheme, url.host, url.port, proxy)
        with self._lock:
            pool = self._pools.get(key) or self._open(url, proxy)
            self._pools[key] = pool
            self._pools.move_to_end(key)
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
        """Called once, because it takes longer than a request. Mozilla's authorities are the default."""
        trusted = self._ca_file or (trusted_certificates() if self._trust_env else None) or certifi.where()
        if Path(trusted).is_dir():
            return ssl.create_default_context(capath=trusted)
        return ssl.create_default_context(cafile=trusted)


def _close_idle(pool: httpcore.ConnectionPool) -> None:
    """Closes the idle connections. The others stay open until their requests end."""
    for connection in pool.connections:
        if connection.is_idle():
            connection.close()


def proxy_for(url: httpcore.URL) -> str | None:
    """The proxy from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in lower or upper case; None for a direct
    connection."""
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
