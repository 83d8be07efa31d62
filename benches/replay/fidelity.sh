#!/usr/bin/env bash
# How close a replay comes to what was recorded: programs recorded and replayed with think time, caches emptied before each of both.
#   fidelity.sh [-n "1 2 3 4"] [-r 5] [-p "strided io imb"] [-i IMB_IO] [-m] BEFF_RAW DIR
# With -i IMB_IO that program is recorded as imb: the original IMB-IO, which looks at no data.
# With -m free memory is kept from going back to the host of a virtual machine (hold_memory.c). No large block is free then: the kernel is told not
# to move pages together for one (in the clock of whoever writes), and finds 4 GiB of old pages where it would take those of the program.
# Bind the ranks, where there is a core for each: BEFF_MPIRUN="$BEFF_MPIRUN -bind-to core" (MPICH), "mpirun --bind-to core" (Open MPI).
# MPICC and BEFF_MPIRUN as from scripts/env.sh. DIR is on the disk to be measured; what is made in it is removed. Prints for each
# program, number of ranks and class of functions the median over the repetitions of (replayed / recorded bandwidth per process), and how far
# the recorded runs are from each other: a replay cannot be closer than the program is to itself.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
ranks="1 2 3 4" repetitions=5 programs="strided io imb" hold=0 original=
while getopts n:r:p:i:m option; do
    case $option in
    n) ranks=$OPTARG ;;
    r) repetitions=$OPTARG ;;
    p) programs=$OPTARG ;;
    i) original=$(realpath "$OPTARG") ;;
    m) hold=1 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
beff=$(realpath "$1") dir=$2
mkdir -p "$dir"
dir=$(realpath "$dir")
read -ra launch <<<"$BEFF_MPIRUN"
"$MPICC" -O2 -o "$dir/strided" "$here/strided.c"

# The same state before what is recorded and before its replay.
settle() {
    sync
    if [ -w /proc/sys/vm/drop_caches ]; then echo 3 >/proc/sys/vm/drop_caches; fi
    if [ -e "$dir/old_pages" ]; then dd if="$dir/old_pages" of=/dev/null bs=1M status=none; fi
    sleep 1
}

# sysctls NAME=VALUE...: set until the end.
sysctls() {
    local pair
    for pair; do
        before+=("${pair%=*}=$(cat "/proc/sys/vm/${pair%=*}")")
        echo "${pair#*=}" >"/proc/sys/vm/${pair%=*}"
    done
}
before=()
put_back() {
    local pair
    kill "$holder" 2>/dev/null || true
    for pair in "${before[@]}"; do echo "${pair#*=}" >"/proc/sys/vm/${pair%=*}"; done
    rm -f "$dir/hold_memory" "$dir/held" "$dir/old_pages"
}

if [ "$hold" -gt 0 ]; then
    "${MPICC%% *}" -O2 -o "$dir/hold_memory" "$here/hold_memory.c"
    settle
    "$dir/hold_memory" >"$dir/held" &
    holder=$!
    trap put_back EXIT
    until grep -q held "$dir/held"; do
        kill -0 "$holder" || { echo "memory could not be held"; exit 1; }
        sleep 0.1
    done
    [ -w /proc/sys/vm/extfrag_threshold ] || { echo "-m changes settings of the kernel: run it as root, or without -m"; exit 1; }
    sysctls extfrag_threshold=1000 compaction_proactiveness=0
    truncate -s 4G "$dir/old_pages"
fi

# words PROGRAM: the command behind `mpirun -n N`. Programs that empty the page cache or bind their ranks themselves are told not to: a replay cannot.
words() {
    case $1 in
    strided) echo "$dir/strided $dir/strided.data 65536 400 3" ;;
    io) echo "$beff --time 4s --memory-per-process 256M --path $dir --cache keep --bind none --quiet" ;;
    imb) echo "${original:-$beff imb --path $dir --cache keep --bind none --quiet} -npmin 64 -msglog 12:20 -iter 200,20 S_Write_Indv S_Read_Indv P_Write_Indv P_Read_Indv C_Write_Shared P_Write_Expl P_Read_Expl C_Write_Expl C_Read_Expl C_Write_Indv C_Read_Indv" ;;
    esac
}

for program in $programs; do
    for n in $ranks; do
        for ((r = 1; r <= repetitions; r++)); do
            name=$dir/$program-$n-$r
            rm -rf "$name".* "$dir/strided.data"
            read -ra command <<<"$(words "$program")"
            settle
            (cd "$dir" && timeout 600 "$beff" profile -o "$name.csv" -- "${launch[@]}" -n "$n" "${command[@]}" >"$name.out" 2>"$name.err") ||
                { echo "$program on $n ranks: recording ended with $?"; tail -n 3 "$name.err"; }
            rm -f "$dir/strided.data"
            settle
            timeout 900 "${launch[@]}" -n "$n" "$beff" replay "$name.csv" --pace think --cache keep --verify=off --path "$dir" --quiet \
                --out "$name.replay" >"$name.page" 2>&1 || {
                echo "$program on $n ranks: replay ended with $?; it is left out, its profile is $dir/failed-$program-$n-$r.csv"
                head -n 3 "$name.page"
                mv "$name.csv" "$dir/failed-$program-$n-$r.csv"
                rm -f "$name.replay.json"
            }
            rm -f "$name.csv"
        done
        python3 "$here/fidelity.py" "$program on $n ranks" "$dir/$program-$n"-*.replay.json
        rm -f "$dir/$program-$n"-*
    done
done
