#!/bin/bash
#PBS -N beff-raw
#PBS -l select=4:ncpus=16:mpiprocs=16
#PBS -l walltime=01:30:00
#PBS -l place=scatter:excl
#PBS -j oe
set -eu
cd "$PBS_O_WORKDIR"
out=${OUT:-$PWD/results} scratch=${SCRATCH:?the directory on the storage to measure}
mkdir -p "$out"
# Ranks that mpirun leaves unbound are bound by the program (--bind auto): the nodes must be this job's alone, or the job have a cpuset.
mpirun beff-raw --backend mpiio,posix -T 15m --path "$scratch" --out "$out/{host}-{date}" --progress lines
