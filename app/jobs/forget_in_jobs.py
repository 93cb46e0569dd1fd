"""Forgets a person in jobs: a script may have been given, printed or written anything."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.jobs.states import ENDED

_WORDS = "concat_ws(' ', params, result, output, error, progress_note, idempotency_key)"
_NAMED = f"""
    FROM jobs j WHERE EXISTS (
        SELECT FROM unnest(CAST(:words AS text[])) AS one (word) WHERE strpos({_WORDS}, word) > 0
            OR EXISTS (SELECT FROM job_artifacts a
                        WHERE a.job_id = j.id AND position(convert_to(word, 'UTF8') IN a.content) > 0))
"""
_HAVE_ENDED = one_of("j.status", ENDED)
_COUNT = text(f"SELECT count(*) FILTER (WHERE {_HAVE_ENDED}) AS ended, count(*) AS found {_NAMED}")
_FORGET = text(f"DELETE {_NAMED} AND {_HAVE_ENDED}")


def forget_jobs(conn: Connection, words: Sequence[str], *, dry_run: bool) -> tuple[int, int]:
    """Deletes the jobs that have ended, with their files. Returns how many, and how many stay because they have not."""
    found = conn.execute(_COUNT, {"words": list(words)}).one()
    if found.ended and not dry_run:
        conn.execute(_FORGET, {"words": list(words)})
    return found.ended, found.found - found.ended
