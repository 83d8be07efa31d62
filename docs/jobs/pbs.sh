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
mpirun beff-raw --backend mpiio,posix -T 15m --path "$scratch" --out "$out/{host}-{date}" --progress lines
