"""The statements of a run, made from what a kind declares.

Names of columns come from declarations in our own files; values are always parameters.
"""

from app.roster.kinds.kind import ColumnType, Kind, ListColumn, ListDeclaration, ListSource
from app.roster.sync.models import ChangeType

# Control characters are refused in values, so the separator is in none of them.
SEPARATOR = "E'\\x1f'"


def lowered(source: ListSource) -> str:
    return f"{source.columns[0].name}_lower"


def _values(source: ListSource) -> list[str]:
    """Quoted, because a kind may have a column such as `order`."""
    return [f'"{name}"' for name in (*(column.name for column in source.columns), lowered(source))]


def raw_table(source: ListSource, declaration: ListDeclaration) -> str:
    return f"_raw_{source.name}_{declaration.name}"


def raw_columns(source: ListSource) -> list[str]:
    """In the order of the COPY."""
    return ["document", "identifier", *_values(source), "aliases", "signature"]


def create_raw_table(source: ListSource, declaration: ListDeclaration) -> str:
    columns = ", ".join(f'{name} text COLLATE "C"' for name in raw_columns(source))
    return f"CREATE TEMPORARY TABLE {raw_table(source, declaration)} ({columns}) ON COMMIT DROP"


def create_repeated(kind: Kind, declaration: ListDeclaration) -> str:
    """The people with several records in one list."""
    return f"""
CREATE TEMPORARY TABLE {_repeated(declaration)} ON COMMIT DROP AS
SELECT identifier FROM {raw_table(kind.source, declaration)} {_of_document(kind)}
 GROUP BY identifier HAVING count(*) > 1"""


def _repeated(declaration: ListDeclaration) -> str:
    return f"_repeated_{declaration.name}"


def _of_document(kind: Kind) -> str:
    return "WHERE true" if kind.document is None else f"WHERE document = '{kind.document}'"


def drop_tables(kind: Kind) -> str:
    return f"DROP TABLE {', '.join(['_changes', *map(_repeated, kind.source.lists)])}"


def _people(kind: Kind) -> str:
    """One row for each person. Of several records, the largest value of each column counts.

    Affiliations are only signed here, in the order of the lists; they are put together where something has changed.
    """
    source = kind.source
    values, lists = _values(source), [f"list_{declaration.name}" for declaration in source.lists]
    joined = " FULL JOIN ".join(
        f"({_list(kind, declaration)}) list_{declaration.name}" + (" USING (identifier)" if number else "")
        for number, declaration in enumerate(source.lists)
    )
    largest = [f"greatest({', '.join(f'{name}.{value}' for name in lists)}) AS {value}" for value in values]
    aliases = [f"{name}.aliases AS {name}_aliases" for name in lists]
    signature = f"concat_ws(',', {', '.join(f'{name}.signature' for name in lists)}) AS signature"
    hashed = f" || {SEPARATOR} || ".join(f"coalesce(\"{name}\", '')" for name in (*kind.hashed, "signature"))
    # OFFSET 0 keeps the planner from working out a value again wherever it is used.
    return f"""
SELECT identifier, {", ".join(values[:-1])},
       {", ".join(f"{name}_aliases" for name in lists)}, md5({hashed})::uuid AS content_hash
  FROM (SELECT identifier, {", ".join([*largest, *aliases, signature])} FROM {joined} OFFSET 0) people
OFFSET 0"""


def _list(kind: Kind, declaration: ListDeclaration) -> str:
    raw = f"{raw_table(kind.source, declaration)} r"
    values = _values(kind.source)
    once = f"NOT EXISTS (SELECT FROM {_repeated(declaration)} several WHERE several.identifier = r.identifier)"
    return f"""
SELECT identifier, {", ".join(values)}, aliases, signature FROM {raw} {_of_document(kind)} AND {once}
 UNION ALL
SELECT identifier, {", ".join(f"max({value})" for value in values)},
       '[' || string_agg(btrim(aliases, '[]'), ',' ORDER BY signature) || ']',
       string_agg(signature, ',' ORDER BY signature)
  FROM {raw} JOIN {_repeated(declaration)} USING (identifier) {_of_document(kind)} GROUP BY identifier"""


def create_changes(kind: Kind) -> str:
    """Who was added, modified or removed, with the snapshot that is published.

    One statement with the lists, so that the rows of people who have not changed are never stored.
    """
    members = ", ".join(f"'{column.shown_as}', {_as_json(column)}" for column in kind.source.columns)
    return f"""
CREATE TEMPORARY TABLE _changes ON COMMIT DROP AS
SELECT coalesce(n.identifier, t.identifier) AS identifier,
       CASE WHEN t.identifier IS NULL THEN {ChangeType.ADDED:d} WHEN n.identifier IS NULL THEN {ChangeType.REMOVED:d}
            ELSE {ChangeType.MODIFIED:d} END::smallint AS change_type,
       n.content_hash,
       CASE WHEN n.identifier IS NOT NULL THEN jsonb_build_object({members}) END AS fields,
       {_aliases(kind.source)} AS aliases
  FROM ({_people(kind)}) n
  FULL JOIN (SELECT identifier, content_hash FROM roster_rows WHERE document_type = {kind.document_type}) t
    ON t.identifier = n.identifier
 WHERE n.content_hash IS DISTINCT FROM t.content_hash"""


def _aliases(source: ListSource) -> str:
    """Those of all lists, in order. To sort them is costly, and most people stand on one list."""
    lists = [f"n.list_{declaration.name}_aliases" for declaration in source.lists]
    together = " || ".join(f"coalesce({name}::jsonb, '[]')" for name in lists)
    in_order = """alias ->> 'alias' COLLATE "C", alias ->> 'type' COLLATE "C\""""
    return f"""CASE num_nonnulls({", ".join(lists)})
       WHEN 0 THEN NULL
       WHEN 1 THEN coalesce({", ".join(lists)})::jsonb
       ELSE (SELECT jsonb_agg(alias ORDER BY {in_order}) FROM jsonb_array_elements({together}) alias) END"""


def _as_json(column: ListColumn) -> str:
    if column.type is ColumnType.PLACE:
        lat, lon = (f"split_part(n.\"{column.name}\", ' ', {part})::float8" for part in (1, 2))
        return f"CASE WHEN n.\"{column.name}\" IS NOT NULL THEN jsonb_build_object('lat', {lat}, 'lon', {lon}) END"
    return f'n."{column.name}"'


COUNT_CHANGES = "SELECT change_type, count(*) AS rows FROM _changes GROUP BY 1"

INSERT_ADDED = f"""
INSERT INTO roster_rows (document_type, identifier, content_hash, fields, aliases)
SELECT :document_type, identifier, content_hash, fields, aliases FROM _changes
 WHERE change_type = {ChangeType.ADDED:d} ORDER BY identifier"""

UPDATE_MODIFIED = f"""
UPDATE roster_rows r SET content_hash = c.content_hash, fields = c.fields, aliases = c.aliases
  FROM _changes c
 WHERE r.document_type = :document_type AND r.identifier = c.identifier AND c.change_type = {ChangeType.MODIFIED:d}"""

DELETE_REMOVED = f"""
DELETE FROM roster_rows r USING _changes c
 WHERE r.document_type = :document_type AND r.identifier = c.identifier AND c.change_type = {ChangeType.REMOVED:d}"""

PUBLISH = """
INSERT INTO roster_changes (document_type, position, change_type, changed_at, identifier, fields, aliases)
SELECT :document_type, :first_position + row_number() OVER (), change_type, :changed_at, identifier, fields, aliases
  FROM _changes"""

HOLD_BACK = "DELETE FROM _changes WHERE change_type = :change_type"

# Deleted and inserted anew, because the queue is empty most nights, and ON CONFLICT makes an insert three times slower.
TAKE_FROM_QUEUE = """
DELETE FROM roster_to_apply q USING _changes c WHERE q.document_type = :document_type AND q.identifier = c.identifier"""
TO_APPLY = """
INSERT INTO roster_to_apply (document_type, identifier, run_id)
SELECT :document_type, identifier, :run_id FROM _changes ORDER BY identifier"""

NEWEST = "(SELECT max(changed_at) FROM sync_metadata m WHERE m.document_type = s.document_type)"
LAST = f"""
SELECT s.last_position, s.rows, {NEWEST} AS changed_at
  FROM roster_states s WHERE s.document_type = :document_type"""

# It begins anew with a run that was approved: otherwise nobody could leave for seven days after it.
WEEK = """
WITH week AS (
    SELECT max(changed_at) AS begins FROM sync_metadata m
     WHERE document_type = :document_type AND (changed_at <= clock_timestamp() - interval '7 days' OR run_id IN (
           SELECT used_run_id FROM roster_approvals a WHERE a.document_type = m.document_type))
)
SELECT (SELECT rows FROM sync_metadata JOIN week ON changed_at = begins WHERE document_type = :document_type) AS rows,
       coalesce(sum(removed), 0)::bigint AS removed,
       coalesce(sum((report ->> 'modified')::bigint), 0)::bigint AS modified,
       coalesce(jsonb_agg(report -> 'emptied') FILTER (WHERE report ? 'emptied'), '[]') AS blanked
  FROM sync_metadata CROSS JOIN week
 WHERE document_type = :document_type AND changed_at > coalesce(begins, '-infinity')"""


def count_values(kind: Kind) -> str:
    """Of the rows before the run, in how many each column has a value."""
    members = ", ".join(f"count(fields ->> '{column.shown_as}') AS \"{column.name}\"" for column in kind.source.columns)
    return f"SELECT {members} FROM roster_rows WHERE document_type = {kind.document_type}"


def count_blanked(kind: Kind) -> str:
    """In how many modified rows each column had a value and is empty now. Rows without an empty column, most of them,
    are not joined."""
    members = ", ".join(
        f"count(*) FILTER (WHERE r.fields ->> '{name}' IS NOT NULL AND c.fields ->> '{name}' IS NULL) AS \"{column}\""
        for column, name in ((column.name, column.shown_as) for column in kind.source.columns)
    )
    now = ", ".join(f"c.fields ->> '{column.shown_as}'" for column in kind.source.columns)
    return f"""
SELECT {members} FROM _changes c JOIN roster_rows r USING (identifier)
 WHERE r.document_type = {kind.document_type} AND c.change_type = {ChangeType.MODIFIED:d} AND num_nulls({now}) > 0"""


def _later_than(before: str) -> str:
    """In whole seconds, as times in answers are, and later than that of the run before also if the clock was set
    back."""
    return f"greatest(date_trunc('second', clock_timestamp()), {before} + interval '1 second')"


CHANGED_AT = f"SELECT {_later_than('CAST(:before AS timestamptz)')}"

FORGET_OLD = """
WITH old AS (
    SELECT max(last_position) AS position FROM sync_metadata
     WHERE document_type = :document_type AND changed_at < clock_timestamp() - CAST(:days AS integer) * interval '1 day'
), deleted AS (
    DELETE FROM roster_changes c USING old WHERE c.document_type = :document_type AND c.position <= old.position
)
UPDATE roster_states s SET kept_from = greatest(kept_from, old.position)
  FROM old WHERE s.document_type = :document_type AND old.position IS NOT NULL"""

SAVE_METADATA = """
INSERT INTO sync_metadata
       (document_type, run_id, changed_at, first_position, last_position, rows, removed, report)
SELECT :document_type, :run_id, :changed_at, :first_position, :last_position, :rows, :removed, CAST(:report AS jsonb)"""

SAVE_STATE = """
INSERT INTO roster_states (document_type, last_position, kept_from, rows, list_hash)
SELECT :document_type, :last_position, :last_position, :rows, :list_hash
ON CONFLICT (document_type) DO UPDATE
   SET last_position = excluded.last_position, rows = excluded.rows, list_hash = excluded.list_hash"""

# A new row also where nothing has changed: otherwise the time that readers ask from would be past retention one day.
TOUCH = f"""
INSERT INTO sync_metadata (document_type, run_id, changed_at, first_position, last_position, rows, removed, report)
SELECT document_type, :run_id, {_later_than(NEWEST)},
       last_position, last_position, rows, 0, jsonb_build_object('unchanged', true)
  FROM roster_states s WHERE document_type = :document_type AND list_hash = :list_hash"""

HAS_SAME_LIST = "SELECT FROM roster_states WHERE document_type = :document_type AND list_hash = :list_hash"

# It ends when a later list was taken in full, so that the approved one does not come back months later.
_APPROVED = """document_type = :document_type AND list_hash = :list_hash AND used_run_id IS NULL
   AND NOT EXISTS (
       SELECT FROM sync_metadata m WHERE m.document_type = a.document_type AND m.run_id > a.run_id
          AND m.report ->> 'removals_held' IS NULL AND m.report ->> 'modifications_held' IS NULL)"""
HAS_APPROVAL = f"SELECT FROM roster_approvals a WHERE {_APPROVED}"
USE_APPROVAL = f"UPDATE roster_approvals a SET used_run_id = :run_id WHERE {_APPROVED}"
