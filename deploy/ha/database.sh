#!/bin/sh
# Runs a PostgreSQL server of deploy/compose/ha.yaml, which it creates at the first start.
#
#   database.sh primary    db1: a commit returns when the standby has it, too
#   database.sh standby    db2: a copy of db1 that follows it until it is promoted with SELECT pg_promote()
set -eu
umask 077
data=/var/lib/postgresql/data/cluster
new=$data.new # moved when it is complete

create_primary() {
  initdb --pgdata="$new" --username=postgres --encoding=UTF8 --auth-local=trust --auth-host=scram-sha-256 --data-checksums
  {
    echo "host fairlead fairlead samenet scram-sha-256"
    echo "host replication replicator samenet scram-sha-256"
  } >>"$new/pg_hba.conf"
  pg_ctl --pgdata="$new" --wait --options="-c listen_addresses= -c unix_socket_directories=/run/postgresql" start
  POSTGRES_PASSWORD=$(cat /secrets/database/password) sh /ha/role.sh
  REPLICATION=$(cat /secrets/database/replication) psql --no-psqlrc --set=ON_ERROR_STOP=1 --host=/run/postgresql --username=postgres --dbname=postgres <<'SQL'
\getenv password REPLICATION
CREATE ROLE replicator REPLICATION LOGIN PASSWORD :'password';
GRANT pg_monitor TO fairlead; -- lets "fairlead cluster status" show the standby
SELECT pg_create_physical_replication_slot('standby');
ALTER SYSTEM SET synchronous_standby_names = 'standby';
SQL
  pg_ctl --pgdata="$new" --wait --mode=fast stop
}

create_standby() {
  until pg_isready --quiet --host=db1 --username=fairlead --dbname=fairlead; do sleep 1; done
  PGPASSWORD=$(cat /secrets/database/replication) pg_basebackup --dbname="host=db1 user=replicator application_name=standby" \
    --pgdata="$new" --write-recovery-conf --slot=standby --wal-method=stream --checkpoint=fast
}

if [ ! -e "$data" ]; then
  rm -rf "$new"
  "create_$1"
  mv "$new" "$data"
fi
role=$1
set -- -D "$data" -c "listen_addresses=*" -c unix_socket_directories=/run/postgresql
# A standby that is promoted has no standby itself, and must not wait for one.
[ "$role" = primary ] || set -- "$@" -c synchronous_standby_names=
exec postgres "$@"
