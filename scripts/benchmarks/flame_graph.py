"""Draws samples of stacks as an SVG without scripts: the width of a function is its share, callers are below."""

import re
from collections import Counter
from dataclasses import dataclass, field
from html import escape

Stack = tuple[str, ...]
WIDTH, ROW, MARGIN, TOP = 1200, 17, 10, 64
LETTER = 6.1
"""Width of a letter, for what fits."""
LEAST = 0.002
"""Narrower functions are not drawn."""
KINDS = {
    "ours": ("#f2b880", r"\(app/"),
    "SQLAlchemy": ("#9db8e8", r"\(sqlalchemy/"),
    "psycopg, with libpq and its system calls": ("#8fd0c4", r"\(psycopg"),
    "Flask and Werkzeug": ("#d9a9d6", r"\((flask|werkzeug|jinja2|click|blinker)/"),
    "uvicorn and asyncio": ("#c9cf8a", r"\((uvicorn|asyncio|httptools|selectors\.py)|^event loop$"),
    "redis": ("#e79a94", r"\(redis"),
    "other": ("#d5d5d5", ""),
}


@dataclass
class Node:
    name: str
    samples: int = 0
    children: dict[str, "Node"] = field(default_factory=dict[str, "Node"])

    def add(self, stack: Stack, samples: int) -> None:
        self.samples += samples
        if stack:
            self.children.setdefault(stack[0], Node(stack[0])).add(stack[1:], samples)


@dataclass(frozen=True)
class Box:
    name: str
    depth: int
    left: float
    share: float
    """Of all samples, as `left`."""


def boxes(stacks: Counter[Stack]) -> list[Box]:
    root, found = Node("all"), list[Box]()
    for stack, samples in stacks.items():
        root.add(stack, samples)

    def place(node: Node, depth: int, left: float) -> None:
        for child in sorted(node.children.values(), key=lambda child: child.name):
            share = child.samples / root.samples
            if share >= LEAST:
                found.append(Box(child.name, depth, left, share))
                place(child, depth + 1, left)
            left += share

    place(root, 0, 0.0)
    return found


def kind_of(function: str) -> str:
    return next(kind for kind, (_, pattern) in KINDS.items() if re.search(pattern, function))


def shares(stacks: Counter[Stack]) -> dict[str, float]:
    """Of the innermost functions."""
    found: Counter[str] = Counter()
    for stack, samples in stacks.items():
        found[kind_of(stack[-1])] += samples
    return {kind: found[kind] / stacks.total() for kind in KINDS}


def svg(title: str, stacks: Counter[Stack]) -> str:
    placed = boxes(stacks)
    height = TOP + (max(box.depth for box in placed) + 1) * ROW + MARGIN
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
        ' font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{MARGIN}" y="20" font-size="14">{escape(title)}</text>',
        *_legend(shares(stacks)),
    ]
    return "\n".join([*head, *(_drawn(box, height) for box in placed), "</svg>", ""])


def _legend(found: dict[str, float]) -> list[str]:
    lines, left = list[str](), float(MARGIN)
    for kind, share in found.items():
        text = f"{kind} {share:.0%}"
        lines.append(f'<rect x="{left:.0f}" y="34" width="12" height="12" fill="{KINDS[kind][0]}"/>')
        lines.append(f'<text x="{left + 17:.0f}" y="44">{escape(text)}</text>')
        left += 17 + len(text) * 0.92 * LETTER + 20
    return lines


def _drawn(box: Box, height: int) -> str:
    wide = WIDTH - 2 * MARGIN
    left, top, width = MARGIN + box.left * wide, height - MARGIN - (box.depth + 1) * ROW, box.share * wide
    shown = _fitting(box.name, int((width - 4) / LETTER))
    text = f'<text x="{left + 3:.1f}" y="{top + 12}">{escape(shown)}</text>' if shown else ""
    return (
        f'<g><title>{escape(box.name)}: {box.share:.1%}</title><rect x="{left:.1f}" y="{top}" width="{width - 0.5:.1f}"'
        f' height="{ROW - 1}" fill="{KINDS[kind_of(box.name)][0]}"/>{text}</g>'
    )


def _fitting(name: str, letters: int) -> str:
    """The function without its file, if both do not fit."""
    if len(name) <= letters:
        return name
    function = name.partition(" (")[0]
    if len(function) <= letters:
        return function
    return f"{function[: letters - 1]}…" if letters >= 4 else ""
