"""Months, waiting times, and what a report writes, without a database."""

import csv
import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.foundation.ids import earliest_id
from app.jobs.reports.csv_file import cell, write_csv
from app.jobs.reports.fairness import MEASURES, Fairness, Scope
from app.jobs.reports.files import write_figures, write_neighbourhoods, write_students
from app.jobs.reports.geohash import Cell
from app.jobs.reports.neighbourhoods import Need, Neighbourhood
from app.jobs.reports.plots import binned, nice_top
from app.jobs.reports.report_month import Month
from app.jobs.reports.report_page import ReportPage
from app.jobs.reports.report_words import ENGLISH, TURKISH, ReportWords
from app.jobs.reports.student_figures import StudentLoad
from app.jobs.reports.waiting import waiting
from app.matching.contract import OfferState, TaskStatus

ISTANBUL = "Europe/Istanbul"
HOSTILE = '=HYPERLINK("http://x")<script>alert(1)</script>&\'"'


def report(*, skipped: dict[str, int] | None = None, tasks: int = 3) -> Fairness:
    skipped = skipped or {}
    students = [StudentLoad(number, 2, 1, 0, 1, 0, 0, 1) for number in range(1, min(tasks, 20) + 1)]
    loads = {measure: Counter({1: tasks} if tasks else {}) for measure in MEASURES}
    return Fairness(
        scope=Scope(Month(2026, 9, ISTANBUL), None, 5, 6),
        outcomes={status: tasks if status is TaskStatus.COMPLETED else 0 for status in TaskStatus},
        offers=dict.fromkeys(OfferState, 0)
        | {OfferState.ACCEPTED: tasks, OfferState.EXPIRED: tasks, OfferState.SKIPPED: sum(skipped.values())},
        skipped=skipped,
        loads=loads,
        loads_of_asked=loads,
        silence={5: tasks} if tasks else {},
        seconds={"accept": Counter({60: tasks} if tasks else {}), "arrive": Counter({600: tasks} if tasks else {})},
        neighbourhoods=[Neighbourhood(Cell(6, 19025, 23844), False, Need(7, 9, 2, 1))] if tasks else [],
        busiest=students,
    )


# ---- months ----


@pytest.mark.parametrize(
    ("now", "month"),
    [
        (datetime(2026, 9, 30, 20, 59, tzinfo=UTC), "2026-08"),
        (datetime(2026, 9, 30, 21, 0, tzinfo=UTC), "2026-09"),  # Midnight in Istanbul.
        (datetime(2026, 12, 31, 21, 0, tzinfo=UTC), "2026-12"),
        (datetime(2027, 1, 15, tzinfo=UTC), "2026-12"),
    ],
)
def test_the_last_month_is_the_one_before_in_istanbul(now: datetime, month: str) -> None:
    assert str(Month.before(now, ISTANBUL)) == month


def test_a_month_begins_and_ends_at_local_midnight() -> None:
    month = Month.parse("2026-12", ISTANBUL)
    assert (month.begins, month.ends) == (
        datetime(2026, 11, 30, 21, tzinfo=UTC),
        datetime(2026, 12, 31, 21, tzinfo=UTC),
    )
    assert month.ids == (earliest_id(month.begins), earliest_id(month.ends))


def test_a_month_that_does_not_exist_is_refused() -> None:
    for wrong in ("2026-13", "2026-00", "2026-9", "26-09", "2026-09-01", ""):
        with pytest.raises(ValueError, match="such as 2026-09"):
            Month.parse(wrong, ISTANBUL)


# ---- waiting ----


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=200))
def test_a_percentile_is_the_least_time_that_holds_for_this_share(seconds: list[int]) -> None:
    found, ordered = waiting(Counter(seconds)), sorted(seconds)
    for percent, value in ((50, found.p50_s), (90, found.p90_s), (95, found.p95_s), (99, found.p99_s)):
        assert value == ordered[-(-len(ordered) * percent // 100) - 1]
    assert found.mean_s == pytest.approx(sum(seconds) / len(seconds))


def test_nobody_waited_if_nobody_was_helped() -> None:
    assert waiting({}).p50_s is None


# ---- files ----


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n=1"])
def test_text_that_a_spreadsheet_would_compute_is_neutralised(text: str) -> None:
    assert cell(text) == f"'{text}"


def test_csv_keeps_turkish_letters_numbers_and_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    write_csv(path, ("ad", "sayı"), [('Şişli, "Ğ" \n ıİ', 3), (None, 0.5)])
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert list(csv.reader(file)) == [["ad", "sayı"], ['Şişli, "Ğ" \n ıİ', "3"], ["", "0.5"]]


def test_a_hostile_reason_is_text_in_csv_and_page(tmp_path: Path) -> None:
    found = report(skipped={HOSTILE: 2})
    write_figures(tmp_path / "x.csv", found)
    with (tmp_path / "x.csv").open(encoding="utf-8-sig", newline="") as file:
        assert ["skipped", f"'{HOSTILE}", "offers", "2"] in list(csv.reader(file))
    html = ReportPage(found, "tr", f"<b>{HOSTILE}").html()
    assert "<script" not in html
    assert "<b>=" not in html
    assert "&lt;script&gt;" in html


class Tags(HTMLParser):
    """Fails if tags are not closed, and collects attributes."""

    VOID = frozenset({"meta", "rect", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("language", ["tr", "en"])
@pytest.mark.parametrize("tasks", [0, 1, 10_000])
def test_a_page_is_whole_and_asks_nothing_of_the_network(language: str, tasks: int) -> None:
    html = ReportPage(report(tasks=tasks), language, None).html()
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert {name for name, _ in tags.attributes} & {"src", "href", "onload", "style", "xlink:href"} == set()
    assert "url(" not in html
    assert f'<html lang="{language}">' in html
    for drawing in html.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + drawing.split("</svg>")[0] + "</svg>")
    empty = ReportWords(language)["empty"]
    assert (empty in html) == (tasks == 0 or not report(tasks=tasks).skipped)


def test_a_plot_has_few_columns_for_any_range_and_loses_nobody() -> None:
    for counts in ({}, {0: 3}, {7: 1, 8: 2}, {0: 1, 1_000_000: 1}, {5: 2, 4_973: 1}):
        drawn = binned(counts)
        assert len(drawn) <= 24
        assert sum(one.value for one in drawn) == sum(counts.values())


@given(st.integers(0, 10**9))
def test_an_axis_ends_at_a_round_number_above(most: int) -> None:
    assert most <= nice_top(most) <= max(4, 2 * most)
    assert nice_top(most) % 4 == 0


def test_both_languages_have_the_same_words() -> None:
    assert TURKISH.keys() == ENGLISH.keys()
    fields = [{key: value.count("{") for key, value in words.items()} for words in (TURKISH, ENGLISH)]
    assert fields[0] == fields[1]


def test_numbers_are_written_as_the_language_does() -> None:
    turkish, english = ReportWords("tr"), ReportWords("en")
    assert (turkish.number(1234567.8, 1), english.number(1234567.8, 1)) == ("1.234.567,8", "1,234,567.8")
    assert (turkish.percent(0.125), english.percent(0.125)) == ("%12,5", "12.5%")
    assert [turkish.duration(s) for s in (59, 61, 3_661, None)] == ["59 sn", "1 dk 01 sn", "1 sa 01 dk", "–"]


def test_students_are_in_both_files_without_a_list_of_them_in_memory(tmp_path: Path) -> None:
    found = report(tasks=3)
    written = write_students(tmp_path / "s.csv", tmp_path / "s.json", found, iter(found.busiest))
    assert written == 3
    whole = json.loads((tmp_path / "s.json").read_text())
    assert [one["student_id"] for one in whole["by_student"]] == [1, 2, 3]
    assert whole["tasks"]["total"] == 3
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 4
    write_students(tmp_path / "s.csv", tmp_path / "s.json", found, iter(()))
    assert json.loads((tmp_path / "s.json").read_text())["by_student"] == []
    write_neighbourhoods(tmp_path / "n.csv", found)
    assert (tmp_path / "n.csv").read_text(encoding="utf-8-sig").splitlines()[1].startswith("sxk9")
