#!/usr/bin/env bash
# no-hooks.sh [ARGUMENTS OF cargo build]: what is built without the feature test-hooks, as every program that measures, has none of them,
# and reports an injected fault in a result. The MPI is that of the environment.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$root"
find_cargo
cargo clippy --quiet "$@" --lib --bins -- -D warnings
program=$(cargo build --quiet "$@" --bin beff-raw --message-format json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')

for line in 'io --inject flip' 'io --inject-at read' 'io --collective unsafe-read-modify-write' 'comm --inject' 'imb --inject' 'replay x --inject'; do
    # shellcheck disable=SC2086
    said=$("$program" $line 2>&1) && die "$line: was not refused"
    grep -Eq 'unexpected argument|invalid value|no option' <<<"$said" || die "$line: refused, but not as unknown" "$said"
done
if grep -q BEFF_RAW_FAIL_START "$program"; then die "$program: asks for failures of the start"; fi

stored=$(mktemp --suffix .json)
trap 'rm -f "$stored"' EXIT
sed 's/"inject": null/"inject": "flip"/' docs/runs/mpich-2ranks-60s-ladder.json >"$stored"
"$program" report "$stored" --full | grep -q 'INJECTED FAULT' || die "an injected fault in a stored result is not reported"
