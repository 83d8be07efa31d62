#!/usr/bin/env bash
# Prints the environment for building and testing with one MPI:
#   eval "$(scripts/env.sh mpich)" && cargo test
# Names: mpich, openmpi, abi (the standard ABI of MPI-5), venv-mpich, venv-openmpi, venv-abi, or a compiler wrapper by name or path.
#
# MPICC, LIBCLANG_PATH, BINDGEN_EXTRA_CLANG_ARGS   read by the build
# CARGO_TARGET_DIR   one per MPI: the bindings are not generated again when MPICC changes
# BEFF_MPIRUN        launcher with the arguments it always needs, split at blanks; `-n N PROGRAM` follows
# BEFF_MPI_NAME      mpich, openmpi, intel or abi
# LD_LIBRARY_PATH    only for an MPI outside the search path of the dynamic linker (test programs carry no rpath)
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

put() { printf 'export %s=%s\n' "$1" "$(quote "$2")"; }

name=${1:-mpich}
mpicc=$(find_mpi "$name") || no_mpi "$name"
flavour=$(mpi_flavour "$mpicc")
launcher=$(find_launcher "$mpicc") || die "no launcher (mpirun, mpiexec) for $mpicc" "set MPIRUN"
libclang=$(find_libclang) || die "libclang is missing" "run: make setup"

case $name in
mpich | openmpi | abi | venv-mpich | venv-openmpi | venv-abi) target=$name ;;
*) target=$flavour-$(printf %s "$mpicc" | cksum | cut -d' ' -f1) ;;
esac

wrapper=$mpicc
if [ "$flavour" = abi ]; then wrapper=$(abi_wrapper "$mpicc"); fi
put MPICC "$wrapper"
put CARGO_TARGET_DIR "$root/target-$target"
put BEFF_MPI_NAME "$flavour"
put LIBCLANG_PATH "$libclang"
# libclang without its own stddef.h (wheel, libclang1-N) takes gcc's; searched last, so it changes nothing elsewhere.
put BINDGEN_EXTRA_CLANG_ARGS "${BINDGEN_EXTRA_CLANG_ARGS:--idirafter $(cc -print-file-name=include)}"

if [ "$flavour" = openmpi ] && [ -z "${MPIRUN:-}" ]; then
    # Tests start more ranks than there are cores, several programs at once: never refuse, never pin all to core 0.
    put BEFF_MPIRUN "$launcher --oversubscribe --bind-to none"
    if [ "$(id -u)" -eq 0 ]; then
        put OMPI_ALLOW_RUN_AS_ROOT 1
        put OMPI_ALLOW_RUN_AS_ROOT_CONFIRM 1
        put PRTE_ALLOW_RUN_AS_ROOT 1
        put PRTE_ALLOW_RUN_AS_ROOT_CONFIRM 1
    fi
else
    put BEFF_MPIRUN "$launcher"
fi

dirs=$(mpi_library_dirs "$mpicc")
if [ -n "$dirs" ]; then put LD_LIBRARY_PATH "$dirs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
