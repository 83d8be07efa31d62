#!/usr/bin/env bash
# `make check`: format, dependencies, lints, unit tests and documentation of the crates that changed since BASE (main) or that use one of those.
# One MPI, the first of the set-up; of the integration tests those of the calls, on one rank. Shares its build with `make test`.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$root"
find_cargo
mpis=$("$root/scripts/setup.sh" test)
name=${mpis%%$'\n'*}
environment=$("$root/scripts/env.sh" "$name")
eval "$environment"
export CARGO_TERM_COLOR=never
# As in test.sh, so that nothing is compiled twice; what is ours in parts, since it is what changes.
gate=(--locked --profile gate)
export CARGO_PROFILE_GATE_OPT_LEVEL=0 CARGO_PROFILE_GATE_INCREMENTAL=true

base=$(git merge-base HEAD "${BASE:-main}" 2>/dev/null || git rev-parse HEAD)
changed=$(git diff --name-only "$base" && git ls-files --others --exclude-standard)
crates=()
if grep -qE '^(ffi/|Cargo\.|clippy\.toml)' <<<"$changed"; then
    crates=(-p beff-trace -p beff-statistics -p beff-tuning -p beff-report -p beff-host -p beff-ffi -p beff-profiler -p beff-backends -p beff-raw)
elif grep -q '^trace/' <<<"$changed"; then
    crates=(-p beff-trace -p beff-profiler -p beff-backends -p beff-raw)
elif grep -q '^profiler/' <<<"$changed"; then
    crates=(-p beff-profiler)
    if grep -qE '^(src|tests|backends)/' <<<"$changed"; then crates+=(-p beff-backends -p beff-raw); fi
elif grep -q '^backends/' <<<"$changed"; then
    crates=(-p beff-backends -p beff-raw)
elif grep -qE '^(src|statistics|tuning|report|host|tests|benches|docs)/|^build\.rs' <<<"$changed"; then
    crates=(-p beff-raw) # the schemas in docs/ are compared with the types by unit tests
fi
for crate in statistics tuning report host; do
    if grep -q "^$crate/" <<<"$changed" && [[ " ${crates[*]} " != *" beff-$crate "* ]]; then crates+=(-p "beff-$crate"); fi
done

run() {
    local start=$SECONDS
    say "== $1"
    shift
    bounded 600 "$@" || die "failed: $*"
    say "   $((SECONDS - start)) s"
}
run format cargo fmt --all --check
run dependencies scripts/licences.sh
if [ ${#crates[@]} -eq 0 ]; then
    say "no crate changed since $base"
    exit 0
fi
run "lints: ${crates[*]}" cargo clippy "${gate[@]}" --quiet "${crates[@]}" --all-targets -- -D warnings
run "unit tests: ${crates[*]}" cargo test "${gate[@]}" --quiet "${crates[@]}" --lib --bins
if [[ " ${crates[*]} " == *" beff-raw "* ]]; then
    # Everything above is built with them.
    run "the program without test hooks" scripts/no-hooks.sh "${gate[@]}"
fi
# What only a real library can answer, in seconds: no launcher.
calls=()
for crate in ffi backends; do [[ " ${crates[*]} " != *" beff-$crate "* ]] || calls+=(-p "beff-$crate"); done
if [ ${#calls[@]} -gt 0 ]; then
    run "calls of MPI on one rank" env BEFF_TEST_MOST_RANKS=1 cargo test "${gate[@]}" --quiet "${calls[@]}" --test '*'
fi
export RUSTDOCFLAGS="-D warnings"
run "documentation: ${crates[*]}" cargo doc "${gate[@]}" --quiet "${crates[@]}" --no-deps
