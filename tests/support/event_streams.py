"""Streams of events through Flask's test client, which cannot read asynchronous iterables."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from flask import Flask


@contextmanager
def first_piece_of_streams(app: Flask) -> Iterator[Flask]:
    """Of each stream the client gets the first piece, as if it had gone then."""
    inner: Any = app.wsgi_app

    def wsgi(environ: Any, start_response: Any) -> Any:
        answer = inner(environ, start_response)
        return [asyncio.run(_first(answer))] if isinstance(answer, AsyncIterable) else answer

    app.wsgi_app = wsgi
    yield app
    app.extensions["site"].realtime.close()


async def _first(stream: AsyncIterable[bytes]) -> bytes:
    pieces: Any = aiter(stream)
    assert isinstance(pieces, AsyncIterator)
    try:
        return await anext(pieces)
    finally:
        await pieces.aclose()
