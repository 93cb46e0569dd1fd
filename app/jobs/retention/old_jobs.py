"""What retention forgets of jobs: those that have ended, with what they printed and the files that they left."""

from app.db.bites import KeyType, Sweep

OLD_JOBS = {
    "jobs": (
        Sweep(
            table="jobs",
            key=KeyType.UUID,
            examined="t.id < :before",
            chosen="t.finished_at < :cutoff",
            since="t.finished_at",
        ),
    )
}
"""By kind."""
