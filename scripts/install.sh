#!/usr/bin/env bash
# `make install`: builds for every MPI that is found (or for MPICC alone) and installs below PREFIX: bin/beff-raw, which starts the program of
# the MPI at hand; libexec/beff-raw/beff-raw-<mpi>, with debug information in .debug/ and a substitute of the MPI library, for hosts without
# it, in without-mpi/; lib/beff-raw/<mpi>/ with the profiler; completions of bash, zsh and fish, manual pages, schemas and job scripts. A
# program of an MPI that is not built now stays. DESTDIR stands before PREFIX, for packages.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

prefix=${PREFIX:-/usr/local}
case $prefix in /*) ;; *) die "PREFIX=$prefix is no absolute path" "for example: make install PREFIX=\$HOME/.local" ;; esac
to=${DESTDIR:-}$prefix
mkdir -p "$to/bin" 2>/dev/null && [ -w "$to/bin" ] ||
    die "cannot write to $to/bin" "choose a place of your own: make install PREFIX=\$HOME/.local" "or install as root"

# names: the MPIs to build for, one per line.
names() {
    local name found=
    if [ -z "${MPICC:-}" ]; then
        for name in mpich openmpi abi; do
            if find_mpi "$name" >/dev/null; then found=1 && echo "$name"; fi
        done
    fi
    [ -n "$found" ] || "$root/scripts/setup.sh" run
}

# install_stripped BUILT INSTALLED: without debug information, which goes into a file of its own, if objcopy is there.
install_stripped() {
    local debug
    debug=$(dirname "$2")/.debug/$(basename "$2").debug
    install -D -m 755 "$1" "$2"
    have objcopy || return 0
    mkdir -p "$(dirname "$debug")"
    objcopy --only-keep-debug "$1" "$debug"
    objcopy --strip-debug --add-gnu-debuglink="$debug" "$1" "$2"
}

# build_and_install NAME: in a shell of its own, whose environment is that of this MPI.
build_and_install() (
    environment=$("$root/scripts/env.sh" "$1")
    eval "$environment"
    say "build: release, $BEFF_MPI_NAME ($MPICC)"
    cargo build --release --locked -p beff-raw -p beff-profiler --manifest-path "$root/Cargo.toml" >&2
    built=$CARGO_TARGET_DIR/release
    install_stripped "$built/beff-raw" "$to/libexec/beff-raw/beff-raw-$BEFF_MPI_NAME"
    if have nm && have readelf; then "$root/scripts/without-mpi.sh" "$built/beff-raw" "$to/libexec/beff-raw/without-mpi"; fi
    install_stripped "$built/libbeff_profiler.so" "$to/lib/beff-raw/$BEFF_MPI_NAME/libbeff_profiler.so"
    echo "$BEFF_MPI_NAME"
)

find_cargo
found=$(names)
installed=
for name in $found; do
    installed="$installed $(build_and_install "$name")"
done

install -D -m 755 "$root/scripts/beff-raw.sh" "$to/bin/beff-raw"
program="$to/libexec/beff-raw/beff-raw-${installed##* }"
completions() { # SHELL FILE
    mkdir -p "$(dirname "$2")"
    "$program" completions "$1" >"$2"
}
completions bash "$to/share/bash-completion/completions/beff-raw"
completions zsh "$to/share/zsh/site-functions/_beff-raw"
completions fish "$to/share/fish/vendor_completions.d/beff-raw.fish"
mkdir -p "$to/share/man/man1"
"$program" man "$to/share/man/man1"
install -D -m 644 -t "$to/share/beff-raw/schemas" "$root"/docs/*-schema.json
install -D -m 644 -t "$to/share/beff-raw/jobs" "$root"/docs/jobs/*.sh
say "installed below $to: bin/beff-raw, programs and profilers for$installed, completions, manual pages, schemas, job scripts"
case :$PATH: in *:"$prefix/bin":*) ;; *) say "your shell does not look there yet: export PATH=$prefix/bin:\$PATH" ;; esac
say "next: beff-raw info, then mpirun -n 2 beff-raw --path DIR; man beff-raw"
