#!/usr/bin/env bash
# Runs io, imb, comm and replay with 6 ranks on the three hosts of scripts/cluster/hosts.sh, and prints a table in Markdown.
#
#   scripts/cluster/suite.sh [OPTIONS] [mpich] [openmpi]      both unless given
#
#   --gluster      io on GlusterFS: with its default caches, wrong data must be reported; without them all must be correct
#   --moosefs      io, imb and replay on MooseFS
#   --slurm COUNT  docs/jobs/slurm.sh unchanged as COUNT batch jobs of Slurm, each cut by the signal before its limit, and COUNT jobs with
#                  --time-limit auto, which end before it
#   --build NAME   profile of the binaries, release unless given
#   --only WORD    only cases whose name contains WORD
#
# Without --gluster, --moosefs and --slurm: all benchmarks on a local file system that the hosts share. The exit status is 1 if a case
# failed; logs and results are kept then. Needs root, iproute2, util-linux, jq, and the packages of the file system or of Slurm.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=scripts/cluster/hosts.sh
. "$root/scripts/cluster/hosts.sh"
# shellcheck source=scripts/cluster/filesystems.sh
. "$root/scripts/cluster/filesystems.sh"
# shellcheck source=scripts/cluster/slurm.sh
. "$root/scripts/cluster/slurm.sh"

usage() { die "$1" "scripts/cluster/suite.sh [--gluster | --moosefs | --slurm COUNT] [--build NAME] [--only WORD] [mpich] [openmpi]"; }

what=disk build=release only='' mpis=() jobs=0
arguments=("$@")
while [ $# -gt 0 ]; do
    case $1 in
    --gluster | --moosefs) what=${1#--} ;;
    --slurm | --build | --only)
        [ $# -gt 1 ] || usage "$1: a value is missing"
        case $1 in
        --slurm) what=slurm jobs=$2 ;;
        --build) build=$2 ;;
        --only) only=$2 ;;
        esac
        shift
        ;;
    mpich | openmpi) mpis+=("$1") ;;
    *) usage "$1: neither an option nor an MPI" ;;
    esac
    shift
done
case $jobs in '' | *[!0-9]*) usage "--slurm $jobs: give a number of jobs" ;; esac
if [ ${#mpis[@]} -eq 0 ]; then mpis=(mpich openmpi); fi
need jq jq

own_processes "$0" "${arguments[@]}"
results=$(mktemp -d /var/tmp/beff-suite.XXXXXX)
failures=0

# row NAME SECONDS REASON DETAIL: one line of the table; REASON is empty if the case passed.
row() {
    local outcome="ok, $4"
    if [ -n "$3" ]; then outcome="FAILED: $3"; fi
    printf '| %s | %s | %s | %s |\n' "$mpi" "$1" "$2" "$outcome"
    [ -z "$3" ] || failures=$((failures + 1))
}

# What every result must have: it is complete, of two ranks on each host, and all data was right.
sound='.ending.outcome == "complete" and ([(.manifest // .setup.machine).hosts[].ranks] == [2, 2, 2]) and .corruptions == []'
# Of benchmarks of files: they were on the file system of the campaign, which the storage sheet shows.
storage='((.manifest // .setup).storage)'
on_it="$storage == null or $storage.path == \"/mnt\""
in_sheet="[$storage.sheet[] | select(.number != null) | {(.key): .number}] | add"
case $what in
gluster) on_it+=" and $storage.fs_type == \"fuse.glusterfs\" and ($in_sheet | .servers == 3 and .stripes == 1 and .targets == 3)" ;;
moosefs) on_it+=" and $storage.fs_type == \"fuse.mfs\" and ($in_sheet | .stripe == 67108864 and .redundancy == 2)" ;;
esac
# Of full verification: every word read was compared.
compared='([.patterns[].verification.words_checked // 0] | add) > 0 and ([.patterns[].verification.words_wrong // 0] | add) == 0'
by_messages='[.patterns[].strategy | select(startswith("two-phase") and (contains("no exchange") | not))] |
    length > 0 and all(contains("exchanged by messages"))'
of_each_host='all(.patterns[]; .evidence.devices | length == 3)'

# check NAME STATUS FILTER [-r] -- ARGS...: runs beff-raw ARGS, which must end with STATUS and a result for which the jq filter is true.
check() {
    local name=$1 expected=$2 filter=$3 round_robin=no status=0 reason='' out begin
    shift 3
    if [ "$1" = -r ]; then round_robin=yes && shift; fi
    shift
    case $name in *"$only"*) ;; *) return 0 ;; esac
    out=$results/$mpi-${name//[ ,]/-}
    begin=$EPOCHREALTIME
    launch 6 "$round_robin" 300 "$program" "$@" --out "$out" </dev/null >"$out.log" 2>&1 || status=$?
    begin=$(((${EPOCHREALTIME/./} - ${begin/./}) / 100000))
    if [ "$status" -ne "$expected" ]; then
        reason="exit code $status, not $expected"
    elif ! jq -e "($filter) and ($on_it)" "$out.json" >/dev/null 2>>"$out.log"; then
        reason="the result lacks: ${filter//$'\n'/ }"
    fi
    if [ "$status" -ge 124 ]; then clear_hosts; fi
    row "$name" "$((begin / 10)).$((begin % 10))" "$reason" "exit code $status"
}

# Ranks that the launcher left when it was ended.
clear_hosts() { everywhere pkill -KILL -x 'beff-raw|hydra_pmi_proxy|orted' || true; }

# io of the three drivers of files, in every method of access and type.
io=(io --path /mnt --backend "mpiio,posix,uring" --verify full --memory-per-process 64M --space 600M -T 1s)
imb=(imb --path /mnt P_Write_Indv C_Read_Indv --npmin 6 --msglog 12:16 --iter 2 --time 1s)

# Every rank writes, and reads what ranks of the other hosts wrote, after a close and an open: a client may know an older size until
# then (MooseFS).
write_profile() {
    local rank other
    printf '%s\n' "beff-raw profile,1" "ranks,6" "comm,0,world" "type,0,BYTE" "file,0,/work/out.dat"
    for ((rank = 0; rank < 6; rank++)); do
        other=$(((rank + 2) % 6))
        echo "calls,$rank,7"
        echo "$((100 + rank)),200,File_open,handle=1,file=0,comm=0,mode=rdwr;create"
        echo "300,400,File_write_at_all,handle=1,offset=$((rank * 1000003)),count=1000003,type=0,bytes=1000003"
        echo "500,600,File_sync,handle=1"
        echo "620,640,File_close,handle=1"
        echo "660,680,File_open,handle=2,file=0,comm=0,mode=rdonly,number=6000018"
        echo "700,800,File_read_at,handle=2,offset=$((other * 1000003)),count=1000003,type=0,bytes=1000003,after=$other@300,from=1000003@$other:300+0"
        echo "1000,1100,File_close,handle=2"
    done
}
replay=(replay "$results/app.csv" --path /mnt --backend "mpiio,posix,uring" --repeat 1)
# Two-phase where it can be: all hosts are one kernel, but show different processes.
on_disk() {
    check "io, two-phase" 0 "$sound and ($compared) and ($by_messages) and ($of_each_host)" -- "${io[@]}" --collective two-phase
    check "io, rank-shift" 0 "$sound and ($compared)" -- "${io[@]}" --cache rank-shift
    check "io, round-robin, rank-shift" 0 "$sound and ($compared)" -r -- "${io[@]}" --cache rank-shift
    check "imb" 0 "$sound" -- "${imb[@]}"
    check "comm" 0 "$sound and .setup.numbering == \"sequential\"" -- comm --quick --time 5s --memory-per-process 16M
    check "comm, round-robin" 0 "$sound and .setup.numbering == \"round_robin\"" -r -- comm --quick --time 5s --memory-per-process 16M
    check "replay" 0 "$sound" -- "${replay[@]}"
}

on_gluster() {
    gluster_mount
    # Hosts see old contents, with ROMIO also of the file that has its shared pointer. In the one run with OMPIO no data was wrong.
    if [ "$mpi" = mpich ]; then check "io, default caches" 3 '.corruptions | length > 0' -- "${io[@]}"; fi
    gluster_without_caches
    check "io, no caches" 0 "$sound and ($compared)" -- "${io[@]}"
    everywhere umount /mnt
    gluster volume reset beff >/dev/null
}

on_moosefs() {
    check "io" 0 "$sound and ($compared)" -- "${io[@]}"
    check "imb" 0 "$sound" -- "${imb[@]}"
    check "replay" 0 "$sound" -- "${replay[@]}"
}

in_slurm() {
    local number kind begin reason detail plugin=pmix
    if [ "$mpi" = mpich ]; then plugin=pmi2; fi
    for kind in batch limited; do
        case $kind in *"$only"*) ;; *) continue ;; esac
        for ((number = 1; number <= jobs; number++)); do
            begin=$SECONDS detail=
            "${kind}_job" "$plugin" "$results/$mpi-$kind-job$number"
            row "slurm.sh, $kind job $number" $((SECONDS - begin)) "$reason" "$detail"
        done
    done
}

hosts_up ""
write_profile >"$results/app.csv"
begin=$SECONDS
case $what in
disk) ;;
gluster) gluster_up ;;
moosefs) moosefs_up ;;
slurm) slurm_up ;;
esac
say "$what: set up in $((SECONDS - begin)) s; results in $results"
search=${LD_LIBRARY_PATH:-}
echo "| MPI | case | seconds | outcome |"
echo "|---|---|---|---|"
for mpi in "${mpis[@]}"; do
    export LD_LIBRARY_PATH=$search
    environment=$("$root/scripts/env.sh" "$mpi")
    eval "$environment"
    program=$CARGO_TARGET_DIR/$build/beff-raw
    [ -x "$program" ] || die "$program is not there" "build it: cargo build --profile $build"
    choose_mpi "$program"
    case $what in
    disk) on_disk ;;
    gluster) on_gluster ;;
    moosefs) on_moosefs ;;
    slurm) in_slurm ;;
    esac
done
if [ "$failures" -gt 0 ]; then die "$failures cases failed" "see the logs in $results"; fi
rm -rf "$results"
