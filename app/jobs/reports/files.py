"""The files of a report: CSV and JSON. Students are written one after the other, as there may be many."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from app.jobs.reports.csv_file import write_csv
from app.jobs.reports.fairness import Fairness
from app.jobs.reports.student_figures import StudentLoad

Row = tuple[str, str, str, object]


def write_figures(path: Path, report: Fairness) -> None:
    """All figures but those of students and neighbourhoods, one in each line."""
    write_csv(path, ("table", "row", "measure", "value"), figure_rows(report))


def figure_rows(report: Fairness) -> Iterator[Row]:
    figures = report.to_dict()
    yield "report", "month", "value", figures["month"]
    yield "report", "institution", "value", figures["institution"]
    yield from (("tasks", name, "tasks", count) for name, count in figures["tasks"]["by_outcome"].items())
    offers = figures["offers"]
    yield from (("offers", name, "offers", count) for name, count in offers["by_answer"].items())
    yield "offers", "silence", "share", offers["silence_share"]
    yield from (("skipped", name, "offers", count) for name, count in offers["skipped_by_reason"].items())
    students = figures["students"]
    yield from (("students", name, "students", students[name]) for name in ("available", "never_asked"))
    for measure, by_whom in students["evenness"].items():
        for whom, found in by_whom.items():
            yield from (("evenness", f"{measure}, {whom}", name, value) for name, value in found.items())
    for measure, by_load in students["by_load"].items():
        yield from ((f"load: {measure}", load, "students", count) for load, count in by_load.items())
    tenths = students["by_tenth_of_silence"]
    yield from (("silence", f"{tenth}0% or more", "students", count) for tenth, count in tenths.items())
    for kind, found in figures["waiting"].items():
        yield from (("waiting", kind, name, value) for name, value in found.items())


def write_neighbourhoods(path: Path, report: Fairness) -> None:
    groups = report.to_dict()["unmet_need"]["neighbourhoods"]
    titles = ("cell", "rest", "elders", "tasks", "unmet", "cancelled", "unmet_share")
    rows = ([one["cell"] or "elsewhere", *(one[title] for title in titles[1:])] for one in groups)
    write_csv(path, titles, rows)


def student_row(load: StudentLoad) -> dict[str, Any]:
    return {**load._asdict(), "silence_share": load.silence_share}


def write_students(csv_path: Path, json_path: Path, report: Fairness, students: Iterable[StudentLoad]) -> int:
    """Writes the CSV of students, and the JSON, of which the students are the last part. Returns their number."""
    titles = (*StudentLoad._fields, "silence_share")
    written = 0
    head = json.dumps(report.to_dict(), ensure_ascii=False, indent=2)
    with json_path.open("w", encoding="utf-8") as file:
        file.write(head[: head.rindex("}")].rstrip() + ',\n  "by_student": [')

        def rows() -> Iterator[list[object]]:
            nonlocal written
            for student in students:
                row = student_row(student)
                file.write(f"{',' if written else ''}\n    {json.dumps(row)}")
                written += 1
                yield [*row.values()]

        write_csv(csv_path, titles, rows())
        file.write("\n  ]\n}\n")
    return written
