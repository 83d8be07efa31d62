#!/usr/bin/env bash
# `make test`: format, dependencies, lints, unit tests, examples in the docs, and the integration tests with every MPI found. The
# last line of stdout is `N passed, N failed[, N skipped]`, summed over the MPIs; format, dependencies, each lint and build count as one.
# A test that cannot run here prints a line `SKIPPED: reason` and returns; it is counted as skipped and its reason shown.
# Which integration tests run alone, and which of them with one MPI: .config/nextest.toml. Logs stay in target-<mpi>/<step>.log.
# STEP_LIMIT: seconds one step may take. THREADS: integration tests side by side.
# CPU_BUDGET_SECONDS: processor time of all children above which the run fails (default: scripts/cpu-budget.txt; 0: no limit).
# BEFF_CAMPAIGN=1 (`make campaign`): every test with every MPI, all combinations where pairs are tested otherwise, all simulations.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

step_limit=${STEP_LIMIT:-2400}
threads=${THREADS:-$(($(nproc) + 3))}
passed=0 failed=0 skipped=0

# report NAME LOG SECONDS STATUS PASSED FAILED SKIPPED: one line, and on failure what is needed to act on it.
report() {
    passed=$((passed + $5)) failed=$((failed + $6)) skipped=$((skipped + $7))
    printf '%-36s %4d passed %3d failed %3d skipped  (%d s)\n' "$1" "$5" "$6" "$7" "$3"
    if [ "$6" -eq 0 ]; then return 0; fi
    echo "---- $1: exit status $4, log $2"
    local failures
    # What libtest says at its end, or nextest behind its summary.
    failures=$(awk '/^failures:$/ || /^ +Summary \[/ { show = 1 } show; /^test result/ { show = 0 }' "$2" | head -n 400)
    if [ -n "$failures" ]; then
        echo "$failures"
        grep -E "process didn't exit successfully.*signal" "$2" || true
    else
        tail -n 60 "$2"
    fi
    echo "----"
}

# check NAME LOG CMD...: one command that passes or fails as a whole; fails if it does.
check() {
    local name=$1 log=$2 status=0 start=$SECONDS
    shift 2
    bounded "$step_limit" "$@" >"$log" 2>&1 || status=$?
    report "$name" "$log" $((SECONDS - start)) "$status" $((status == 0)) $((status != 0)) "$(grep -c '^SKIPPED: ' "$log" || true)"
    sed -n "s/^SKIPPED: /  skipped $name: /p" "$log"
    return "$status"
}

# unit_tests NAME LOG ARGS...: cargo test; the counts are those of the test programs.
unit_tests() {
    local name=$1 log=$2 status=0 start=$SECONDS ok bad ignored skips
    shift 2
    bounded "$step_limit" cargo test --locked --profile gate --no-fail-fast "$@" --show-output >"$log" 2>&1 || status=$?
    read -r ok bad ignored < <(awk '/^test result: / { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$log")
    skips=$(grep -c '^SKIPPED: ' "$log" || true)
    # A program that died of a signal reports no failed test: it is one. So is one that did not compile or finish in time.
    bad=$((bad + $(grep -cE "process didn't exit successfully.*signal" "$log" || true)))
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    report "$name" "$log" $((SECONDS - start)) "$status" $((ok - skips)) "$bad" $((ignored + skips))
    awk '/^---- .* stdout ----$/ { test = $2 }
         /^SKIPPED: /            { sub(/^SKIPPED: /, ""); print "  skipped " test ": " $0 }
         /^test .* \.\.\. ignored/ { why = $0; if (!sub(/.*ignored, /, "", why)) why = "marked as ignored"
                                   print "  skipped " $2 ": " why }' "$log"
}

# integration_tests NAME LOG ARGS...: cargo nextest, one process for each test.
integration_tests() {
    local name=$1 log=$2 status=0 start=$SECONDS ok bad skips
    shift 2
    bounded "$step_limit" cargo nextest run --locked --cargo-profile gate --no-fail-fast --test-threads "$threads" --status-level pass \
        --success-output immediate --failure-output final "$@" >"$log" 2>&1 || status=$?
    # `Summary [12.3s] 40 tests run: 36 passed (2 slow), 3 failed, 1 timed out, 9 skipped`
    read -r ok bad < <(awk '/^ +Summary \[/ { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p = $(i - 1)
                                                 if ($i ~ /^(failed|timed)/) f += $(i - 1) } }
                            END { print p + 0, f + 0 }' "$log")
    skips=$(sed '/^ *Summary \[/q' "$log" | grep -c '^ *SKIPPED: ' || true)
    # A build that failed has no summary, a run without tests proves nothing.
    if { [ "$status" -ne 0 ] || [ "$ok" -eq 0 ]; } && [ "$bad" -eq 0 ]; then bad=1; fi
    report "$name" "$log" $((SECONDS - start)) "$status" $((ok - skips)) "$bad" "$skips"
    awk '/^ +Summary \[/ { exit } /^ +(PASS|LEAK|SLOW|FAIL) \[/ { test = $NF }
         /^ *SKIPPED: / { sub(/^ *SKIPPED: /, ""); print "  skipped " test ": " $0 }' "$log"
    awk -v mpi="$BEFF_MPI_NAME" '/^ +Summary \[/ { exit }
         /^ +(PASS|LEAK|FAIL|TIMEOUT|SIG[A-Z]+) \[/ { sub(/.*\[ */, ""); seconds = $1 + 0; print seconds, $(NF - 1), $NF, mpi }' "$log" >>"$slowest"
}

# component NAME: clippy or rustfmt; their absence is a skip that is shown.
component() {
    cargo "$1" --version >/dev/null 2>&1 && return 0
    skipped=$((skipped + 1))
    echo "  skipped cargo $1: this Rust has none (rustup component add $2)"
    return 1
}

# What is the same for every MPI: format, dependencies, lints, unit tests, examples in the docs.
once() {
    if component fmt rustfmt; then check format "$logs/fmt.log" cargo fmt --all --check || true; fi
    check dependencies "$logs/licences.log" "$root/scripts/licences.sh" || true
    if component clippy clippy; then
        check clippy "$logs/clippy.log" cargo clippy "${gate[@]}" --workspace --all-targets -- -D warnings || true
    fi
    unit_tests "unit tests" "$logs/unit.log" --workspace --lib --bins --
    unit_tests "examples in the docs" "$logs/doctest.log" --workspace --doc --
}

# seed FROM: third-party crates know no MPI. What one MPI's build has of them spares that of the next one.
seed() {
    [ ! -d "$CARGO_TARGET_DIR/gate" ] && [ -d "$1/gate" ] || return 0
    cp -a "$1/gate" "$CARGO_TARGET_DIR/gate"
    # The bindings are not generated again when MPICC changes; the rest follows from them.
    cargo clean --locked --profile gate -p mpi-sys -p beff-ffi -p beff-backends -p beff-profiler -p beff-raw >"$logs/seed.log" 2>&1
}

# with_mpi NAME FIRST MPIS: everything that depends on the MPI. FIRST: target directory of the first one, none if this is it. MPIS: how
# many there are; with more than one they share the tests.
with_mpi() {
    local name=$1 first=$2 environment gate=(--locked --profile gate) which=()
    environment=$("$root/scripts/env.sh" "$name") || exit 1
    eval "$environment"
    mkdir -p "$CARGO_TARGET_DIR"
    local logs=$CARGO_TARGET_DIR label=${CARGO_TARGET_DIR##*/target-}
    echo "== $label: $MPICC, $BEFF_MPIRUN"
    if [ -z "$first" ]; then
        once
    else
        # Only these see another mpi.h.
        seed "$first"
        if cargo clippy --version >/dev/null 2>&1; then
            check "$label: clippy of ffi, profiler" "$logs/clippy.log" cargo clippy "${gate[@]}" -p beff-ffi -p beff-profiler --all-targets -- -D warnings || true
        fi
    fi
    # The profiler, too, which nothing links.
    check "$label: build" "$logs/build.log" cargo build "${gate[@]}" --workspace --lib --bins --test '*' --keep-going || return 0
    export BEFF_PROFILER=$CARGO_TARGET_DIR/gate/libbeff_profiler.so
    if [ -n "${BEFF_CAMPAIGN:-}" ]; then
        which=(--run-ignored all)
    elif [ "$3" -gt 1 ]; then
        which=(--profile "$BEFF_MPI_NAME")
    fi
    integration_tests "$label: integration tests" "$logs/integration.log" --workspace --test '*' "${which[@]}"
}

cd "$root"
mpis=$("$root/scripts/setup.sh" test)
find_cargo
find_nextest
# Which MPIs the tests run with: they share the cases of some tests.
BEFF_MPIS=$(for name in $mpis; do eval "$("$root/scripts/env.sh" "$name")" && printf '%s ' "$BEFF_MPI_NAME"; done)
if [ -n "${BEFF_CAMPAIGN:-}" ]; then BEFF_MPIS=; fi
export BEFF_MPIS
export CARGO_TERM_COLOR=never RUST_BACKTRACE=${RUST_BACKTRACE:-1}

# One after the other: a build keeps both cores busy by itself, and tests of two MPIs at a time would disturb each other.
# Each in a subshell, so that no variable of one MPI reaches the next; the counts come back through a file.
counts=$(mktemp) slowest=$(mktemp)
trap 'rm -f "$counts" "$slowest"' EXIT
first=
for name in $mpis; do
    status=0
    (
        trap 'echo "$passed $failed $skipped" >>"$counts"' EXIT
        with_mpi "$name" "$first" "$(wc -w <<<"$mpis")"
    ) || status=$?
    if [ "$status" -eq 130 ]; then exit 130; fi # interrupted by the user
    if [ "$status" -ne 0 ]; then
        echo "---- $name: the tests could not be run (exit status $status, see above)"
        echo "0 1 0" >>"$counts"
    fi
    first=${first:-$(eval "$("$root/scripts/env.sh" "$name")" && echo "$CARGO_TARGET_DIR")}
done
echo "== slowest integration tests, seconds"
# Not head: under pipefail sort would end the run by SIGPIPE.
sort -rn "$slowest" | awk 'NR <= 10'
if [ -z "${BEFF_CAMPAIGN:-}" ]; then
    ignored=$(git grep -hoP '#\[ignore = "\K[^"]*' -- tests src '*/src' '*/tests' | sort | uniq -c)
    if [ -n "$ignored" ]; then echo "== not in this run, tests and reason"; echo "$ignored"; fi
fi

read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$counts")
# Of all children that have ended, user and system; in a pipe it would be those of the pipe.
times >"$counts"
used=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$counts")
echo "== $SECONDS s, $used s of processor time"
budget=${CPU_BUDGET_SECONDS:-$(cat "$root/scripts/cpu-budget.txt")}
if [ -z "${BEFF_CAMPAIGN:-}" ] && [ "$budget" -gt 0 ] && [ "$used" -gt "$budget" ]; then
    echo "---- $used s of processor time, $budget are budgeted (scripts/cpu-budget.txt): see the slowest tests and the times of the steps above"
    failed=$((failed + 1))
fi
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
