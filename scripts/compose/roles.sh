#!/bin/sh
# Run once by the image of PostgreSQL, in a new database: the owner of the tables, and the role of the service.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'END'
\set owner_password `cat /run/secrets/owner_password`
\set service_password `cat /run/secrets/service_password`
CREATE ROLE yaninda LOGIN PASSWORD :'owner_password';
CREATE ROLE yaninda_app LOGIN PASSWORD :'service_password';
ALTER DATABASE yaninda OWNER TO yaninda;
END
