"""The report as one HTML page: no script, no request to anywhere, light and dark, phone and desk."""

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from app.jobs.reports.evenness import lorenz
from app.jobs.reports.fairness import MEASURES, Fairness
from app.jobs.reports.neighbourhoods import Neighbourhood, by_unmet
from app.jobs.reports.page_style import STYLE
from app.jobs.reports.plots import Bar, Column, Line, bars, binned, columns, curves, nice_top
from app.jobs.reports.report_words import ReportWords
from app.jobs.reports.waiting import PERCENTILES, Seconds
from app.matching.contract import TaskStatus

MOST_BARS = 15
OPEN_ROWS = 8
"""A longer table is folded."""

COLOURS = {
    "COMPLETED": "good",
    "TIMED_OUT": "bad",
    "CANCELLED": "plain",
    "accepted": "good",
    "rejected": "other",
    "silent": "bad",
}
OUTCOME_ORDER = ("COMPLETED", "TIMED_OUT", "CANCELLED", "PENDING", "ASSIGNED", "STARTED")


class ReportPage:
    def __init__(self, report: Fairness, language: str, heading: str | None) -> None:
        self.report = report
        self.words = ReportWords(language)
        self.heading = heading

    def html(self) -> str:
        words, month = self.words, self.report.scope.month
        name = words.month(month.year, month.number)
        sections = [
            self._outcomes(),
            self._answers(),
            self._skips(),
            self._waiting(),
            self._loads(),
            self._evenness(),
            self._silence(),
            self._need(),
            self._busiest(),
        ]
        institution = self.report.scope.institution
        scope = words["all_institutions"] if institution is None else words["made_for"].format(institution=institution)
        about = f"{scope} · {words['time_zone'].format(zone=month.time_zone)}"
        return (
            f'<!doctype html>\n<html lang="{words.language}">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            # Also stops what a hostile value might smuggle in.
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
            f"<title>{escape(words['title'])} – {escape(name)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
            f"<header><p>{escape(self.heading or words['title'])}</p><h1>{escape(name)}</h1>"
            f"<p>{escape(about)}</p></header>\n"
            f"{self._tiles()}\n<main>\n{''.join(sections)}{self._notes()}</main>\n</body>\n</html>\n"
        )

    def _tiles(self) -> str:
        report, words = self.report, self.words
        share = {name: _share(report.outcomes[TaskStatus(name)], report.tasks) for name in ("COMPLETED", "TIMED_OUT")}
        tiles = (
            (words.number(report.tasks), "tile_tasks"),
            (words.percent(share["COMPLETED"]), "tile_completed"),
            (words.percent(share["TIMED_OUT"]), "tile_unmet"),
            (words.percent(report.silence_share), "tile_silence"),
            (words.duration(report.waiting["accept"].p50_s), "tile_accept"),
            (words.index(report.evenness("completed")["available"].gini), "tile_gini"),
        )
        shown = (f"<li><b>{escape(value)}</b><span>{escape(words[key])}</span></li>" for value, key in tiles)
        return f'<ul class="tiles">{"".join(shown)}</ul>'

    # ---- sections ----

    def _outcomes(self) -> str:
        counts = {name: self.report.outcomes[TaskStatus(name)] for name in OUTCOME_ORDER}
        return self._counted("outcomes", counts, self.report.tasks, "tasks")

    def _answers(self) -> str:
        answers = self.report.answers
        return self._counted("answers", answers, sum(answers.values()), "offers")

    def _skips(self) -> str:
        words = self.words
        skipped = dict(Counter(self.report.skipped).most_common(MOST_BARS))
        named = {words.known(name) if name else words["no_reason"]: count for name, count in skipped.items()}
        return self._counted("skip_reasons", named, sum(self.report.skipped.values()), "offers")

    def _counted(self, key: str, counts: dict[str, int], total: int, unit: str) -> str:
        words = self.words
        if not total:
            return self._section(key, None)
        rows = [
            (words.known(name), words.number(count), words.percent(count / total)) for name, count in counts.items()
        ]
        drawn = [
            Bar(label, counts[name], f"{number} · {share}", COLOURS.get(name, "plain"))
            for name, (label, number, share) in zip(counts, rows, strict=True)
            if counts[name]
        ]
        table = _table(("", words[unit], words["share"]), rows)
        return self._section(key, bars(words[key], drawn, full=total), table, len(rows))

    def _loads(self) -> str:
        report, words = self.report, self.words
        about = words["loads_about"].format(
            available=words.number(report.available), never=words.number(report.never_asked)
        )
        data = binned(report.loads["completed"])
        if not data:
            return self._section("loads", None, about=about)
        plot = columns(words["loads"], data, words["completed_tasks"], words.number, "good")
        table = _table(
            (words["completed_tasks"], words["students"]), [(one.label, words.number(one.value)) for one in data]
        )
        return self._section("loads", plot, table, len(data), about=about)

    def _evenness(self) -> str:
        report, words = self.report, self.words
        lines = [
            Line(words[f"measure_{measure}"], lorenz(report.loads[measure]), colour)
            for measure, colour in (("completed", "good"), ("asked", "other"))
        ]
        lines = [line for line in lines if line.points]
        if not lines:
            return self._section("evenness", None)
        rows = [
            (
                f"{words[f'measure_{measure}']}, {words[f'over_{whom}']}",
                words.number(found.students),
                words.index(found.gini),
                words.index(found.jain),
            )
            for measure in MEASURES
            for whom, found in report.evenness(measure).items()
        ]
        percent = self._percent
        plot = curves(words["load_share"], lines, words["students_share"], percent, percent, 1.0, words["equal"])
        return self._section("evenness", plot, _table(("", words["students"], "Gini", "Jain"), rows), len(rows))

    def _silence(self) -> str:
        words = self.words
        if not self.report.silence:
            return self._section("silence", None)
        data = [Column(self._percent(tenth / 10), self.report.silence.get(tenth, 0)) for tenth in range(10)]
        plot = columns(words["silence"], data, words["silence_axis"], words.number, "bad")
        rows = [
            (f"{self._percent(tenth / 10)} – {self._percent((tenth + 1) / 10)}", words.number(one.value))
            for tenth, one in enumerate(data)
        ]
        return self._section("silence", plot, _table((words["silence_share"], words["students"]), rows), len(rows))

    def _waiting(self) -> str:
        report, words = self.report, self.words
        found = report.waiting
        if not found["accept"].tasks:
            return self._section("waiting", None)
        longest_s = 60 * nice_top(max(one.p99_s or 0 for one in found.values()) / 60)
        lines = [
            Line(words[kind], _cumulative(report.seconds[kind], longest_s), colour)
            for kind, colour in (("accept", "good"), ("arrive", "other"))
            if found[kind].tasks
        ]

        def minutes(seconds: float) -> str:
            return words.number(seconds / 60)

        plot = curves(words["waiting"], lines, words["minutes"], minutes, self._percent, longest_s)
        measures = {words["mean"]: "mean_s"} | {f"p{percent}": f"p{percent}_s" for percent in PERCENTILES}
        rows = [(words["tasks"], *(words.number(one.tasks) for one in found.values()))]
        rows += [
            (name, *(words.duration(getattr(one, measure)) for one in found.values()))
            for name, measure in measures.items()
        ]
        titles = ("", *(words[kind] for kind in found))
        return self._section("waiting", plot, _table(titles, rows), len(rows))

    def _need(self) -> str:
        report, words = self.report, self.words
        least = words.number(report.scope.least)
        about = words["need_about"].format(least=least)
        groups = by_unmet(report.neighbourhoods)
        if not groups:
            hidden = words["need_hidden"].format(least=least)
            return self._section("need", None, about=about, empty=hidden if report.tasks else None)
        rows = [self._need_row(one) for one in groups]
        drawn = [
            Bar(row[0], one.need.unmet, f"{row[3]}/{row[2]} · {row[5]}", "bad")
            for one, row in zip(groups, rows, strict=True)
        ]
        titles = tuple(words[key] for key in ("cell", "elders", "tasks", "unmet", "cancelled", "share"))
        return self._section(
            "need", bars(words["need"], drawn[:MOST_BARS]), _table(titles, rows), len(rows), about=about
        )

    def _need_row(self, one: Neighbourhood) -> tuple[str, ...]:
        words, need = self.words, one.need
        name = words["elsewhere"] if one.name is None else one.name
        if one.rest and one.name is not None:
            name += f" ({words['rest']})"
        counts = map(words.number, (need.elders, need.tasks, need.unmet, need.cancelled))
        return name, *counts, words.percent(need.unmet_share)

    def _busiest(self) -> str:
        words, busiest = self.words, self.report.busiest
        if not busiest:
            return self._section("busiest", None)
        rows = [
            (
                str(one.student_id),
                *map(words.number, (one.asked, one.accepted, one.completed, one.silent)),
                words.percent(one.silence_share),
            )
            for one in busiest
        ]
        drawn = [Bar(row[0], one.asked, row[1], "other") for one, row in zip(busiest, rows, strict=True)]
        titles = tuple(words[key] for key in ("student", "asked", "accepted", "completed", "silent", "silence_share"))
        return self._section("busiest", bars(words["busiest"], drawn[:10]), _table(titles, rows), len(rows))

    def _notes(self) -> str:
        month, words = self.report.scope.month, self.words
        values = {
            "begins": f"{month.begins:%Y-%m-%d %H:%M}",
            "ends": f"{month.ends:%Y-%m-%d %H:%M}",
            "least": words.number(self.report.scope.least),
        }
        notes = ("note_month", "note_available", "note_silence", "note_waiting", "note_need")
        items = "".join(f"<li>{escape(words[note].format(**values))}</li>" for note in notes)
        return f'<section class="wide"><h2>{escape(words["notes"])}</h2><ul class="notes">{items}</ul></section>\n'

    # ---- parts ----

    def _section(
        self, key: str, plot: str | None, table: str = "", rows: int = 0, *, about: str = "", empty: str | None = None
    ) -> str:
        words = self.words
        head = f"<h2>{escape(words[key])}</h2><p>{escape(about or words.known(f'{key}_about'))}</p>"
        if plot is None:
            return f'<section>{head}<p class="empty">{escape(empty or words["empty"])}</p></section>\n'
        if rows > OPEN_ROWS:
            table = f"<details><summary>{escape(words['show_table'])}</summary>{table}</details>"
        return f"<section>{head}<figure>{plot}</figure>{table}</section>\n"

    def _percent(self, share: float) -> str:
        return self.words.percent(share, 0)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _cumulative(seconds: Seconds, most: int) -> list[tuple[float, float]]:
    """Steps, because a line between two tasks would claim help at times when nobody came."""
    total = sum(seconds.values())
    points, reached = [(0.0, 0.0)], 0
    for second in sorted(second for second in seconds if second <= most):
        points.append((float(second), reached / total))
        reached += seconds[second]
        points.append((float(second), reached / total))
    return [*points, (float(most), reached / total)]


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(value)}</td>" for value in row[1:])}</tr>'
        for row in rows
    )
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
