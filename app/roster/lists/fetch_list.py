"""Gets a list from a local path or over HTTPS, unless it has not changed.

It uses the connections of the HTTP client for messages: one deadline for everything, and the proxies and certificates
of the environment. That client itself reads short answers into memory and follows no redirects.
"""

import hashlib
import stat
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpcore

from app.delivery.fetching import HttpPools, TimedBackend, parse_url
from app.roster.lists.list_refused import ListRefused, Refusal
from app.roster.lists.reading_rules import ListLimits
from app.roster.lists.stored_list import stored_part

_REDIRECTS = (301, 302, 303, 307, 308)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HEADERS = [
    (b"Accept", b"application/zip, */*;q=0.5"),
    (b"Accept-Encoding", b"identity"),
    (b"User-Agent", b"Yaninda/1"),
]


@dataclass(frozen=True)
class Validators:
    """What tells that a list has not changed. Kept with the run that took the list."""

    sha256: str
    etag: str | None = None
    last_modified: str | None = None
    size: int | None = None
    mtime_ns: int | None = None
    """Of a local file; with its size it saves reading all of it."""


@dataclass(frozen=True)
class FetchedList:
    file: Path
    validators: Validators


@dataclass(frozen=True)
class UnchangedList:
    file: Path
    """It is still there, because another list of the source may have changed."""
    validators: Validators


def fetch_list(
    location: str, known: Validators | None, folder: Path, limits: ListLimits, *, allow_http_on_loopback: bool = False
) -> FetchedList | UnchangedList:
    """`folder` is for this one list: the last download is kept there."""
    if "://" not in location:
        return _look_at(Path(location), known, limits)
    return _Download(folder, limits, allow_http_on_loopback).get(location, known)


def _look_at(file: Path, known: Validators | None, limits: ListLimits) -> FetchedList | UnchangedList:
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ListRefused(Refusal.NOT_READABLE, "The path of the list is not a file.")
        if status.st_size > limits.archive_bytes:
            raise _too_large(limits)
        found = (status.st_size, status.st_mtime_ns)
        if known is not None and found == (known.size, known.mtime_ns):
            return UnchangedList(file, known)
        with file.open("rb") as opened:
            sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise ListRefused(Refusal.NOT_READABLE, f"The file of the list cannot be read: {error.strerror}.") from error
    validators = Validators(sha256, size=found[0], mtime_ns=found[1])
    is_known = known is not None and known.sha256 == sha256
    return UnchangedList(file, validators) if is_known else FetchedList(file, validators)


@dataclass(frozen=True)
class _Download:
    folder: Path
    limits: ListLimits
    allow_http_on_loopback: bool

    def get(self, url: str, known: Validators | None) -> FetchedList | UnchangedList:
        # Without the file, an answer that nothing has changed would be of no use.
        kept = known if known is not None and self._file_of(known.sha256).is_file() else None
        until = time.monotonic() + self.limits.time_s
        with closing(HttpPools(connections=1, network=TimedBackend(), ca_file=None, trust_env=True)) as pools:
            for _ in range(self.limits.redirects + 1):
                with self._answer(pools, url, kept, until) as response:
                    if response.status not in _REDIRECTS:
                        return self._take(response, kept)
                    url = urljoin(url, _header(response, b"location") or "")
        raise ListRefused(Refusal.REDIRECT, f"The address redirects more than {self.limits.redirects} times.")

    @contextmanager
    def _answer(
        self, pools: HttpPools, url: str, kept: Validators | None, until: float
    ) -> Generator[httpcore.Response]:
        self._require_safe(url)
        headers = [*_HEADERS]
        if kept is not None and kept.etag:
            headers.append((b"If-None-Match", kept.etag.encode("latin-1")))
        if kept is not None and kept.last_modified:
            headers.append((b"If-Modified-Since", kept.last_modified.encode("latin-1")))
        # `TimedBackend` takes times of the monotonic clock.
        extensions = {"timeout": {"connect": until, "write": until, "read": until}}
        try:
            target = parse_url(url)
            with pools.pool_for(target).stream("GET", target, headers=headers, extensions=extensions) as response:
                yield response
        except httpcore.TimeoutException as error:
            raise ListRefused(
                Refusal.TOO_LATE, f"The list did not arrive within {self.limits.time_s:g} seconds."
            ) from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, ValueError) as error:
            raise ListRefused(
                Refusal.UNREACHABLE, "The server of the list cannot be reached, or the connection broke."
            ) from error

    def _require_safe(self, url: str) -> None:
        parts = urlsplit(url)
        is_local = self.allow_http_on_loopback and parts.scheme == "http" and parts.hostname in _LOOPBACK
        if parts.scheme != "https" and not is_local:
            raise ListRefused(Refusal.REDIRECT, "A list is fetched over https only, also after a redirect.")

    def _take(self, response: httpcore.Response, kept: Validators | None) -> FetchedList | UnchangedList:
        etag, modified = _header(response, b"etag"), _header(response, b"last-modified")
        if response.status == 304 and kept is not None:
            validators = replace(kept, etag=etag or kept.etag, last_modified=modified or kept.last_modified)
            return UnchangedList(self._file_of(kept.sha256), validators)
        if response.status != 200:
            raise ListRefused(Refusal.NOT_READABLE, f"The server of the list answers with status {response.status}.")
        if (_header(response, b"content-type") or "").lower().startswith("text/html"):
            raise ListRefused(Refusal.HTML, "The server answers with a web page, not with a list. Check the address.")
        length = _header(response, b"content-length") or ""
        if length.isdigit() and int(length) > self.limits.archive_bytes:
            raise _too_large(self.limits)
        with stored_part(response.iter_stream(), self.folder, self.limits) as part:
            validators = Validators(part.sha256, etag, modified, part.size)
            file = part.move_to(self._file_of(part.sha256))
        for old in self.folder.glob("*.zip"):
            if old != file:
                old.unlink(missing_ok=True)
        is_known = kept is not None and kept.sha256 == part.sha256
        return UnchangedList(file, validators) if is_known else FetchedList(file, validators)

    def _file_of(self, sha256: str) -> Path:
        return self.folder / f"{sha256}.zip"


def _header(response: httpcore.Response, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in response.headers if key.lower() == name), None)


def _too_large(limits: ListLimits) -> ListRefused:
    return ListRefused(Refusal.TOO_LARGE, f"The archive is larger than the {limits.archive_bytes:,} bytes allowed.")
