"""A process of the role `api`: uvicorn reads and writes in an event loop, threads run the application."""

import asyncio
import faulthandler
import resource
import socket
from functools import partial
from types import FrameType

import structlog
import uvicorn
from flask import Flask

from app.api.accepting import Acceptor, ConnectionShare
from app.api.caller_connection import KEEP_ALIVE_S, CallerConnection, ConnectionState
from app.api.wsgi_threads import WsgiThreads
from app.settings.settings import Settings

log = structlog.get_logger(__name__)

BACKLOG = 2048
STUCK_AFTER_S = 60
"""A process whose event loop stalls for this long is stuck, and ends. Slow requests do not stall it, because they run
in threads."""
TICKS = 100
"""Of 0.1 s each, between two signs of life."""
ACCEPT_S = 0.05
VANISHED_AFTER_MS = 30_000
"""A phone that lost its network says no goodbye. TCP would keep trying for 15 minutes, and its streams would count."""
MOST_FILES = 65_536
"""Each connection is one. Many systems allow a process 1,024, unless it asks for more."""


def listen(settings: Settings) -> socket.socket:
    """The socket that the processes of the role share. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The loop sends without delay only through sockets that name the protocol; an answer would take 40 ms otherwise.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Other systems than Linux do not have it.
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, VANISHED_AFTER_MS)
    listener.bind((settings.host, settings.port))
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def serve(settings: Settings, app: Flask, listener: socket.socket, share: ConnectionShare) -> None:
    """Until SIGTERM or SIGINT, and then until all requests are answered."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES if most < 0 else min(most, MOST_FILES), most))
    threads = WsgiThreads(
        app,
        threads=settings.api_threads,
        most_body_bytes=settings.max_body_bytes,
        request_timeout_s=settings.request_timeout_s,
    )
    config = uvicorn.Config(
        threads,
        interface="asgi3",
        http=CallerConnection,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        # Faults are logged by the application. The rest tells what callers sent.
        log_level="critical",
        access_log=False,
        # Its headers can be made up. A proxy has its own log and limits.
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=settings.drain_s,
    )
    DrainingServer(config, threads, ConnectionState(settings.connections_per_address, share)).run([listener])


class DrainingServer(uvicorn.Server):
    server_state: ConnectionState

    def __init__(self, config: uvicorn.Config, threads: WsgiThreads, state: ConnectionState) -> None:
        super().__init__(config)
        self.server_state = state
        self._threads = threads
        self._acceptors: list[Acceptor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Without sockets, which are watched here, because asyncio's servers know no turns.
        await super().startup([])
        make_connection = partial(CallerConnection, self.config, self.server_state, {})
        self._acceptors = [Acceptor(one, self.server_state.share, make_connection) for one in sockets or []]
        log.info("api_listening")

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS == 0:
            faulthandler.dump_traceback_later(STUCK_AFTER_S, exit=True)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Without uvicorn's notes: it would end with the signal instead of a return."""
        self.should_exit = self.server_state.draining = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Clients that have connected are answered. Later ones are refused at once, and try another process."""
        self.server_state.draining = True
        for acceptor in self._acceptors:
            acceptor.accept_all()
        await asyncio.sleep(ACCEPT_S)
        for acceptor in self._acceptors:
            acceptor.close()
        self._threads.end_streams()
        await super().shutdown(sockets)
        faulthandler.cancel_dump_traceback_later()
