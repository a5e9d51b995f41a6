#!/bin/sh
# Creates what deploy/compose/ha.yaml needs, once, in the volume /secrets: a certificate authority, certificates, passwords,
# the key of the replicas, and the configuration of the balancer. Each directory is readable for one user only.
#
#   secrets.sh PREFIX    the first three parts of the network's addresses
set -eu
umask 077
prefix=$1
cd /secrets
[ ! -e complete ] || exit 0

# sign NAME writes NAME.crt and NAME.key, for the host NAME.ha.internal.
sign() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1.ha.internal" 2>/dev/null
  printf 'subjectAltName=DNS:%s.ha.internal\nextendedKeyUsage=serverAuth\n' "$1" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca/ca.crt -CAkey ca.key -CAcreateserial -days 825 -extfile "$1.ext" -out "$1.crt" 2>/dev/null
}

rm -rf ca database balancer server relay-1 relay-2
mkdir ca database balancer server relay-1 relay-2
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca/ca.crt -days 3650 -subj "/CN=Fairlead HA trial" \
  -addext "keyUsage=critical,keyCertSign" 2>/dev/null
for name in mesh relay-1 relay-2; do sign "$name"; done
cat mesh.crt mesh.key >balancer/mesh.pem
for name in relay-1 relay-2; do mv "$name.crt" "$name/tls.crt" && mv "$name.key" "$name/tls.key"; done
openssl rand -hex 32 >server/secrets.key
openssl rand -hex 24 >server/database-password
cp server/database-password database/password
openssl rand -hex 24 >database/replication
# The file that three machines would use, with other addresses.
sed "s,/etc/ssl/mesh/mesh.pem,/secrets/balancer/mesh.pem,; s,10\.0\.0\.1\([123]\):,$prefix.1\1:," /haproxy.cfg >balancer/haproxy.cfg
# The private key of the authority is not kept: nobody can sign more certificates.
rm -f ca.key ./*.csr ./*.ext ./*.srl mesh.crt mesh.key
chmod 755 . ca && chmod 644 ca/ca.crt
chown -R 999:999 database
chown -R 99:99 balancer
chown -R 10001:10001 server relay-1 relay-2
touch complete
