#!/usr/bin/env bash
# PostgreSQL, two servers of Parcelo and nginx on this machine, for trying. Ctrl-C stops them all.
#
#   examples/servers/run.sh            data in a temporary folder, deleted at the end
#   examples/servers/run.sh FOLDER     data in FOLDER, and used again the next time
#
# PARCELO_SERVER names a program that is built already.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "servers: $*" >&2
    exit 1
}

# The newest PostgreSQL, whose programs Debian does not put on the path.
postgres=${PARCELO_POSTGRES_BIN:-}
for programs in /usr/{local/,}lib/postgresql/*/bin; do
    [ "${PARCELO_POSTGRES_BIN:-}" ] || postgres=$programs
done
[ -x "$postgres/initdb" ] || fail "PostgreSQL is missing: apt-get install postgresql, or set PARCELO_POSTGRES_BIN"
PATH=$PATH:/usr/sbin
command -v nginx >/dev/null || fail "nginx is missing: apt-get install nginx"
for port in 808{0,1,2} 908{0,1,2} 918{0,1,2}; do
    ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || fail "port $port of 127.0.0.1 is in use"
done
server=${PARCELO_SERVER:-}
if [ -z "$server" ]; then
    (cd "$here/../.." && cargo build --locked --quiet -p parcelo-server)
    server=$here/../../target/debug/parcelo-server
fi
[ -x "$server" ] || fail "$server is no program"

# PostgreSQL does not run as root.
as_owner() {
    if [ "$(id -u)" = 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

processes=()
stop() {
    trap '' INT TERM
    # nginx first: then the servers finish what they have, and the database goes last.
    for process in "${processes[@]}"; do
        kill "$process" 2>/dev/null || continue
        wait "$process" 2>/dev/null || true
    done
    as_owner "$postgres/pg_ctl" stop -s -m fast -D "$folder/postgres" 2>/dev/null || true
    [ "$given" ] || rm -rf "$folder"
}

given=${1:-}
folder=${given:-$(mktemp -d)}
mkdir -p "$folder/nginx"
folder=$(cd "$folder" && pwd)
trap stop EXIT
trap 'exit 0' INT TERM
chmod 755 "$folder"
if [ ! -d "$folder/postgres" ]; then
    mkdir "$folder/postgres"
    [ "$(id -u)" != 0 ] || chown postgres "$folder/postgres"
    as_owner "$postgres/initdb" -D "$folder/postgres" -A trust -U parcelo -E UTF8 --locale=C >/dev/null
    mkdir "$folder/postgres/socket"
    [ "$(id -u)" != 0 ] || chown postgres "$folder/postgres/socket"
fi
as_owner "$postgres/pg_ctl" start -s -w -D "$folder/postgres" -l "$folder/postgres/log" \
    -o "-c listen_addresses= -c unix_socket_directories='$folder/postgres/socket'" ||
    fail "PostgreSQL did not start: see $folder/postgres/log"
socket=$folder/postgres/socket
psql=("$postgres/psql" -X -q -t -A -h "$socket" -U parcelo)
[ "$("${psql[@]}" -d postgres -c "SELECT 1 FROM pg_database WHERE datname = 'parcelo'")" ] ||
    "${psql[@]}" -d postgres -c 'CREATE DATABASE parcelo'
database="postgres://parcelo@/parcelo?host=$socket"

start_server() {
    local ports=$1 log=$2
    rm -f "$log.ready"
    (umask 077 && : >"$log")
    "$server" serve --database "$database" --listen "127.0.0.1:${ports}0" \
        --sandbox-listen "127.0.0.1:${ports}1" --admin-listen "127.0.0.1:${ports}2" \
        --base-url http://127.0.0.1:8080 --sandbox-base-url http://127.0.0.1:8081 \
        --trusted-proxies 127.0.0.1 --ready-file "$log.ready" >"$log" 2>&1 &
    started=$!
}

# Both at once: one makes the schema and prints the keys.
start_server 908 "$folder/server-1.log"
first=$started processes=("$started")
start_server 918 "$folder/server-2.log"
second=$started processes+=("$started")
for log in "$folder"/server-{1,2}.log; do
    until [ -s "$log.ready" ]; do
        if ! kill -0 "$first" 2>/dev/null || ! kill -0 "$second" 2>/dev/null; then
            cat "$folder"/server-*.log >&2
            fail "a server did not start"
        fi
        sleep 0.1
    done
done
nginx -p "$folder/nginx" -c "$here/nginx.conf" -e stderr &
processes=("$!" "${processes[@]}")

# What a new database prints once is kept beside it, under the addresses of nginx.
if [ ! -s "$folder/keys.txt" ]; then
    (umask 077 && cat "$folder"/server-{1,2}.log | sed -n '/^This is a new database/,/^To set another/p' |
        sed 's/127\.0\.0\.1:9[01]8/127.0.0.1:808/g' >"$folder/keys.txt")
fi
cat "$folder/keys.txt"
cat <<TEXT

Through nginx:  production http://127.0.0.1:8080   sandbox http://127.0.0.1:8081
                dashboard and admin API http://127.0.0.1:8082/dashboard
Tracking page:  http://127.0.0.1:8081/track/SB-SUCCESS-0001, after the order above
The servers:    process $first on ports 9080-9082, process $second on ports 9180-9182
                Stop one (kill $first): the other goes on.
Logs, keys:     $folder
Database:       psql -h $socket -U parcelo parcelo
Ctrl-C stops everything$([ "$given" ] || echo ', and deletes it').
TEXT
wait "${processes[0]}"
