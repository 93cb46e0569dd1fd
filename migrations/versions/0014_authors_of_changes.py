"""Who made a change: authors in the audit trail, changes that are noted for it, and what an owner does for others.

The trail's table refuses TRUNCATE, too. The triggers note changes of rows while a transaction has an author; see
docs/delivery.md. The functions at the end do what only the owner of the tables may do, for a role that owns none.

Revision ID: 0014
Revises: 0008
"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# Entries from before have no author, and their hashes stay as they are.
TRAIL = """
ALTER TABLE audit_entries ADD COLUMN author text;
CREATE TRIGGER audit_entries_never_emptied BEFORE TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""

# Arguments: the columns that identify a row; columns whose text is shown; the columns that are watched, all if empty.
# Other text is masked, so that a new column is masked until somebody says that it holds no personal data.
NOTE_CHANGE = r"""
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := to_jsonb(OLD);
    after jsonb := to_jsonb(NEW);
    keys text[] := string_to_array(TG_ARGV[0], ' ');
    shown text[] := string_to_array(TG_ARGV[1], ' ');
    watched text[] := string_to_array(TG_ARGV[2], ' ');
    changed text[] := ARRAY(
        SELECT key FROM jsonb_object_keys(coalesce(after, before)) AS key
         WHERE key <> 'updated_at' AND (watched = '{}' OR key = ANY(watched))
           AND nullif(before -> key, 'null') IS DISTINCT FROM nullif(after -> key, 'null'));
    change jsonb;
BEGIN
    IF changed <> '{}' THEN
        SELECT jsonb_build_object(
                   'table', TG_TABLE_NAME,
                   'row', jsonb_object_agg(key, coalesce(after, before) -> key) FILTER (WHERE key = ANY(keys)),
                   'before', jsonb_object_agg(key, mask_value(key, before -> key, shown))
                             FILTER (WHERE key = ANY(changed) AND before IS NOT NULL),
                   'after', jsonb_object_agg(key, mask_value(key, after -> key, shown))
                            FILTER (WHERE key = ANY(changed) AND after IS NOT NULL))
          INTO change FROM jsonb_object_keys(coalesce(after, before)) AS key;
        PERFORM set_config('yaninda.changes',
                           concat_ws(',', nullif(current_setting('yaninda.changes', true), ''), change::text), true);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION mask_value(key text, value jsonb, shown text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(value) IN ('null', 'boolean', 'number') OR key ~ '(^id|_at)$' OR key = ANY(shown)
                THEN value ELSE to_jsonb('***'::text) END
$$;
"""

ALL = "INSERT OR UPDATE OR DELETE"
# table: when, the columns that identify a row, columns with text that is shown, the columns that are watched
NOTED = {
    "users": (ALL, "id", "role locale", ""),
    "students": (ALL, "id", "", ""),
    "devices": (ALL, "user_id", "platform", "device_id user_id token platform"),
    "tasks": ("INSERT OR UPDATE", "id", "status", "id elder_id student_id status note"),
    "offers": ("UPDATE", "id task_id student_id", "state reason", "state reason"),
    "action_plans": (ALL, "id", "key name description", ""),
    "action_plan_steps": (ALL, "id", "channel_type audience template_key on_failure fallback", ""),
    "action_routes": (ALL, "id", "channel_type", ""),
    "message_templates": (ALL, "id", "key locale subject body", ""),
    "recipient_profiles": (ALL, "id", "key locale", ""),
    "recipient_channels": (ALL, "id", "channel_type verify_status", ""),
    "channel_verifications": (ALL, "channel_id", "", "channel_id tries_left"),
    "dead_letters": ("UPDATE", "id", "status", "status closed_by"),
    "jobs": (ALL, "id", "name status origin", "id name status origin params cancel_requested_at"),
    "roster_approvals": (ALL, "document_type run_id", "", ""),
    "roster_consumers": (ALL, "id", "name scope", "id document_type name scope token_hash revoked_at"),
}

# The storage and the suffix are checked because they become part of a statement that runs as the owner.
FOR_OTHERS = r"""
CREATE FUNCTION add_partition(parent text, suffix text, bounds text[], storage text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    name text := parent || '_' || suffix;
    extent text := CASE WHEN cardinality(bounds) = 1 THEN format('IN (%L)', bounds[1])
                        ELSE format('FROM (%L) TO (%L)', bounds[1], bounds[2]) END;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = to_regclass('public.' || quote_ident(parent)))
       OR suffix !~ '^[0-9_]+$' OR storage !~ '^[a-z_]+ *= *[0-9.]+(, *[a-z_]+ *= *[0-9.]+)*$|^$' THEN
        RAISE EXCEPTION 'no partition is added here' USING ERRCODE = 'insufficient_privilege';
    END IF;
    EXECUTE format('CREATE TABLE IF NOT EXISTS public.%I (LIKE public.%I INCLUDING ALL)', name, parent)
            || CASE WHEN storage <> '' THEN ' WITH (' || storage || ')' ELSE '' END;
    EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES %s', parent, name, extent);
END $$;

CREATE FUNCTION drop_partition(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF name !~ '_[0-9]{4}_[0-9]{2}$'
       OR NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_partitioned_table p ON p.partrelid = i.inhparent
                       WHERE i.inhrelid = to_regclass('public.' || quote_ident(name))) THEN
        RAISE EXCEPTION 'no partition is dropped here' USING ERRCODE = 'insufficient_privilege';
    END IF;
    EXECUTE format('DROP TABLE public.%I', name);
END $$;

CREATE FUNCTION analyze_tables(VARIADIC names text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    EXECUTE 'ANALYZE ' || (SELECT string_agg(format('public.%I', name), ', ') FROM unnest(names) AS name);
END $$;

REVOKE EXECUTE ON FUNCTION add_partition, drop_partition, analyze_tables FROM PUBLIC;
"""


def upgrade() -> None:
    op.execute(TRAIL)
    op.execute(NOTE_CHANGE)
    for table, (when, keys, shown, watched) in NOTED.items():
        op.execute(
            f"CREATE TRIGGER note_change AFTER {when} ON {table} FOR EACH ROW"
            " WHEN (current_setting('yaninda.author', true) <> '')"
            f" EXECUTE FUNCTION note_change('{keys}', '{shown}', '{watched}')"
        )
    op.execute(FOR_OTHERS)


def downgrade() -> None:
    op.execute("DROP FUNCTION add_partition, drop_partition, analyze_tables")
    for table in NOTED:
        op.execute(f"DROP TRIGGER note_change ON {table}")
    op.execute("DROP FUNCTION note_change, mask_value")
    op.execute("DROP TRIGGER audit_entries_never_emptied ON audit_entries")
    op.execute("ALTER TABLE audit_entries DROP COLUMN author")
