#!/bin/bash
#PBS -N beff-raw
#PBS -l select=4:ncpus=16:mpiprocs=16
#PBS -l walltime=01:30:00
#PBS -l place=scatter:excl
#PBS -j oe
# Not run on the real system, only with stand-ins for its commands.
set -eu
cd "$PBS_O_WORKDIR"
out=${OUT:-$PWD/results} scratch=${SCRATCH:?the directory on the storage to measure}
mkdir -p "$out"
# Ranks that mpirun leaves unbound are bound by the program (--bind auto): the nodes must be this job's alone, or the job have a cpuset.
# The run ends before LIMIT, three minutes before the job's own, with its result and exit code 0. `--time-limit auto` asks the scheduler instead,
# where its commands work on the nodes.
# At its limit PBS signals the processes on all hosts, mpirun too, and kills them kill_delay later, 10 seconds by default. Hydra (MPICH, Intel
# MPI) passes the signal on and waits; mpirun of Open MPI kills its ranks a second after its own SIGTERM, in the middle of writing.
exec mpirun beff-raw --backend mpiio,posix -T 15m --time-limit "${LIMIT:-87m}" \
    --path "$scratch" --out "$out/{host}-{date}" --progress lines
