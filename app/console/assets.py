"""The files that pages load: scripts, styles, pictures.

Their addresses contain the hash of all of them, so a browser may keep each file for good, and modules import each other
by relative paths without a build step.
"""

import gzip
import hashlib
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
PREFIX = "/assets"
CONTENT_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
_COMPRESSED = {".js", ".css", ".json", ".svg"}
_IMPORTS = re.compile(r"""^(?:import|export)\b[^"';]*["'](\.[^"']+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class Asset:
    content: bytes
    gzipped: bytes | None
    """None where the file is compressed already."""
    content_type: str


@dataclass(frozen=True)
class Assets:
    version: str
    files: Mapping[str, Asset]

    def address(self, name: str) -> str:
        return f"{PREFIX}/{self.version}/{name}"

    def modules_of(self, entry: str) -> list[str]:
        """The modules that an entry imports, directly and indirectly. A page names them all, because a browser would
        find each one only after it has read the one that imports it."""
        found: dict[str, None] = {}
        waiting = [entry]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = None
                waiting += self._imports(name)
        return [name for name in found if name != entry]

    def _imports(self, name: str) -> Iterable[str]:
        text = self.files[name].content.decode()
        return [posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) for path in _IMPORTS.findall(text)]


@cache
def read_assets() -> Assets:
    """Read for the first page, because most processes are never asked for one."""
    contents = {
        path.relative_to(STATIC).as_posix(): path.read_bytes()
        for path in sorted(STATIC.rglob("*"))
        if path.suffix in CONTENT_TYPES
    }
    version = hashlib.sha256()
    for name, content in contents.items():
        version.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return Assets(version.hexdigest()[:16], {name: _asset(name, content) for name, content in contents.items()})


def _asset(name: str, content: bytes) -> Asset:
    suffix = Path(name).suffix
    # Without a time in its header, the result is the same in every process.
    gzipped = gzip.compress(content, mtime=0) if suffix in _COMPRESSED else None
    return Asset(content, gzipped, CONTENT_TYPES[suffix])
