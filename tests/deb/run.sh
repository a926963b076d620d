#!/usr/bin/env bash
# The life of the Debian package in a system without Rust: installed, an order with its label and webhook by the command
# of the archive, backed up, upgraded with this data, rolled back, removed, purged. systemd does not run there: server
# and backup are started as their units say.
#
#   tests/deb/run.sh ROOT ARCHIVE BEFORE.deb AFTER.deb    as root, with ports 8080 to 8082 and 4242 free
set -euo pipefail
root=$1 archive=$2 before=$3 after=$4
units=$root/usr/lib/systemd/system settings=$root/etc/parcelo/server.toml
data=$root/var/lib/parcelo backups=$root/var/lib/parcelo-backups log=$root/tmp/log server="" listener=""
export PARCELO_BASE_URL=http://127.0.0.1:8081 PATH=$root/tmp/archive:$PATH
trap '[ -z "$server$listener" ] || kill $server $listener' EXIT

fail() {
    echo "$*" >&2
    [ ! -e "$log" ] || tail -n 5 "$log" >&2
    exit 1
}

apt() {
    chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Use-Pty=false \
        --allow-downgrades "$@" >/dev/null
}

install_package() {
    echo "installs ${1##*/}"
    cp "$1" "$root/tmp/parcelo.deb"
    apt install /tmp/parcelo.deb
}

# Becomes a command of the package's account.
as_account() {
    exec chroot --userspec=parcelo-server:parcelo-server "$root" env -i PATH=/usr/bin:/bin "$@"
}

beside() (
    as_account parcelo-server "$@" --config /etc/parcelo/server.toml
)

# Becomes the command of a service, with the variable of the package's drop-in, which unsets those of the unit.
run_service() {
    local command variable folder
    read -ra command < <(sed -n 's/^ExecStart=//p' "$units/$1.service")
    variable=$(sed -n 's/^Environment=\(.\)/\1/p' "$units/$1.service.d/user.conf")
    for folder in $(sed -n 's/^StateDirectory=//p' "$units/$1.service"); do
        chroot "$root" install -d -o parcelo-server -g parcelo-server -m 700 "/var/lib/$folder"
    done
    as_account "$variable" "${command[@]}" >"$log" 2>&1
}

start() {
    run_service parcelo-server &
    server=$!
    until curl -sfo /dev/null "$PARCELO_BASE_URL/readyz"; do
        kill -0 "$server" 2>/dev/null || fail "the server did not start"
        sleep 0.2
    done
}

stop() {
    kill "$server"
    wait "$server" || fail "the server ended with $?"
    server=""
}

# Sends the order, for the first time or again, and saves its label.
order() {
    local label=$root/tmp/label.pdf
    rm -f "$label"
    parcelo order create "$root/tmp/order.json" --label "$label" -o numbers
    [ "$(head -c 5 "$label")" = %PDF- ] || fail "there is no label"
}

add_to_schema() {
    python3 - "$data/parcelo.db" "$1" <<'PYTHON'
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
version = database.execute("PRAGMA user_version").fetchone()[0]
database.execute(f"PRAGMA user_version = {version + int(sys.argv[2])}")
PYTHON
}

mkdir "$root/tmp/archive"
tar -xzf "$archive" -C "$root/tmp/archive" --strip-components=1
for unit in "$(dirname "$0")"/../../examples/deploy/parcelo-*; do
    [ -s "$root/tmp/archive/${unit##*/}" ] || fail "the archive has no ${unit##*/}"
done
parcelo order template >"$root/tmp/order.json"
install_package "$before"
[ "$(chroot "$root" systemctl is-enabled parcelo-server)" = enabled ] || fail "the server is not enabled"
for unit in parcelo-backup.timer parcelo-server-production.socket parcelo-server-sandbox.socket; do
    [ "$(chroot "$root" systemctl is-enabled "$unit")" = disabled ] || fail "$unit is not there, or enabled"
    chroot "$root" systemctl enable --quiet "$unit"
done
# As bash completes a word: by the function that is registered for the command.
completed=$(chroot "$root" bash -c '
    . /usr/share/bash-completion/completions/parcelo-server
    [[ $(complete -p parcelo-server) =~ -F\ ([^ ]+) ]]
    COMP_WORDS=(parcelo-server backup --) COMP_CWORD=2
    "${BASH_REMATCH[1]}" parcelo-server -- backup
    echo "${COMPREPLY[*]}"')
[[ " $completed " == *" --folder "* ]] || fail "bash completes \"$completed\" after \"parcelo-server backup --\""
for file in man/man1/parcelo-server-serve.1.gz zsh/vendor-completions/_parcelo-server \
    fish/vendor_completions.d/parcelo-server.fish; do
    [ -s "$root/usr/share/$file" ] || fail "there is no $file"
done
echo 'sandbox-webhooks-allow-loopback = true' >>"$settings"
beside config show >"$log"
grep -q 'loopback.*/etc/parcelo/server.toml' "$log" || fail "the settings are not read"
start
[ "$(chroot "$root" stat -c '%G %a' /etc/parcelo/server.toml)" = 'parcelo-server 640' ] || fail "others can read the settings"
[ "$(stat -c %a "$data/first-secrets.txt")" = 600 ] || fail "others can read the secrets"
PARCELO_API_KEY=$(beside keys create --environment sandbox --name shop --countries '*' | grep -om 1 'pk_test_[A-Za-z0-9]*')
PARCELO_WEBHOOK_SECRET=$(beside webhooks set --environment sandbox --url http://127.0.0.1:4242/ \
    --events parcel.created | grep -om 1 'whsec_[A-Za-z0-9+/=_-]*')
export PARCELO_API_KEY PARCELO_WEBHOOK_SECRET
parcelo webhook listen -o ndjson >"$root/tmp/events" 2>&1 &
listener=$!
number=$(order)
for _ in {1..300}; do ! grep -q "$number.*parcel.created" "$root/tmp/events" || break; sleep 0.1; done
grep -q "$number.*parcel.created" "$root/tmp/events" || fail "no webhook came: $(cat "$root/tmp/events")"
(run_service parcelo-backup) || fail "there is no backup"
backup=$(cd "$backups" && ls)
beside verify "/var/lib/parcelo-backups/$backup" >"$log" || fail "the backup has a fault"
stop

install_package "$after"
grep -q allow-loopback "$settings" || fail "the upgrade replaced the settings"
start
[ "$(order)" = "$number" ] || fail "the upgrade lost the order"
stop

# As if the newer program had changed the schema.
add_to_schema 1
install_package "$before"
if (run_service parcelo-server); then fail "the older program ran on a newer schema"; fi
grep -q 'install the newer program again, or restore a backup' "$log" || fail "the refusal does not say what to do"
add_to_schema -1
start
[ "$(order)" = "$number" ] || fail "the refusal changed the data"
stop

apt remove parcelo-server
[ -s "$data/parcelo.db" ] || fail "the data was removed"
apt purge parcelo-server
left=$(find "$root/usr" "$root/etc" "$root/var/lib" -name '*parcelo*' -not -path '*/dpkg/*' -not -path "$backups*")
[ -z "$left" ] || fail "the purge left $left"
[ -s "$backups/$backup" ] || fail "the purge deleted the backup"
