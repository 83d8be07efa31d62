#!/usr/bin/env bash
# `make install`: builds for the MPI that is found (or MPICC) and installs below PREFIX: bin/beff-raw, lib/beff-raw/<mpi>/ with the profiler,
# completions of bash, zsh and fish, manual pages. DESTDIR stands before PREFIX, for packages.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

prefix=${PREFIX:-/usr/local}
case $prefix in /*) ;; *) die "PREFIX=$prefix is no absolute path" "for example: make install PREFIX=\$HOME/.local" ;; esac
to=${DESTDIR:-}$prefix
mkdir -p "$to/bin" 2>/dev/null && [ -w "$to/bin" ] ||
    die "cannot write to $to/bin" "choose a place of your own: make install PREFIX=\$HOME/.local" "or install as root"

name=$("$root/scripts/setup.sh" run)
environment=$("$root/scripts/env.sh" "$name")
eval "$environment"
find_cargo
say "build: release, $BEFF_MPI_NAME ($MPICC)"
cargo build --release --locked --workspace --manifest-path "$root/Cargo.toml" >&2

built=$CARGO_TARGET_DIR/release
install -D -m 755 "$built/beff-raw" "$to/bin/beff-raw"
install -D -m 755 "$built/libbeff_profiler.so" "$to/lib/beff-raw/$BEFF_MPI_NAME/libbeff_profiler.so"
completions() { # SHELL FILE
    mkdir -p "$(dirname "$2")"
    "$built/beff-raw" completions "$1" >"$2"
}
completions bash "$to/share/bash-completion/completions/beff-raw"
completions zsh "$to/share/zsh/site-functions/_beff-raw"
completions fish "$to/share/fish/vendor_completions.d/beff-raw.fish"
mkdir -p "$to/share/man/man1"
"$built/beff-raw" man "$to/share/man/man1"
say "installed below $to: bin/beff-raw for $BEFF_MPI_NAME, profiler, completions, manual pages"
case :$PATH: in *:"$prefix/bin":*) ;; *) say "your shell does not look there yet: export PATH=$prefix/bin:\$PATH" ;; esac
say "next: beff-raw info, then mpirun -n 2 beff-raw --path DIR; man beff-raw"
