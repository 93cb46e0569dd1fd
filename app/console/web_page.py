"""A page as HTML: the files it loads, and what it may load."""

import hashlib
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from app.console.assets import Assets

ICON = "shared/icon.svg"


@dataclass(frozen=True)
class WebPage:
    title: str
    entry: str
    """Its script; the style sheet beside it has the same name."""
    styles: tuple[str, ...] = ()
    manifest: str | None = None
    frameable: bool = False
    """By pages of this service."""
    has_map: bool = False


def html(page: WebPage, assets: Assets) -> bytes:
    links = [f'<link rel="stylesheet" href="{assets.address(name)}">' for name in _styles(page, assets)]
    links += [f'<link rel="modulepreload" href="{assets.address(name)}">' for name in assets.modules_of(page.entry)]
    if page.manifest:
        links.append(f'<link rel="manifest" href="{page.manifest}">')
    return f"""<!doctype html>
<html lang="tr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
<meta name="theme-color" content="#0f6e66">
<title>{escape(page.title)}</title>
<link rel="icon" type="image/svg+xml" href="{assets.address(ICON)}">
{chr(10).join(links)}
<script type="module" src="{assets.address(page.entry)}"></script>
</head>
<body>
<div id="app"></div>
<noscript><p>Bu sayfa JavaScript ister. This page needs JavaScript.</p></noscript>
</body>
</html>
""".encode()


def files(page: WebPage, assets: Assets) -> list[str]:
    """All that a page loads when it is opened."""
    return [*_styles(page, assets), page.entry, *assets.modules_of(page.entry), ICON]


def _styles(page: WebPage, assets: Assets) -> list[str]:
    own_style = page.entry.removesuffix(".js") + ".css"
    return ["shared/base.css", *page.styles, *([own_style] if own_style in assets.files else [])]


def policy(page: WebPage, tile_address: str | None) -> str:
    """Nothing from elsewhere but the tiles of a map, and nothing inline: a name that looks like markup can run
    nothing."""
    ancestors = "'self'" if page.frameable else "'none'"
    tiles = f" {_origin(tile_address)}" if page.has_map and tile_address else ""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:{tiles}; connect-src 'self';"
        " manifest-src 'self'; worker-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none';"
        f" frame-ancestors {ancestors}"
    )


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def tag_of(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:16]}"'
