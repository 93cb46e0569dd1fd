"""Animated pictures (APNG) from screenshots. Each frame has only what has changed; the browser compares them."""

import base64
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser

SIGNATURE = b"\x89PNG\r\n\x1a\n"
FOREVER = 0
# From a list of pictures to the changed rectangle of each, `{x, y, width, height, png}`.
CHANGED_PARTS = """async (pictures) => {
    const parts = [];
    let before = null;
    for (const picture of pictures) {
        const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${picture}`)).blob());
        const { width, height } = bitmap;
        const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
        context.drawImage(bitmap, 0, 0);
        const now = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
        const [xs, ys] = [[], []];
        now.forEach((pixel, index) => {
            if (before && pixel === before[index]) return;
            xs.push(index % width);
            ys.push(Math.floor(index / width));
        });
        const least = (all) => all.reduce((one, other) => Math.min(one, other), all.length ? Infinity : 0);
        const most = (all) => all.reduce((one, other) => Math.max(one, other), 0);
        const [x, y] = [least(xs), least(ys)];
        const part = new OffscreenCanvas(most(xs) - x + 1, most(ys) - y + 1);
        part.getContext("2d").putImageData(context.getImageData(x, y, part.width, part.height), 0, 0);
        const bytes = new Uint8Array(await (await part.convertToBlob({ type: "image/png" })).arrayBuffer());
        const png = btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
        parts.push({ x, y, width: part.width, height: part.height, png });
        before = now;
    }
    return parts;
}"""


@dataclass(frozen=True)
class Frame:
    png: bytes
    shown_ms: int


def packed(png: bytes) -> bytes:
    """The same picture in fewer bytes: browsers pack in a hurry."""
    chunks = _chunks(png)
    again = zlib.compress(zlib.decompress(chunks[b"IDAT"]), 9)
    return SIGNATURE + b"".join(_chunk(*one) for one in (chunks | {b"IDAT": again}).items())


def animated(browser: Browser, frames: Sequence[Frame]) -> bytes:
    page = browser.new_page()
    parts = page.evaluate(CHANGED_PARTS, [base64.b64encode(frame.png).decode() for frame in frames])
    page.close()
    return b"".join(_file(frames, parts))


def _file(frames: Sequence[Frame], parts: Sequence[dict[str, Any]]) -> Iterator[bytes]:
    pictures = [_chunks(packed(base64.b64decode(part["png"]))) for part in parts]
    yield SIGNATURE
    yield _chunk(b"IHDR", pictures[0][b"IHDR"])
    yield _chunk(b"acTL", struct.pack(">II", len(frames), FOREVER))
    number = 0
    for frame, part, picture in zip(frames, parts, pictures, strict=True):
        place = struct.pack(">IIIII", number, part["width"], part["height"], part["x"], part["y"])
        # The rest of the picture stays as the frame before has left it.
        yield _chunk(b"fcTL", place + struct.pack(">HHBB", frame.shown_ms, 1000, 0, 0))
        number += 1
        if part is parts[0]:
            yield _chunk(b"IDAT", picture[b"IDAT"])
        else:
            yield _chunk(b"fdAT", struct.pack(">I", number) + picture[b"IDAT"])
            number += 1
    yield _chunk(b"IEND", b"")


def _chunks(png: bytes) -> dict[bytes, bytes]:
    """All data of a kind together, because an encoder may cut it into several chunks."""
    found: dict[bytes, bytes] = {}
    at = len(SIGNATURE)
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        kind = png[at + 4 : at + 8]
        found[kind] = found.get(kind, b"") + png[at + 8 : at + 8 + size]
        at += 12 + size
    return found


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
