"""Where a process of the api spends its processor time while it serves presses: a flame graph of samples."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from machine import processes
from machine.steps import ROOT

from benchmarks import flame_graph, roles
from benchmarks.bench import SECRET, say
from benchmarks.ceiling_world import OURS, CeilingWorld
from benchmarks.cores import Placement, on
from benchmarks.flame_graph import Stack
from benchmarks.sampled_api import EVERY_S

CONNECTIONS = 8
TITLE = "Processor time of a press in the api role, under as many presses as one process accepts"
FRAME = re.compile(r'^  File "(.*)", line \d+ in (.*)$')
LIBRARY = re.compile(r"^.*/(?:site-packages|python3\.\d+)/")
LOOP, THREADS = "event loop", "threads"
LOOP_TURN = "_run_once (asyncio/base_events.py)"
THREAD_START = "(threading.py)"


def draw(world: CeilingWorld, placement: Placement, file: Path) -> str:
    """Writes the file, and returns a summary."""
    say("ceiling: flame graph of the api")
    presses = world.bench.size(4_000, 200)
    samples, port = world.bench.folder / "samples", processes.free_port()
    settings = {"SAMPLES": str(samples), "PORT": str(port), "API_WORKERS": "1", "AUTH_SECRET": SECRET}
    with on(placement.service):
        started = roles.started_module(world.bench, "sampled_api", OURS, ready="api_listening", **settings)
        with started, on(placement.client):
            roles.eventually(lambda: processes.is_ready(port))
            world.press(port, CONNECTIONS, presses // 4)
            warm = samples.stat().st_size
            world.press(port, CONNECTIONS, presses)
            recorded = samples.read_bytes()[warm:].decode(errors="replace")
    world.end_all(OURS)
    stacks = parse(recorded)
    title = f"{TITLE}: {EVERY_S * 1e3 * stacks.total() / presses:.1f} ms for each of {presses:,}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(flame_graph.svg(title, stacks))
    return f"{title}; {', '.join(f'{kind} {share:.0%}' for kind, share in flame_graph.shares(stacks).items())}."


def parse(recorded: str) -> Counter[Stack]:
    """Samples by stack, outermost function first. The first one may be cut, and is left out."""
    blocks = re.split(r"^(?:Stack|Current thread).*\n", recorded, flags=re.MULTILINE)[1:]
    return Counter(stack for block in blocks if (stack := tuple(_trimmed(list(_frames(block))[::-1]))))


def _frames(block: str) -> Iterator[str]:
    for line in block.splitlines():
        if match := FRAME.match(line):
            yield f"{match[2]} ({_short(match[1])})"


def _short(path: str) -> str:
    """Without where this machine has the project and its libraries."""
    short = LIBRARY.sub("", path.removeprefix(f"{ROOT}/"))
    return short.rpartition("/")[2] if short.startswith("/") else short


def _trimmed(frames: list[str]) -> Iterator[str]:
    """The start of a thread, and the way to the event loop, are the same in all stacks."""
    if LOOP_TURN in frames:
        yield LOOP
        yield from frames[frames.index(LOOP_TURN) + 1 :]
    elif frames:
        yield THREADS
        yield from (frame for frame in frames if not frame.endswith(THREAD_START) or frame == frames[-1])
