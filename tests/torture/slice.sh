#!/usr/bin/env bash
# Five minutes of faults on PostgreSQL, whose figures become a line of docs/torture.tsv: `slice.sh SEED SLICE [OPTIONS]`.
set -euo pipefail
cd "$(dirname "$0")/../.."
seed=$(($1 * 100 + $2)) seconds=300 result=0
shift 2
output=$(mktemp)
trap 'rm -f "$output"' EXIT
target/costs/torture --server target/costs/parcelo-server --seed "$seed" --seconds "$seconds" "$@" |
    tee "$output" || result=$?
# A run that did not reach its end has no line.
awk -v OFS='\t' -v run="$(date -u +%F)\t$(git rev-parse --short HEAD)\t$seed\t$seconds" '
    / writes, .* faults, .* kills, / { faults = $5; kills = $7 }
    / writes were acknowledged:/ { writes = $1 }
    / orders, and .* parcels$/ { orders = $1; parcels = $4 }
    / promises were not kept$/ { print run, writes, faults, kills, orders, parcels, $1 }
' "$output" >>docs/torture.tsv
exit "$result"
