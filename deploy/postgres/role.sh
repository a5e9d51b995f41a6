# The PostgreSQL image runs this once, when it creates the database: the server gets a role that owns its database
# and is not a superuser. The superuser has no password, so it can log in only inside the container:
# docker compose exec db psql --username=postgres
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres <<'SQL'
\getenv password POSTGRES_PASSWORD
CREATE ROLE fairlead LOGIN CREATEDB PASSWORD :'password';
CREATE DATABASE fairlead OWNER fairlead;
ALTER ROLE postgres PASSWORD NULL;
SQL
