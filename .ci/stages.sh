# Runs stages: sourced by .ci/run and .ci/prove, which say in `stages` what there is ("name usual-seconds limit") and
# define a function of each name (with _ for -).
#
#   SCRIPT              runs all of them, whatever fails, and exits with 1 if one did
#   SCRIPT STAGE ...    runs these
#   SCRIPT --list       names them, with their usual seconds on two quiet cores and nothing built
#
# Each stage is a process with a limit of its own: what hangs costs its limit, and what it leaves running is ended.

export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 RUST_BACKTRACE=1
# Without debug information a build takes half the disk.
export CARGO_PROFILE_DEV_DEBUG=none
# Debian's 1,024 open files are too few for a thousand connections at once.
ulimit -n 20000 2>/dev/null || ulimit -n "$(ulimit -Hn)"

# Packages of the workspace that are not published.
unpublished=(--exclude parcelo-examples --exclude parcelo-fuzz --exclude parcelo-crash --exclude parcelo-tidy --exclude torture)

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs packages of Debian or Ubuntu.
apt_install() {
    # Another run may be installing something.
    local wait=(-o DPkg::Lock::Timeout=300)
    as_root apt-get "${wait[@]}" update -qq
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get "${wait[@]}" install -y -qq --no-install-recommends "$@" >/dev/null
}

# Installs packages (after --) for programs that are not there.
need() {
    local programs=()
    while [ "$1" != -- ]; do
        programs+=("$1")
        shift
    done
    shift
    PATH=$PATH:/usr/sbin
    # `type -P` finds programs only: a stage may have the name of one.
    if [ "$(type -P "${programs[@]}" | wc -l)" -lt "${#programs[@]}" ]; then apt_install "$@"; fi
}

need_compiler() {
    if ! command -v cc >/dev/null || ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install gcc libc6-dev python3-venv
    fi
}

need_postgres() {
    if ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then apt_install postgresql; fi
}

# Installs packages of PyPI into an environment of this run.
need_python() {
    need_compiler
    [ -d "$tools/python" ] || python3 -m venv "$tools/python"
    "$tools/python/bin/pip" install --quiet --disable-pip-version-check "$@"
}

run_stage() {
    local name=$1 limit=$2 start=$SECONDS code=0 follower
    printf '\n=== %s\n' "$name"
    # What follows it must find it.
    : >"$tools/output"
    timeout -k 10 "$limit" bash "$script" --stage "$name" >"$tools/output" 2>&1 </dev/null &
    current=$!
    tail -n +1 -s 0.2 -f --pid="$current" "$tools/output" &
    follower=$!
    wait "$current" || code=$?
    wait "$follower" || true
    # A stage is the leader of a group: what it started goes with it.
    kill -KILL -- "-$current" 2>/dev/null || true
    current=
    cat "$tools/output" >>"$tools/all"
    if [ "$code" = 0 ]; then
        printf '=== %s: %d s\n' "$name" "$((SECONDS - start))"
        return
    fi
    [ "$code" != 124 ] || printf '%s did not end within %d s\n' "$name" "$limit"
    printf '=== %s: FAILED after %d s (exit %d)\n' "$name" "$((SECONDS - start))" "$code"
    failed+=("$name")
    { grep -aE '^test .* \.\.\. FAILED|^    [a-z_:0-9]+ FAILED' "$tools/output" || true; } >>"$tools/failures"
}

run_stages() {
    local row name usual limit wanted=("$@") known=()
    for row in "${stages[@]}"; do
        read -r name usual limit <<<"$row"
        known+=("$name")
    done
    for name in "${wanted[@]}"; do
        [[ " ${known[*]} " = *" $name "* ]] || {
            echo "$0: there is no stage $name; the stages: ${known[*]}" >&2
            exit 2
        }
    done
    failed=() current=
    # The caller went to the root of the repository.
    script=.ci/$(basename "$0")
    if [ -w "${memory:-}" ] && [ "$(df -m --output=avail "$memory" | tail -n 1)" -ge 4000 ]; then
        export TMPDIR=$memory
    fi
    tools=$(mktemp -d)
    export tools TMPDIR="$tools/files"
    mkdir -m 1777 "$TMPDIR"
    # PostgreSQL runs as another user, and has its data and programs in there.
    chmod 755 "$tools"
    # shellcheck disable=SC2016
    trap '[ -z "$current" ] || kill -TERM "$current" 2>/dev/null || true; rm -rf "$tools"' EXIT
    trap 'exit 130' INT TERM HUP
    rustc --version
    echo "seed: $PARCELO_SEED"
    for row in "${stages[@]}"; do
        read -r name usual limit <<<"$row"
        if [[ "${#wanted[@]}" = 0 && $name != "${only_by_name:-}" || " ${wanted[*]} " = *" $name "* ]]; then
            run_stage "$name" "$limit"
        fi
    done
    summary
}

# Prints the last lines: the tests' count, the time, and what failed.
summary() {
    printf '\n'
    awk '/^test result: / { passed += $4; failed += $6; ignored += $8 }
        END { printf "%d tests passed, %d failed, %d ignored", passed, failed, ignored }' "$tools/all"
    printf '; %d s\n' "$SECONDS"
    [ "${#failed[@]}" = 0 ] || {
        [ ! -s "$tools/failures" ] || sort -u "$tools/failures"
        echo "failed: ${failed[*]}"
        exit 1
    }
}

main() {
    case ${1:-} in
    --stage)
        "${2//-/_}"
        ;;
    --list)
        for row in "${stages[@]}"; do
            read -r name usual limit <<<"$row"
            printf '%-14s %5d s\n' "$name" "$usual"
        done
        ;;
    -*)
        sed -n '/^#   /s/^# *//p' "${BASH_SOURCE[0]}" | sed "s|SCRIPT|$0|"
        [ "$1" = --help ] || exit 2
        ;;
    *) run_stages "$@" ;;
    esac
}
