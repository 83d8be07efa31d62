#!/usr/bin/env bash
# `make test`: format, dependencies, lints, documentation, unit tests, and the integration tests with every MPI found. The last
# line of stdout is `N passed, N failed[, N skipped]`, summed over the MPIs; format, dependencies, each lint, build and
# documentation run count as one.
# A test that cannot run here prints a line `SKIPPED: reason` and returns; it is counted as skipped and its reason shown.
# Logs stay in target-<mpi>/<step>.log. STEP_LIMIT: seconds one step may take. THREADS: integration tests side by side.
# BEFF_CAMPAIGN=1 (`make campaign`): all combinations of the tests that are made of pairs otherwise.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

step_limit=${STEP_LIMIT:-1200}
threads=${THREADS:-$(($(nproc) + 3))}
campaign=()
if [ -n "${BEFF_CAMPAIGN:-}" ]; then campaign=(--include-ignored); fi
passed=0 failed=0 skipped=0

# report NAME LOG SECONDS STATUS PASSED FAILED SKIPPED: one line, and on failure what is needed to act on it.
report() {
    passed=$((passed + $5)) failed=$((failed + $6)) skipped=$((skipped + $7))
    printf '%-36s %4d passed %3d failed %3d skipped  (%d s)\n' "$1" "$5" "$6" "$7" "$3"
    if [ "$6" -eq 0 ]; then return 0; fi
    echo "---- $1: exit status $4, log $2"
    local failures
    failures=$(awk '/^failures:$/ { show = 1 } show; /^test result/ { show = 0 }' "$2")
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

# tests NAME LOG ARGS... -- ARGS...: cargo test; the counts are those of the test programs.
tests() {
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

# component NAME: clippy or rustfmt; their absence is a skip that is shown.
component() {
    cargo "$1" --version >/dev/null 2>&1 && return 0
    skipped=$((skipped + 1))
    echo "  skipped cargo $1: this Rust has none (rustup component add $2)"
    return 1
}

# What is the same for every MPI: format, dependencies, lints, unit tests, documentation. The optimizer would take longer than
# what it saves the unit tests.
once() {
    if component fmt rustfmt; then check format "$logs/fmt.log" cargo fmt --all --check || true; fi
    check dependencies "$logs/licences.log" "$root/scripts/licences.sh" || true
    if component clippy clippy; then
        check clippy "$logs/clippy.log" cargo clippy "${gate[@]}" --workspace --all-targets -- -D warnings || true
    fi
    export CARGO_PROFILE_GATE_OPT_LEVEL=0
    tests "unit tests" "$logs/unit.log" --workspace --lib --bins --
    tests "examples in the docs" "$logs/doctest.log" --workspace --doc --
    RUSTDOCFLAGS="-D warnings" check documentation "$logs/doc.log" cargo doc "${gate[@]}" --workspace --no-deps || true
    unset CARGO_PROFILE_GATE_OPT_LEVEL
}

# seed FROM: third-party crates know no MPI. What one MPI's build has of them spares that of the next one.
seed() {
    [ ! -d "$CARGO_TARGET_DIR/gate" ] && [ -d "$1/gate" ] || return 0
    cp -a "$1/gate" "$CARGO_TARGET_DIR/gate"
    # The bindings are not generated again when MPICC changes; the rest follows from them.
    cargo clean --locked --profile gate -p mpi-sys -p beff-ffi -p beff-backends -p beff-profiler -p beff-raw >"$logs/seed.log" 2>&1
}

# with_mpi NAME FIRST: everything that depends on the MPI. FIRST: target directory of the first one, none if this is it.
with_mpi() {
    local name=$1 first=$2 environment gate=(--locked --profile gate)
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
    check "$label: build" "$logs/build.log" cargo test "${gate[@]}" --no-run --workspace --bins --test '*' || return 0
    # Nothing links the profiler, so no test would build it.
    check "$label: profiler" "$logs/profiler.log" cargo build "${gate[@]}" -p beff-profiler || return 0
    tests "$label: tests side by side" "$logs/integration.log" --workspace --test '*' -- --skip alone:: --test-threads "$threads" "${campaign[@]}"
    tests "$label: tests alone" "$logs/alone.log" --test tests -- alone:: --test-threads 1 "${campaign[@]}"
}

cd "$root"
mpis=$("$root/scripts/setup.sh" test)
find_cargo
export CARGO_TERM_COLOR=never RUST_BACKTRACE=${RUST_BACKTRACE:-1}

# One after the other: a build keeps both cores busy by itself, and tests of two MPIs at a time would disturb each other.
# Each in a subshell, so that no variable of one MPI reaches the next; the counts come back through a file.
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
first=
for name in $mpis; do
    status=0
    (
        trap 'echo "$passed $failed $skipped" >>"$counts"' EXIT
        with_mpi "$name" "$first"
    ) || status=$?
    if [ "$status" -eq 130 ]; then exit 130; fi # interrupted by the user
    if [ "$status" -ne 0 ]; then
        echo "---- $name: the tests could not be run (exit status $status, see above)"
        echo "0 1 0" >>"$counts"
    fi
    first=${first:-$(eval "$("$root/scripts/env.sh" "$name")" && echo "$CARGO_TARGET_DIR")}
done
read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$counts")
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
