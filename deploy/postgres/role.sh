# Run once by the image of PostgreSQL, when the database is made: the service gets a role that owns its database
# and is no superuser. The superuser has no password, so it can log in only inside the container:
# docker compose exec db psql --username=postgres
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres <<'SQL'
\getenv password POSTGRES_PASSWORD
CREATE ROLE fairlead LOGIN CREATEDB PASSWORD :'password';
CREATE DATABASE fairlead OWNER fairlead;
ALTER ROLE postgres PASSWORD NULL;
SQL
