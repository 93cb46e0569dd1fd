"""Jobs, their artifacts and their schedule.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

UPGRADE = """
CREATE TABLE jobs (
    id uuid NOT NULL,
    name text NOT NULL,
    params jsonb DEFAULT '{}'::jsonb NOT NULL,
    task_type text NOT NULL,
    status text DEFAULT 'QUEUED' NOT NULL,
    origin text NOT NULL,
    requested_by bigint,
    idempotency_key text,
    digest bytea,
    schedule_name text,
    scheduled_for timestamptz,
    exclusive_key text,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    due_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    claims integer DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    claimed_by text,
    lease_until timestamptz,
    cancel_requested_at timestamptz,
    progress_done bigint,
    progress_total bigint,
    progress_note text,
    tries integer DEFAULT 0 NOT NULL,
    result json,
    error text,
    output text DEFAULT '' NOT NULL,
    max_retries integer NOT NULL,
    timeout_s double precision,
    CONSTRAINT jobs_pkey PRIMARY KEY (id),
    CONSTRAINT jobs_status_check CHECK (status IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
    CONSTRAINT jobs_origin_check CHECK (origin IN ('HTTP', 'CLI', 'SCHEDULE')),
    CONSTRAINT jobs_task_type_check CHECK (task_type IN ('io_bound', 'cpu_bound')),
    CONSTRAINT jobs_running_has_a_lease_check CHECK ((status = 'RUNNING') = (lease_until IS NOT NULL)),
    CONSTRAINT jobs_ended_is_finished_check
        CHECK ((status IN ('SUCCEEDED', 'FAILED', 'CANCELLED')) = (finished_at IS NOT NULL)),
    CONSTRAINT jobs_scheduled_check CHECK ((schedule_name IS NULL) = (scheduled_for IS NULL)),
    CONSTRAINT jobs_requested_by_fkey FOREIGN KEY(requested_by) REFERENCES users (id)
);
CREATE INDEX jobs_due_idx ON jobs (task_type, due_at, id) WHERE status = 'QUEUED';
CREATE INDEX jobs_lease_idx ON jobs (lease_until) WHERE status = 'RUNNING';
CREATE INDEX jobs_name_idx ON jobs (name, id);
CREATE INDEX jobs_status_idx ON jobs (status, id);
CREATE UNIQUE INDEX jobs_one_per_key ON jobs (requested_by, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX jobs_one_per_due_time ON jobs (schedule_name, scheduled_for) WHERE schedule_name IS NOT NULL;
CREATE UNIQUE INDEX jobs_one_running_per_exclusive_key ON jobs (exclusive_key)
    WHERE status = 'RUNNING' AND exclusive_key IS NOT NULL;
CREATE INDEX jobs_exclusive_idx ON jobs (exclusive_key, id)
    WHERE status IN ('QUEUED', 'RUNNING') AND exclusive_key IS NOT NULL;

CREATE TABLE job_artifacts (
    id uuid NOT NULL,
    job_id uuid NOT NULL,
    name text NOT NULL,
    size bigint NOT NULL,
    content bytea NOT NULL,
    CONSTRAINT job_artifacts_pkey PRIMARY KEY (id),
    CONSTRAINT job_artifacts_job_id_fkey FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX job_artifacts_one_per_name ON job_artifacts (job_id, name);

CREATE TABLE job_schedules (
    name text NOT NULL,
    last_due_at timestamptz NOT NULL,
    CONSTRAINT job_schedules_pkey PRIMARY KEY (name)
);
"""

DOWNGRADE = "DROP TABLE job_schedules, job_artifacts, jobs;"


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute(DOWNGRADE)
