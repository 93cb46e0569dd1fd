"""A file as an answer: in pieces, as a whole or in part, and not at all if the caller has it."""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from werkzeug.wrappers import Response
from werkzeug.wsgi import FileWrapper

PIECE_BYTES = 1 << 18
PIECE_WITHIN_S = 10.0
"""Slower callers are cut off. They may ask for the rest."""

# What is not of this form is ignored, as RFC 9110 allows for lists of ranges and demands for other units.
_ONE_RANGE = re.compile(r"bytes=(\d+-\d*|-\d+)")


class FileDownload(FileWrapper):
    """Opened when it is made, so that the file may be removed meanwhile. Raises `FileNotFoundError`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("rb"), PIECE_BYTES)
        self._name = path.name
        self._bytes = path.stat().st_size
        self._socket: Any = None

    def __next__(self) -> bytes:
        # Gunicorn's worker limits the time of a whole request and its answer, and a large file takes longer.
        if self._socket is not None:
            self._socket.until = time.monotonic() + PIECE_WITHIN_S
        return super().__next__()

    def answer(self, environ: Mapping[str, Any], headers: Mapping[str, str], content_type: str) -> Response:
        """The name of the file is its tag, so a file of that name must never change."""
        self._socket = environ.get("gunicorn.socket")
        response = Response(self, 200, headers, content_type=content_type, direct_passthrough=True)
        response.content_length = self._bytes
        response.set_etag(self._name)
        response.headers["Content-Disposition"] = f'attachment; filename="{self._name}"'
        response.accept_ranges = "bytes"
        is_range = _ONE_RANGE.fullmatch(environ.get("HTTP_RANGE", "")) is not None
        try:
            return response.make_conditional(dict(environ), is_range, self._bytes)
        except BaseException:
            self.close()
            raise
