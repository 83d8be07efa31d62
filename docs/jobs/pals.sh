#!/bin/bash
#PBS -N beff-raw
#PBS -l select=4:ncpus=16:mpiprocs=16
#PBS -l walltime=01:30:00
#PBS -l place=scatter:excl
#PBS -j oe
# For HPE Cray systems: PBS, and the mpiexec of PALS. Not run on the real system, only with stand-ins for its commands.
set -eu
cd "$PBS_O_WORKDIR"
out=${OUT:-$PWD/results} scratch=${SCRATCH:?the directory on the storage to measure}
mkdir -p "$out"
# After LIMIT, three minutes before the job's own, each rank gets SIGTERM from a timeout(1) of its own and writes the result; exit code 130.
# At its limit PBS signals the processes on all hosts and kills them kill_delay later, 10 seconds by default, in the middle of writing.
exec mpiexec -n 64 --ppn 16 --cpu-bind core timeout --preserve-status "${LIMIT:-87m}" \
    beff-raw --backend mpiio,posix -T 15m --path "$scratch" --out "$out/{host}-{date}" --progress lines
