"""A file as an answer: in pieces, as a whole or in part, and not at all if the caller has it. The server cuts off
callers who do not read; they may ask for the rest."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from werkzeug.wrappers import Response
from werkzeug.wsgi import FileWrapper

PIECE_BYTES = 1 << 18
# What is not of this form is ignored, as RFC 9110 allows for lists of ranges and demands for other units.
_ONE_RANGE = re.compile(r"bytes=(\d+-\d*|-\d+)")


class FileDownload(FileWrapper):
    """Opened when it is made, so that the file may be removed meanwhile. Raises `FileNotFoundError`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("rb"), PIECE_BYTES)
        self._name = path.name
        self._bytes = path.stat().st_size

    def answer(self, environ: Mapping[str, Any], headers: Mapping[str, str], content_type: str) -> Response:
        """The name of the file is its tag, so a file of that name must never change."""
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
