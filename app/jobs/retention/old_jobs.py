"""What retention forgets of jobs: those that have ended, with what they printed and the files that they left."""

from app.db.bites import KeyType, Sweep

OLD_JOBS = {
    "jobs": (
        # Before their jobs, because the files of one job may take longer to delete than a bite may.
        Sweep(
            table="job_artifacts",
            key=KeyType.UUID,
            chosen="EXISTS (SELECT FROM jobs j WHERE j.id = t.job_id AND j.id < :before AND j.finished_at < :cutoff)",
            since="(SELECT j.finished_at FROM jobs j WHERE j.id = t.job_id)",
        ),
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
