#!/usr/bin/env bash
# Records programs that use MPI-IO through HDF5, PnetCDF and mpi4py, with and without the profiler, and replays them.
#   applications.sh BEFF_RAW DIR
# MPICC, BEFF_MPIRUN as from scripts/env.sh. HDF5, PNETCDF: compiler options for them; PYTHON: an interpreter with mpi4py. What is
# not set is skipped, and said.
set -euo pipefail
beff=$1 dir=$2 here=$(cd "$(dirname "$0")/applications" && pwd)
mkdir -p "$dir"
read -ra launch <<<"$BEFF_MPIRUN"

# one NAME COMMAND...: bare, recorded, shown, replayed.
one() {
    local name=$1 bare recorded
    shift
    rm -f "$dir/$name.data" "$dir/$name.csv"
    bare=$(timeout 120 "${launch[@]}" -n 2 "$@" "$dir/$name.data" 2>&1 | sort) || { echo "== $name: does not run: $bare"; return 0; }
    cp "$dir/$name.data" "$dir/$name.bare"
    rm -f "$dir/$name.data"
    recorded=$(timeout 120 "$beff" profile -o "$dir/$name.csv" -- "${launch[@]}" -n 2 "$@" "$dir/$name.data" 2>"$dir/$name.said" | sort)
    echo "== $name: $recorded" | tr '\n' ' '
    [ "$bare" = "$recorded" ] && echo "(output as without the profiler)" || echo "(OUTPUT DIFFERS: $bare)"
    cmp "$dir/$name.bare" "$dir/$name.data" && echo "   file as without the profiler"
    grep -vE '^(#|[a-z])' "$dir/$name.csv" | cut -d, -f3 | sort | uniq -c | sort -rn | sed -n 1,12p
    timeout 300 "${launch[@]}" -n 2 "$beff" replay "$dir/$name.csv" --path "$dir" --quiet --out "$dir/$name.replay-$$" >"$dir/$name.page" 2>&1 &&
        echo "   replayed: $(grep -m1 -i 'as recorded' "$dir/$name.page")" || { echo "   REPLAY: exit $?"; tail -5 "$dir/$name.page"; }
}

if [ -n "${HDF5:-}" ]; then
    # shellcheck disable=SC2086 # options
    "$MPICC" -o "$dir/hdf5" "$here/hdf5.c" $HDF5 && one hdf5 "$dir/hdf5"
else echo "skipped: HDF5 is not set"; fi
if [ -n "${PNETCDF:-}" ]; then
    # shellcheck disable=SC2086 # options
    "$MPICC" -o "$dir/pnetcdf" "$here/pnetcdf.c" $PNETCDF && one pnetcdf "$dir/pnetcdf"
else echo "skipped: PNETCDF is not set"; fi
if [ -n "${PYTHON:-}" ]; then one mpi4py "$PYTHON" "$here/python.py"; else echo "skipped: PYTHON is not set"; fi
