"""A file as the body of a request, read in pieces and never as a whole."""

import time
from collections.abc import Mapping
from typing import Any

from werkzeug.exceptions import ClientDisconnected
from werkzeug.wsgi import get_input_stream

from app.api.body_stream import BodyStream
from app.api.errors import BadRequest

PIECE_WITHIN_S = 10.0
"""Slower senders are cut off."""


class FileUpload:
    def __init__(self, environ: Mapping[str, Any], within_s: float) -> None:
        self._stream = get_input_stream(dict(environ))
        self._ends = time.monotonic() + within_s

    def read(self, size: int) -> bytes:
        # Otherwise the limit for a whole request applies, and a large file takes longer.
        if isinstance(self._stream, BodyStream):
            self._stream.until = min(time.monotonic() + PIECE_WITHIN_S, self._ends)
        try:
            return self._stream.read(size)
        except (ClientDisconnected, OSError):
            raise BadRequest("The body ended before it was complete.") from None
