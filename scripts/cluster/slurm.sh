# shellcheck shell=bash
# Slurm on the hosts of hosts.sh: the controller on the login node, a daemon on each host. Sourced after filesystems.sh.

slurm_up() {
    local i
    need "slurm-wlm munge" slurmctld slurmd munged sbatch srun
    mkdir "$dir/state"
    head -c 1024 /dev/urandom >"$dir/key"
    chmod 600 "$dir/key"
    export SLURM_CONF=$dir/slurm.conf
    # MPICH 5 with UCX sends longer values than the PMI of Slurm 22.05 takes.
    export MPIR_CVAR_CH4_NETMOD=ofi
    cat >"$SLURM_CONF" <<EOS
ClusterName=beff
SlurmctldHost=login($net.254)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/%n
TmpFS=$dir/tmp
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/%n.log
SlurmdDebug=debug
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES
EOS
    # The socket is a file, which all hosts see: one daemon serves them.
    munged --force --key-file="$dir/key" --socket="$dir/munge" --pid-file="$dir/munged.pid" --seed-file="$dir/seed" \
        --log-file="$dir/munged.log"
    for ((i = 0; i < hosts; i++)); do
        mkdir "$dir/node$i"
        echo "NodeName=node$i NodeHostname=${names[i]} NodeAddr=$net.$((i + 1)) CPUs=2" >>"$SLURM_CONF"
    done
    at_login slurmctld
    for ((i = 0; i < hosts; i++)); do inside "$i" slurmd -N "node$i"; done
    eventually 30 nodes_are_idle
}

nodes_are_idle() { [ "$(at_login sinfo -h -o '%D %t')" = "$hosts idle" ]; }

# job_ended ID: also if it has left the controller's memory.
job_ended() { [ -z "$(at_login squeue -h -j "$1" 2>/dev/null)" ]; }

# logged PATTERN head|tail: time of the first or last such line in the logs of the daemons, in ms; nothing if there is none.
logged() {
    local line
    line=$(cat "$dir"/node?.log | grep -- "$1" | sort | "$2" -n 1 || true)
    line=${line#[}
    [ -z "$line" ] || date -d "${line%%]*}" +%s%3N
}

# submit PLUGIN DIRECTORY OPTIONS FLAGS...: docs/jobs/slurm.sh unchanged, six ranks on three hosts, until the job is over; what it calls
# `beff-raw` gets OPTIONS, and sbatch FLAGS, which precede the directives of the script. Sets `id` and `code`.
submit() {
    local plugin=$1 out=$2 options=$3 begin=$SECONDS
    shift 3
    mkdir -p "$dir/bin" "$out"
    printf '#!/bin/sh\nexec "%s" "$@" %s\n' "$program" "$options" >"$dir/bin/beff-raw"
    chmod +x "$dir/bin/beff-raw"
    id=$(OUT=$out SCRATCH=/mnt SRUN_MPI=$plugin PATH=$dir/bin:$PATH at_login sbatch --parsable --nodes=3 --ntasks-per-node=2 "$@" \
        --output "$out/log" "$root/docs/jobs/slurm.sh")
    until job_ended "$id" || [ $((SECONDS - begin)) -ge 240 ]; do sleep 0.2; done
    code=$(at_login scontrol -o show job "$id" | tr ' ' '\n' | sed -n 's/^ExitCode=//p')
}

# outputs_of DIRECTORY OUTCOME: sets `reason` unless the result is complete, has this outcome, and nothing is left on /mnt.
outputs_of() {
    for ending in json jsonl csv mpiio.sum posix.sum; do
        [ -n "$(find "$1" -name "*.$ending" -size +0)" ] || reason="no .$ending, or an empty one"
    done
    [ "$(cat "$1"/*.json 2>/dev/null | jq -r .ending.outcome)" = "$2" ] || reason="the outcome of the result is not $2"
    [ -z "$(ls -A /mnt)" ] || reason="left on /mnt: $(ls -A /mnt)"
}

# batch_job PLUGIN DIRECTORY: a limit of two minutes. The signal two minutes before it comes when the controller looks next, within half a
# minute, and the run has less space. Sets `reason`, empty if the outputs are complete and the job was over within 20 s of the signal.
batch_job() {
    local id code signalled over
    submit "$1" "$2" "--space 1G" --time=2
    signalled=$(logged "sending signal 15 to all steps job $id " head) over=$(logged "\[$id\.[0-9a-z]*\] done with job" tail)
    reason=
    if [ -z "$signalled" ] || [ -z "$over" ]; then
        reason="no signal, or no end"
        return
    fi
    detail="exit code ${code%:*}, over $((over - signalled)) ms after the signal"
    [ "$code" = 130:0 ] || reason="exit code $code"
    [ $((over - signalled)) -le 20000 ] || reason="$detail"
    outputs_of "$2" interrupted
}

# limited_job PLUGIN DIRECTORY: a limit of three minutes for T = 15 min, and --time-limit auto. The signal is one that changes nothing. Sets
# `reason`, empty if the outputs are complete, with exit code 0, before the limit.
limited_job() {
    local id code seconds
    submit "$1" "$2" "--time-limit auto" --time=3 --signal=CONT@1
    seconds=$(at_login scontrol -o show job "$id" | tr ' ' '\n' | sed -n 's/^RunTime=//p' | awk -F: '{ print $1 * 3600 + $2 * 60 + $3 }')
    reason='' detail="exit code ${code%:*} after $seconds s"
    [ "$code" = 0:0 ] || reason="exit code $code after $seconds s"
    [ "$seconds" -lt 180 ] || reason="$detail"
    outputs_of "$2" limit
}
