#!/bin/bash
#flux: --job-name=beff-raw
#flux: --nodes=4
#flux: --exclusive
#flux: --time-limit=90m
#flux: --output=beff-raw.{{id}}.log
# Not run on the real system, only with stand-ins for its commands.
set -eu
out=${OUT:-$PWD/results} scratch=${SCRATCH:?the directory on the storage to measure}
mkdir -p "$out"
# Ranks that Flux leaves unbound are bound by the program (--bind auto): the nodes must be this job's alone, or the job have a cpuset.
# After LIMIT, three minutes before the job's own, each rank gets SIGTERM from a timeout(1) of its own and writes the result; exit code 130.
# At its limit Flux sends SIGALRM to the ranks and kills them kill-timeout later, 5 seconds by default, in the middle of writing.
# Open MPI needs the PMIx plug-in of the job shell: FLUX_SHELL_OPTIONS="-o pmi=pmix".
# shellcheck disable=SC2086 # a list of options
exec flux run --nodes=4 --tasks-per-node=16 ${FLUX_SHELL_OPTIONS:-} timeout --preserve-status "${LIMIT:-87m}" \
    beff-raw --backend mpiio,posix -T 15m --path "$scratch" --out "$out/{host}-{date}" --progress lines
