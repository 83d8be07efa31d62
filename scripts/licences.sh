#!/usr/bin/env bash
# Dependencies as Cargo.lock has them: licences and double versions against scripts/licences.txt, sources, the Rust they need,
# and advisories where a database is on this machine. Fetches nothing but packages that are not here yet. Exit status 1 with a line for each
# fault.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$root"
find_cargo
list=scripts/licences.txt faults=0

# faulty TEXT: each line of stdin is a fault.
faulty() {
    local line
    while IFS= read -r line; do
        echo "$line: $1"
        faults=$((faults + 1))
    done
}

# of KIND: what the list allows of it.
of() { sed -n "s/^$1 //p" "$list"; }

# Every package for any target, also of builds and tests: name, version, licence. Packages that depend on themselves for their tests are marked (*).
packages=$(cargo tree --locked --workspace --edges normal,build,dev --target all --prefix none --no-dedupe --format '{p}	{l}' | sed 's/ (\*)$//' | grep . | sort -u)
faulty "licence not in $list" < <(awk -F '\t' 'NR == FNR { known[$0] = 1; next } !($2 in known) { print $1 " (" $2 ")" }' \
    <(of licence) <(echo "$packages"))
faulty "listed in $list, but no dependency has it" < <(comm -13 <(cut -f 2 <<<"$packages" | sort -u) <(of licence | sort))

# Versions that semver calls incompatible: another first number, or second if the first is 0.
double=$(awk -F '"' '/^name = / { name = $2 }
    /^version = / && name { split($2, v, "."); print name, v[1] == 0 ? "0." v[2] : v[1]; name = "" }' Cargo.lock | sort -u |
    cut -d ' ' -f 1 | uniq -d)
faulty "several versions, not in $list" < <(comm -23 <(echo "$double") <(of double | sort))
faulty "listed as double in $list, but it is not" < <(comm -13 <(echo "$double") <(of double | sort))

# Everything that is not of this repository comes from one registry, with a checksum: no fork, no other server.
faulty "another source than the one registry" < <(grep '^source = ' Cargo.lock | sort | uniq -c | sort -rn | awk 'NR > 1 || !/"registry[+]/')
faulty "sources and checksums of Cargo.lock" < <(
    sources=$(grep -c '^source = ' Cargo.lock) sums=$(grep -c '^checksum = ' Cargo.lock)
    [ "$sources" -eq "$sums" ] || echo "$sources and $sums"
)

# Also what builds and tests need: `make test` compiles all of it.
needed=$(cargo metadata --locked --format-version 1 | grep -o '"rust_version":"[^"]*"' | cut -d '"' -f 4 | sort -uV | tail -n 1)
faulty "packages of Cargo.lock need this Rust, but rust-version in Cargo.toml is $(rust_version)" < <(
    [ "$needed" = "$(rust_version)" ] || echo "Rust $needed"
)

databases=${CARGO_HOME:-$HOME/.cargo}
if cargo deny --version >/dev/null 2>&1 && [ -d "$databases/advisory-dbs" ]; then
    cargo deny --offline check advisories || faulty "advisories" <<<"cargo deny"
elif cargo audit --version >/dev/null 2>&1 && [ -d "$databases/advisory-db" ]; then
    cargo audit --no-fetch --stale || faulty "advisories" <<<"cargo audit"
else
    echo "SKIPPED: no advisories: cargo-deny or cargo-audit with a database is not on this machine"
fi
[ "$faults" -eq 0 ]
