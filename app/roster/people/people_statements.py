"""The statements by which people enter, change and leave.

`READ` locks nothing. Each of the others is one statement that commits by itself: it locks the rows of the queue that
are still those of the run that was read, then users and students, waits for no lock, and leaves out whoever is locked
or has changed since. They stay in the queue and are read again. So nobody waits for a row longer than one statement
takes, and it does not matter who else runs the same.
"""

from sqlalchemy import text

from app.users.models import Role

MOST_OF_ONE_PHONE = 500
"""Of more people with the same number it tells nothing, and to look at all of them for each person takes hours."""


def _user(alias: str) -> str:
    """`xmin` is the transaction that wrote this version of the row."""
    return f"""json_build_object('id', {alias}.id, 'version', {alias}.xmin::text::bigint, 'active', {alias}.active,
        'name', {alias}.name, 'phone', {alias}.phone, 'locale', {alias}.locale,
        'institution_id', {alias}.institution_id, 'home', CASE WHEN {alias}.home IS NOT NULL THEN
            json_build_object('lat', ST_Y({alias}.home::geometry), 'lon', ST_X({alias}.home::geometry)) END)"""


def _read(queued: str) -> str:
    # `|| ''` so that nobody is found by the index of roles, whatever old statistics say.
    return f"""
SELECT q.identifier, q.run_id, r.fields, r.aliases, p.fields AS given, p.left_at,
       CASE WHEN u.id IS NOT NULL THEN {_user("u")} END AS bound_to, same.users AS same_phone
  FROM (SELECT identifier, run_id FROM roster_to_apply WHERE document_type = :document_type AND {queued}) q
  LEFT JOIN roster_rows r ON r.document_type = :document_type AND r.identifier = q.identifier
  LEFT JOIN roster_people p ON p.document_type = :document_type AND p.identifier = q.identifier
  LEFT JOIN users u ON u.id = p.user_id
  LEFT JOIN LATERAL (
      SELECT json_agg({_user("other")} ORDER BY other.id) AS users
        FROM (SELECT *, xmin FROM users
               WHERE u.id IS NULL AND phone = r.fields ->> 'phone' LIMIT {MOST_OF_ONE_PHONE}) other
       WHERE other.role || '' = :role
         AND NOT EXISTS (SELECT FROM roster_people bound WHERE bound.user_id = other.id)
  ) same ON true
 ORDER BY q.identifier"""


READ_NEXT = text(_read("identifier > :after ORDER BY identifier LIMIT :size"))
READ_AGAIN = text(_read("identifier = ANY(:identifiers)"))

# A function of the database, because only the owner of a table may do it.
ANALYZE = text("SELECT analyze_tables('roster_to_apply', 'roster_people', 'users', 'students')")

COUNT_QUEUED = text("SELECT count(*) FROM roster_to_apply WHERE document_type = :document_type")

# The statement is planned for its tables as they are now. The checks of foreign keys are planned once and not for each
# row, so the mode is changed while it runs.
_GIVEN = """
WITH planned AS MATERIALIZED (
    SELECT set_config('plan_cache_mode', 'force_generic_plan', true)
), given AS MATERIALIZED (
    SELECT person.* FROM planned, json_to_recordset(CAST(:people AS json)) AS person(
        identifier text, run_id bigint, user_id bigint, version bigint, active boolean, is_changed boolean,
        name text, phone text, locale text, institution_id bigint, lat float8, lon float8, fields jsonb)
), free AS MATERIALIZED (
    SELECT given.* FROM roster_to_apply q JOIN given ON q.identifier = given.identifier AND q.run_id = given.run_id
     WHERE q.document_type = :document_type FOR UPDATE OF q SKIP LOCKED
)"""
_HOME = "CASE WHEN lat IS NOT NULL THEN ST_SetSRID(ST_MakePoint(lon, lat), 4326)::geography END"


def _dequeued(done: str) -> str:
    return f"""dequeued AS (
    DELETE FROM roster_to_apply q USING {done}
     WHERE q.document_type = :document_type AND q.identifier = {done}.identifier
)"""


CREATE = text(f"""{_GIVEN}, created AS MATERIALIZED (
    SELECT nextval('users_id_seq') AS id, free.* FROM free
), users_made AS (
    INSERT INTO users (id, role, name, phone, locale, institution_id, home)
    SELECT id, :role, name, phone, locale, institution_id, {_HOME} FROM created
), students_made AS (
    INSERT INTO students (id) SELECT id FROM created WHERE :role = '{Role.STUDENT}'
), bound AS (
    INSERT INTO roster_people (document_type, identifier, user_id, fields)
    SELECT :document_type, identifier, id, fields FROM created
), {_dequeued("created")}
SELECT identifier FROM created""")

# The rows of students are locked only if their activity changes.
_LOCKED = f"""locked AS MATERIALIZED (
    SELECT free.* FROM free JOIN users u ON u.id = free.user_id AND u.xmin::text::bigint = free.version
     ORDER BY u.id FOR NO KEY UPDATE OF u SKIP LOCKED
), locked_students AS MATERIALIZED (
    SELECT s.id, locked.active FROM students s JOIN locked ON locked.user_id = s.id WHERE locked.active <> s.active
     ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
), ready AS MATERIALIZED (
    SELECT * FROM locked
     WHERE :role <> '{Role.STUDENT}' OR user_id IN (SELECT id FROM locked_students)
        OR active = (SELECT s.active FROM students s WHERE s.id = user_id)
), students_changed AS (
    UPDATE students s SET active = locked_students.active FROM locked_students WHERE s.id = locked_students.id
)"""

CHANGE = text(f"""{_GIVEN}, {_LOCKED}, users_changed AS (
    UPDATE users u SET name = ready.name, phone = ready.phone, locale = ready.locale, active = ready.active,
           institution_id = ready.institution_id, home = {_HOME}, updated_at = clock_timestamp()
      FROM ready WHERE u.id = ready.user_id AND ready.is_changed
), bound AS (
    INSERT INTO roster_people (document_type, identifier, user_id, fields)
    SELECT :document_type, identifier, user_id, fields FROM ready
    ON CONFLICT (document_type, identifier) DO UPDATE SET fields = excluded.fields, left_at = NULL
), {_dequeued("ready")}
SELECT identifier FROM ready""")

# They stay in the queue, because it has to be looked after their tasks and offers when this is committed. Both times
# are the same, so that a user who was activated by hand later can be told from one who was not deactivated.
LEAVE = text(f"""{_GIVEN}, {_LOCKED}, users_changed AS (
    UPDATE users u SET active = false, updated_at = statement_timestamp() FROM ready
     WHERE u.id = ready.user_id AND u.active
), left_behind AS (
    UPDATE roster_people p SET left_at = statement_timestamp() FROM ready
     WHERE p.document_type = :document_type AND p.identifier = ready.identifier
)
SELECT identifier FROM ready""")

# Those who were deactivated lose their devices here, where the commit that keeps new ones out is visible.
DEQUEUE = text(f"""{_GIVEN}, devices_lost AS (
    DELETE FROM devices d USING free, users u WHERE u.id = free.user_id AND NOT u.active AND d.user_id = u.id
), {_dequeued("free")}
SELECT identifier FROM free""")
