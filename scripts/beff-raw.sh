#!/bin/sh
# beff-raw: starts the program that was built for the MPI whose launcher started this process. `make install` installs the programs as
# ../libexec/beff-raw/beff-raw-NAME, NAME being mpich, openmpi, intel, or abi: the standard ABI of MPI-5, which runs with the library of any
# MPI that has it, and is started if there is no program for that MPI itself. BEFF_RAW_MPI=NAME chooses one.
set -u

fail() {
    echo "beff-raw: $1" >&2
    exit 2
}

program=$(readlink -f -- "$0") || fail "the path of $0 cannot be resolved"
directory=${program%/*}/../libexec/beff-raw

# The families whose launcher started this process, from the variables that it sets for each process; empty without a launcher, or with one
# that starts the programs of several (srun, flux run).
families() {
    if [ -n "${OMPI_COMM_WORLD_SIZE:-}${JSM_NAMESPACE_SIZE:-}" ]; then
        echo openmpi
    elif [ -n "${PMI_SIZE:-}${PMI_RANK:-}${MPI_LOCALNRANKS:-}${MV2_COMM_WORLD_SIZE:-}" ]; then
        # One binary interface: the programs run with the library of either.
        echo mpich intel
    fi
}
is_several() {
    [ -n "${FLUX_JOB_SIZE:-}${SLURM_STEP_NUM_TASKS:-}${PALS_RANKID:-}${ALPS_APP_PE:-}${PMIX_RANK:-}" ]
}

of_launcher=
installed=
for path in "$directory"/beff-raw-*; do
    case $path in *.debug | *-abi) continue ;; esac
    if [ -x "$path" ]; then installed="$installed ${path##*/beff-raw-}"; fi
done
any=
if [ -x "$directory/beff-raw-abi" ]; then any=" abi" installed="$installed abi"; fi
[ -n "$installed" ] || fail "no program is installed in $directory; run make install again"

if [ -n "${BEFF_RAW_MPI:-}" ]; then
    asked=$BEFF_RAW_MPI
    [ -x "$directory/beff-raw-$asked" ] || fail "BEFF_RAW_MPI=$asked: there are programs for$installed"
else
    asked=$(families)
    of_launcher=$asked
    if [ -z "$asked" ]; then
        # shellcheck disable=SC2086 # a list of names
        set -- $installed -- "$@"
        if [ "$2" != -- ] && is_several; then
            fail "this launcher starts programs of several MPIs, and there are programs for$installed; choose one: BEFF_RAW_MPI=$1"
        fi
        while [ "$1" != -- ]; do shift; done
        shift
        asked=$installed
    else
        asked=$asked$any
    fi
fi

reason=
for name in $asked; do
    candidate=$directory/beff-raw-$name
    if [ ! -x "$candidate" ]; then continue; fi
    # A library that is missing on this host is an error of the dynamic linker, which would come too late after exec.
    if error=$("$candidate" --version 2>&1 >/dev/null); then
        # The ABI's library may be that of another MPI than the launcher's.
        if [ "$name" = abi ] && [ -n "$reason" ] && [ -n "$of_launcher" ] && [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ]; then
            echo "beff-raw: $reason; that of the standard ABI is started instead" >&2
        fi
        exec "$candidate" "$@"
    fi
    reason=${reason:-"the program for $name does not start here: $error"}
done
if [ -n "$reason" ] && [ -z "$(families)" ] && ! is_several && [ -d "$directory/without-mpi" ]; then
    # Reports and plans need no MPI. The substitute ends what needs one, with the reason.
    export BEFF_RAW_WITHOUT_MPI="$reason" BEFF_RAW_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" LD_LIBRARY_PATH="$directory/without-mpi"
    exec "$directory/beff-raw-$name" "$@"
fi
[ -z "$reason" ] || fail "$reason"
fail "the launcher is one of $(echo "$of_launcher" | sed 's/ / or /g'), and there are programs for$installed; build it: make install MPICC=<its mpicc>"
