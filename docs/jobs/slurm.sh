#!/bin/bash
#SBATCH --job-name=beff-raw
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=16
#SBATCH --time=01:30:00
#SBATCH --exclusive
#SBATCH --signal=TERM@120
# A valid value of release 1 with the ladder: T counts for each backend. The signal leaves two minutes to write the result; exit code 130.
# It goes to the ranks alone. With `B:` it would go to this shell, and a signal that srun itself gets ends the ranks within a second.
# Without --signal, `--time-limit auto` ends the run seconds before the limit of the job, without what does not fit, with exit code 0.
set -eu
out=${OUT:-$PWD/results} scratch=${SCRATCH:?the directory on the storage to measure}
mkdir -p "$out"
# Ranks that srun leaves unbound are bound by the program (--bind auto). Jobs that share a node need --cpu-bind=cores, or a cpuset for each.
# --mpi=pmi2 for MPICH and Intel MPI, --mpi=pmix for Open MPI.
exec srun --mpi="${SRUN_MPI:-pmix}" beff-raw --backend mpiio,posix -T 15m --path "$scratch" \
    --out "$out/{host}-{date}" --metrics "$out/progress.prom"
