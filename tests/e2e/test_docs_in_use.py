"""Runs every command of README.md, CONTRIBUTING.md and docs/, in order, and compares its output with the page.

The commands run in a copy of the project without its data. It uses the virtual environment of these tests, so the one
thing that is not tested here is that `scripts/run` installs missing packages. One copy of the service is started for
all pages, as the README starts it. Each page has its own bash.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from machine import processes
from machine.running_copy import MARK

from tests.support.pages import ROOT, Block, Command, blocks, pages

PARTS = (
    *("app", "docs", "migrations", "scripts", "tests"),
    *("pyproject.toml", "requirements.lock", "requirements-dev.lock"),
    *(page.name for page in pages() if page.parent == ROOT),
)
# The settings of the copy come from the page, not from the environment of the tests.
CALLER = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "USER") if name in os.environ} | {
    "LANG": "C.UTF-8"
}
PORTS_OF_THE_PAGES = ("8080", "8081")
"""The port of the copy, and that of a second process of the api. The tests replace them by free ones."""
READY_WITHIN_S = 90.0
ANSWER_WITHIN_S = 90.0
PROBLEM = '"type":"about:blank"'


class Shell:
    """A bash that runs one command after the other."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        reading, self._writing = os.pipe()
        self._statuses, statuses = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "--norc", f"/dev/fd/{reading}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tree,
            env=CALLER | {"PATH": path_with_curl(folder), "STATUSES": str(statuses)},
            pass_fds=(reading, statuses),
            start_new_session=True,
        )
        os.close(reading)
        os.close(statuses)

    def run(self, text: str) -> tuple[int | None, str]:
        """Exit code and output. The exit code is None if the command did not end in time."""
        command, output = self._folder / "command", self._folder / "output"
        command.write_text(f"{text}\n")
        # A new file for each command, because processes in the background still write to the file of theirs.
        output.unlink(missing_ok=True)
        os.write(self._writing, f". {command} >{output} 2>&1 </dev/null; echo $? >&$STATUSES\n".encode())
        ended, _, _ = select.select([self._statuses], [], [], ANSWER_WITHIN_S)
        status = os.read(self._statuses, 16) if ended else b""
        return int(status) if status else None, output.read_text(errors="replace")

    def close(self) -> None:
        os.close(self._writing)
        # The whole process group, with all that bash has started.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._statuses)


def path_with_curl(folder: Path, path: str = os.environ["PATH"]) -> str:
    """The PATH; on a machine without curl extended by a folder with a stand-in for it."""
    if shutil.which("curl", path=path):
        return path
    stand_in = folder / "curl"
    stand_in.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "tests" / "support" / "curl.py"} "$@"\n')
    stand_in.chmod(0o755)
    return f"{path}:{folder}"


def expected(shown: tuple[str, ...]) -> "re.Pattern[str]":
    parts = [r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"[ \t]*\n" for line in shown]
    return re.compile("".join(parts))


def problem_with(command: Command, status: int | None, output: str) -> str | None:
    if status is None:
        return f"had not ended after {ANSWER_WITHIN_S:.0f} s"
    if status != 0:
        return f"ended with {status}"
    if command.shown and not expected(command.shown).fullmatch(output.rstrip("\n") + "\n"):
        return "showed something else"
    if not command.shown and PROBLEM in output:
        return "was refused"
    return None


def report(block: Block, command: Command, problem: str, output: str) -> str:
    shown = "\n".join(command.shown) or "(nothing)"
    place = f"{block.page.relative_to(ROOT)}:{command.line}"
    return f"{place} {problem}\n{command.text}\n--- page\n{shown}\n--- here\n{output}"


@contextmanager
def clean_tree(folder: Path) -> Iterator[Path]:
    """The files of a new clone, with the virtual environment of these tests instead of one that is installed anew."""
    tree = folder / "yaninda"
    tree.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, tree / part)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    yield tree
    shutil.rmtree(tree / ".run", ignore_errors=True)


@contextmanager
def running(tree: Path, start: Block, port: str) -> Iterator[None]:
    """Starts the copy that the pages use by the command of the README, on a free port, with the value of the mark."""
    name, value = start.about.split("=")
    printed = tree.parent / "copy.out"
    command = f"{re.sub(f'{name}=[^ ]+', f'{name}={value}', start.lines[0])} --port {port}"
    with printed.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-c", f"exec env {command}"],
            cwd=tree,
            env=CALLER | {"API_WORKERS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + READY_WITHIN_S
        while "Ready: " not in printed.read_text(errors="replace"):
            assert process.poll() is None and time.monotonic() < until, printed.read_text(errors="replace")
            time.sleep(0.05)
        yield
        assert process.poll() is None, printed.read_text(errors="replace")
    finally:
        process.terminate()
        process.wait(timeout=READY_WITHIN_S)
        assert processes.running_with(MARK, str(tree / ".run")) == []


def problems_of(page: Path, tree: Path, ports: Sequence[str]) -> Iterator[str]:
    shell = Shell(tree, tree.parent / f"shell-{page.stem}")
    try:
        for block in blocks(page):
            for command in block.commands() if block.is_run else ():
                status, output = shell.run(with_free_ports(command.text, ports))
                problem = problem_with(command, status, output)
                if problem is not None:
                    # Later commands may depend on this one.
                    yield report(block, command, problem, output)
                    return
    finally:
        shell.close()


def with_free_ports(text: str, ports: Sequence[str]) -> str:
    for shown, free in zip(PORTS_OF_THE_PAGES, ports, strict=True):
        text = re.sub(rf"\b{shown}\b", free, text)
    return text


def test_every_command_shows_what_its_page_says(tmp_path: Path) -> None:
    with_commands = [page for page in pages() if any(block.is_run for block in blocks(page))]
    [start] = [block for page in pages() for block in blocks(page) if block.mark == "starts the copy"]
    ports = [str(processes.free_port()) for _ in PORTS_OF_THE_PAGES]
    with clean_tree(tmp_path) as tree, running(tree, start, ports[0]):
        problems = [problem for page in with_commands for problem in problems_of(page, tree, ports)]
    assert not problems, "\n\n".join(problems)


@pytest.mark.parametrize(
    ("shown", "output", "fits"),
    [
        (('{"id":"…","status":"SENT",…}',), '{"id":"7","status":"SENT","body":"x"}', True),
        (('{"id":"…","status":"SENT",…}',), '{"id":"7","status":"DEAD","body":"x"}', False),
        (("one", "…", "four"), "one\ntwo\nthree\nfour\n", True),
        (("one", "…", "four"), "one\nfour\n", True),
        (("one", "four"), "one\ntwo\nfour\n", False),
        (("one",), "one\ntwo\n", False),
        ((), "anything", True),
        ((), '{"type":"about:blank","title":"Not Found","status":404}', False),
        ((), '{"status":409,"type":"about:blank"}', False),
    ],
)
def test_an_answer_is_compared_with_what_the_page_shows(shown: tuple[str, ...], output: str, fits: bool) -> None:
    assert (problem_with(Command(1, "x", shown), 0, output) is None) is fits


def test_a_command_that_fails_or_never_ends_is_a_problem() -> None:
    assert problem_with(Command(1, "x", ()), 2, "") == "ended with 2"
    assert problem_with(Command(1, "x", ()), None, "") == f"had not ended after {ANSWER_WITHIN_S:.0f} s"


def test_a_shell_keeps_variables_and_returns_exit_codes_and_output(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path / "shell")
    try:
        assert shell.run("WORD=seven") == (0, "")
        assert shell.run('echo "$WORD"; echo eight >&2; false') == (1, "seven\neight\n")
        assert shell.run("cat") == (0, "")
        assert shell.run("(until [ -e go ]; do sleep 0.01; done; echo this comes too late) &") == (0, "")
        assert shell.run("touch go; wait; echo nine") == (0, "nine\n")
    finally:
        shell.close()


def test_a_machine_without_curl_gets_a_stand_in(tmp_path: Path) -> None:
    path = path_with_curl(tmp_path, path=str(tmp_path / "nothing"))
    asked: list[tuple[str, str, str | None, bytes]] = []

    class Server(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.command, self.path, self.headers["Authorization"], body))
            self.send_response(409)
            self.end_headers()
            self.wfile.write("{çay}".encode())

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.handle_request).start()
        command = [
            shutil.which("curl", path=path) or "",
            "-s",
            "-X",
            "PUT",
            f"http://127.0.0.1:{server.server_port}/a?b=c",
        ]
        done = subprocess.run([*command, "-H", "Authorization: Bearer x", "-d", "{}"], capture_output=True, check=True)
    assert done.stdout.decode() == "{çay}"
    assert asked == [("PUT", "/a?b=c", "Bearer x", b"{}")]
