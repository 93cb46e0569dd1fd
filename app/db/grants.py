"""The rights of the role that the service runs as. It owns nothing, so it cannot change the schema, empty the audit
trail or switch off its triggers."""

from sqlalchemy import Connection

ONLY_READ = ("alembic_version",)
APPEND_ONLY = ("audit_entries",)

# One statement. What exists is granted by its owner, which leaves out the table of PostGIS.
_GRANT = """
DO $$
DECLARE
    one record;
BEGIN
    REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    GRANT USAGE ON SCHEMA public TO {role};
    FOR one IN SELECT oid::regclass AS name, relname, relkind FROM pg_class
                WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'S')
                  AND pg_has_role(relowner, 'USAGE') AND relname <> 'spatial_ref_sys'
    LOOP
        IF one.relkind = 'S' THEN
            EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %s TO %s', one.name, {literal});
        ELSE
            EXECUTE format('REVOKE ALL ON %s FROM %s', one.name, {literal});
            EXECUTE format('GRANT %s ON %s TO %s', CASE
                WHEN one.relname = ANY('{only_read}') THEN 'SELECT'
                WHEN one.relname = ANY('{append_only}') THEN 'SELECT, INSERT'
                ELSE 'SELECT, INSERT, UPDATE, DELETE' END, one.name, {literal});
        END IF;
    END LOOP;
    GRANT EXECUTE ON FUNCTION add_partition, drop_partition, analyze_tables TO {role};
    -- For tables of later migrations, and for the partitions that the functions make.
    ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role};
    ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role};
END $$
"""


def grant_to(conn: Connection, role: str) -> None:
    """Called by the owner after each migration, and harmless to repeat."""
    preparer = conn.dialect.identifier_preparer
    quoted = preparer.quote_identifier(role)
    statement = _GRANT.format(
        role=quoted,
        literal="'" + quoted.replace("'", "''") + "'",
        only_read="{" + ",".join(ONLY_READ) + "}",
        append_only="{" + ",".join(APPEND_ONLY) + "}",
    )
    # Not as text(), in which a colon would be a parameter.
    conn.exec_driver_sql(statement.replace("%", "%%"))
