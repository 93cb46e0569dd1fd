"""Which scripts may run, and what a hostile one can do to whoever asks about it."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.jobs.catalogue import MOST_CHECKS, Catalogue
from app.jobs.contract import CatalogueBusy, ScriptBroken, ScriptFolderGone, ScriptUnknown, TaskType, WrongParams
from tests.support.jobs import CATALOGUE, SHIPPED

HARMLESS = '"""Does nothing."""\n\ndef run(params, context):\n    return None\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    return folder


def put(folder: Path, name: str, text: str = HARMLESS) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_declaration_is_read() -> None:
    declared = SHIPPED.declaration("greet")
    assert (declared.summary, declared.description) == ("Greets a person.", "For the tests of jobs.")
    assert (declared.task_type, declared.max_retries, declared.timeout_s) == (TaskType.IO_BOUND, 0, None)
    assert declared.parameters["properties"]["name"]["default"] == "Ayşe"


def test_parameters_from_json_are_strict() -> None:
    given = {"name": "Çağla", "day": "2026-03-12"}
    checked = SHIPPED.check("greet", given)
    assert checked == CATALOGUE.check("greet", given), "a process of its own says the same"
    assert checked.params == {
        "name": "Çağla",
        "times": 1,
        "day": "2026-03-12",
        "polite": True,
        "language": "tr",
        "tags": [],
    }
    wrong = {"name": "", "times": "2", "day": "tomorrow", "polite": 1, "language": "de", "tags": [5], "color": "red"}
    with pytest.raises(WrongParams) as refused:
        SHIPPED.check("greet", wrong)
    assert {problem.field for problem in refused.value.problems} == set(wrong) - {"tags"} | {"tags.0"}


def test_parameters_from_words_are_converted() -> None:
    words = {"times": "2", "day": "2026-03-12", "polite": "false", "name": "Ayşe"}
    checked = SHIPPED.check("greet", words, are_strings=True)
    assert (checked.params["times"], checked.params["polite"]) == (2, False)
    assert SHIPPED.check("greet", {"tags": '["a","b"]', "times": "3"}, are_strings=True).params["tags"] == ["a", "b"]
    with pytest.raises(WrongParams) as refused:
        SHIPPED.check("greet", {"times": "two", "tags": "[a"}, are_strings=True)
    assert {problem.field for problem in refused.value.problems} == {"times", "tags"}


def test_parameters_that_cannot_be_stored_are_refused() -> None:
    with pytest.raises(WrongParams):
        SHIPPED.check("greet", {"name": "a\0b"})
    with pytest.raises(WrongParams):
        Catalogue(None).check("check_promises", {"grace_s": "inf"}, are_strings=True)


def test_word_that_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(WrongParams):
        SHIPPED.check("greet", {"tags": "[" * 100_000}, are_strings=True)


def test_script_without_a_model_takes_any_object(folder: Path) -> None:
    put(folder, "plain.py")
    assert Catalogue(None, folder).check("plain", {"a": [1, {"b": None}]}).params == {"a": [1, {"b": None}]}


def test_misspelt_parameter_is_refused_also_if_the_model_would_ignore_it(folder: Path) -> None:
    put(
        folder,
        "lax.py",
        "from pydantic import BaseModel\nclass P(BaseModel):\n    days: int = 1\n"
        "def run(params: P, context):\n    return params.days\n",
    )
    with pytest.raises(WrongParams) as refused:
        Catalogue(None, folder).check("lax", {"day": 5})
    assert [(problem.field, problem.kind) for problem in refused.value.problems] == [("day", "extra_forbidden")]


@pytest.mark.parametrize(
    "name",
    [
        "../secret",
        "..",
        "/etc/passwd",
        "sub/inner",
        "plain.py",
        "Plain",
        "",
        "plain\n",
        "plain\0",
        "çizelge",
        "a" * 65,
        "__init__",
        "~root",
        "1st",
    ],
)
def test_names_that_are_paths_are_unknown(folder: Path, name: str) -> None:
    put(folder, "plain.py")
    put(folder.parent, "secret.py")
    (folder / "sub").mkdir()
    put(folder / "sub", "inner.py")
    with pytest.raises(ScriptUnknown):
        Catalogue(folder).path_of(name)


def test_links_and_folders_are_refused(folder: Path) -> None:
    outside = put(folder.parent, "outside.py")
    (folder / "link.py").symlink_to(outside)
    (folder / "inner_link.py").symlink_to(put(folder, "plain.py"))
    (folder / "gone.py").symlink_to(folder / "nowhere.py")
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "pipe.py")
    for name in ("link", "inner_link", "gone", "folder", "pipe"):
        with pytest.raises(ScriptBroken):
            Catalogue(folder).path_of(name)


def test_script_that_others_may_write_is_refused(folder: Path) -> None:
    put(folder, "open_to_all.py").chmod(0o666)
    with pytest.raises(ScriptBroken, match="chmod"):
        Catalogue(folder).path_of("open_to_all")
    put(folder, "plain.py").chmod(0o644)
    folder.chmod(0o777)
    with pytest.raises(ScriptBroken, match="chmod"):
        Catalogue(folder).path_of("plain")


def test_folder_may_be_a_link_itself(folder: Path) -> None:
    put(folder, "plain.py")
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert Catalogue(link).path_of("plain").samefile(folder / "plain.py")


def test_shipped_script_cannot_be_replaced(folder: Path, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    put(shipped, "plain.py", HARMLESS.replace("nothing", "what it should"))
    put(folder, "plain.py", "import os; os._exit(1)")
    catalogue = Catalogue(folder, shipped)
    assert catalogue.declaration("plain").summary == "Does what it should."
    assert [(entry.name, entry.is_shipped) for entry in catalogue.entries()] == [("plain", True)]


HOSTILE: dict[str, tuple[str, str]] = {
    "exits": ("import os; os._exit(0)", "ended the process"),
    "exits_politely": ("import sys; sys.exit(0)", "SystemExit"),
    "kills_itself": ("import os; os.kill(os.getpid(), 9)", "signal 9"),
    "kills_its_group": ("import os; os.killpg(0, 9)", "signal 9"),
    "never_ends": ("while True: pass", "takes longer than"),
    "never_ends_deaf": ("import signal, time\nsignal.signal(15, lambda *_: None)\ntime.sleep(99)", "takes longer than"),
    "is_not_python": ("def run(:", "SyntaxError in line 1"),
    "fails": ("\nx = 1 / 0", "ZeroDivisionError in line 2"),
    "has_no_run": ("x = 1", "no function run"),
    "takes_one": ("def run(params): ...", "two arguments"),
    "odd_type": ("TASK_TYPE = 'both'\n" + HARMLESS, "TASK_TYPE"),
    "odd_retries": ("MAX_RETRIES = -1\n" + HARMLESS, "MAX_RETRIES"),
    "odd_timeout": ("TIMEOUT_S = float('nan')\n" + HARMLESS, "TIMEOUT_S"),
    "odd_annotation": ("def run(params: 'Nothing', context): ...", "NameError"),
    "answers_itself": (
        "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'[1]')\n    except OSError: continue\nos._exit(0)",
        "disturbs",
    ),
}


def test_hostile_scripts_are_listed_with_the_reason_and_harm_nobody(folder: Path) -> None:
    for name, (text, _) in HOSTILE.items():
        put(folder, f"{name}.py", text)
    put(folder, "prints.py", "print('{}' * 1_000_000)\n" + HARMLESS)
    put(folder, "_part.py", "raise RuntimeError")
    put(folder, "Not-A-Name.py")
    (folder / "link.py").symlink_to(folder / "prints.py")
    catalogue = Catalogue(folder, shipped=folder.parent, reading_limit_s=4.0)
    entries = {entry.name: entry for entry in catalogue.entries()}
    assert entries.keys() - {"prints", "Not-A-Name", "link"} == HOSTILE.keys()
    for name, (_, reason) in HOSTILE.items():
        assert reason in (entries[name].error or ""), (name, entries[name].error)
    assert entries["prints"].error is None
    assert entries["Not-A-Name"].error and entries["link"].error
    for name in ("exits", "fails"):
        with pytest.raises(ScriptBroken):
            catalogue.check(name, {})


def test_changed_script_is_read_again(folder: Path) -> None:
    catalogue = Catalogue(folder)
    put(folder, "plain.py")
    assert catalogue.declaration("plain").summary == "Does nothing."
    put(folder, "plain.py", HARMLESS.replace("nothing", "something"))
    assert catalogue.declaration("plain").summary == "Does something."


def test_script_that_was_broken_for_a_reason_outside_of_it_is_read_again(folder: Path) -> None:
    moment = 0.0
    catalogue = Catalogue(folder, monotonic=lambda: moment)
    put(folder, "plain.py", f"import sys\nsys.path.append({str(folder)!r})\nimport _part\n{HARMLESS}")
    for now, is_broken in ((0.0, True), (59.0, True), (61.0, False)):
        moment = now
        [entry] = [entry for entry in catalogue.entries() if entry.name == "plain"]
        assert (entry.error is not None) == is_broken
        put(folder, "_part.py", "")


def test_removed_folder_is_an_error_and_shipped_scripts_still_run(folder: Path) -> None:
    catalogue = Catalogue(folder)
    folder.rmdir()
    with pytest.raises(ScriptFolderGone, match="JOBS_DIR"):
        catalogue.entries()
    with pytest.raises(ScriptBroken, match="JOBS_DIR"):
        catalogue.check("plain", {})
    assert catalogue.check("rebuild_counts", {}).params


def test_script_gets_none_of_the_settings_while_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    put(folder, "curious.py", "import os\n__doc__ = repr(sorted(os.environ))\n" + HARMLESS.partition("\n")[2])
    assert "DATABASE_URL" not in CATALOGUE.declaration("act").summary
    assert "DATABASE_URL" not in Catalogue(folder).declaration("curious").summary


def test_every_shipped_script_can_be_used_and_reads_the_parameters_that_were_stored() -> None:
    catalogue = Catalogue(None)
    for entry in catalogue.entries():
        assert entry.error is None and entry.declaration is not None and entry.declaration.summary
        try:
            stored = catalogue.check(entry.name, {}).params
        except WrongParams as error:
            assert {problem.kind for problem in error.problems} == {"missing"}
        else:
            assert catalogue.check(entry.name, stored).params == stored


def test_scripts_that_hang_keep_only_some_threads(folder: Path) -> None:
    put(folder, "hang.py", "import time\ntime.sleep(60)\n" + HARMLESS)
    catalogue = Catalogue(folder, reading_limit_s=2)

    def check(_number: int) -> type[Exception]:
        with pytest.raises((ScriptBroken, CatalogueBusy)) as raised:
            catalogue.check("hang", {})
        return raised.type

    with ThreadPoolExecutor(12) as threads:
        ends = Counter(threads.map(check, range(12)))
    assert ends == {ScriptBroken: MOST_CHECKS, CatalogueBusy: 12 - MOST_CHECKS}
