#!/usr/bin/env bash
# `make info`: what the set-up finds on this machine; installs nothing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

row() { printf '%-12s %s\n' "$1" "$2"; }
have cargo || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
row rust "$(cargo --version 2>/dev/null || echo "missing: install Rust $(rust_version) or newer with rustup")"
row cc "$(cc --version 2>/dev/null | head -n 1 || true)"
row libclang "$(find_libclang || echo 'missing: make setup')"
for name in mpich openmpi abi venv-mpich venv-openmpi ${MPICC:+"$MPICC"}; do
    if mpicc=$(find_mpi "$name"); then
        row "$name" "$mpicc, $(find_launcher "$mpicc" || echo 'no launcher: set MPIRUN')"
    else
        row "$name" "not found"
    fi
done
row make-run "$(find_mpi "${MPICC:-mpicc}" || echo 'no mpicc yet: make setup installs one')"
