#!/bin/bash
#BSUB -J beff-raw
#BSUB -n 64
#BSUB -R "span[ptile=16]"
#BSUB -x
#BSUB -W 01:30
#BSUB -o beff-raw.%J.log
set -eu
out=${OUT:-$PWD/results} scratch=${SCRATCH:?the directory on the storage to measure}
mkdir -p "$out"
# Ranks that mpirun leaves unbound are bound by the program (--bind auto): the nodes must be this job's alone, or the job have a cpuset.
mpirun beff-raw --backend mpiio,posix -T 15m --path "$scratch" --out "$out/{host}-{date}" --progress lines
