"""Processes that parse beside the one that reads: they find the same, and end with it."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from app.roster.kinds.student_list import KIND
from app.roster.lists.list_refused import BadRow, ListRefused, Refusal, RowFlaw
from app.roster.lists.parsing_processes import NICE
from app.roster.lists.read_list import read_pieces
from tests.support.lists import RULES, packed, read, turkish_id

HERE = replace(RULES, piece_bytes=4000)
BESIDE = replace(HERE, processes=2, small_bytes=0)
# Its imports are where the processes do not repeat them.
READER = """
if __name__ == "__main__":
    import multiprocessing, sys
    from dataclasses import replace
    from pathlib import Path
    from app.roster.kinds.student_list import KIND
    from app.roster.lists.read_list import read_pieces
    from tests.support.lists import RULES

    rules = replace(RULES, piece_bytes=4000, processes=2, small_bytes=0)
    pieces = read_pieces(Path(sys.argv[1]), KIND.source, KIND.source.lists[0], rules)
    next(pieces)
    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
    sys.stdin.read()
"""
DEADLINE_S = 20


def student(number: int) -> str:
    return (
        f"<student><identifier>{turkish_id(number)}</identifier><name>Ayşe</name>"
        "<institutions><institution>7</institution></institutions></student>\n"
    )


def listed(folder: Path, numbers: Iterable[int]) -> Path:
    return packed(folder / "list.zip", f"<students>\n{''.join(map(student, numbers))}</students>".encode(), "list.xml")


def test_processes_find_the_same_in_the_same_order(tmp_path: Path) -> None:
    file = listed(tmp_path, [*range(400), 3])
    found = read(file, KIND.source, BESIDE)
    assert found == read(file, KIND.source, HERE)
    assert found.bad == [BadRow(402, RowFlaw.DUPLICATE, "identifier")]
    assert multiprocessing.active_children() == []


def test_process_that_has_parsed_gives_way_to_the_service(tmp_path: Path) -> None:
    pieces = read_pieces(listed(tmp_path, range(400)), KIND.source, KIND.source.lists[0], BESIDE)
    next(pieces)
    children = [child.pid for child in multiprocessing.active_children() if child.pid is not None]
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    # The other one may not have begun yet.
    assert max(os.getpriority(os.PRIO_PROCESS, pid) for pid in children) == min(mine + NICE, 19)
    list(pieces)


def test_refusal_can_be_sent_by_a_process() -> None:
    sent = pickle.loads(pickle.dumps(ListRefused(Refusal.MALFORMED, "Have it made once more.")))
    assert (sent.reason, sent.message) == (Refusal.MALFORMED, "Have it made once more.")


def test_processes_end_when_nobody_reads_on(tmp_path: Path) -> None:
    pieces = read_pieces(listed(tmp_path, range(400)), KIND.source, KIND.source.lists[0], BESIDE)
    next(pieces)
    assert len(multiprocessing.active_children()) == 2
    pieces.close()
    assert multiprocessing.active_children() == []


def test_processes_end_with_the_one_that_reads(tmp_path: Path) -> None:
    program = tmp_path / "reader.py"
    program.write_text(READER)
    reader = subprocess.Popen(
        [sys.executable, str(program), str(listed(tmp_path, range(400)))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with reader:
        assert reader.stdout is not None
        children = [int(number) for number in reader.stdout.readline().split()]
        reader.send_signal(signal.SIGKILL)
    assert len(children) == 2
    until = time.monotonic() + DEADLINE_S
    while any(map(is_running, children)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(is_running, children))


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
