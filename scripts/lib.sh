# shellcheck shell=bash
# Common ground of the scripts in this directory: messages, time limits, and how an MPI and libclang are found.
# Sourced, never run. Everything that speaks to a person goes to stderr; stdout is for results.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
beff_dir=$root/.beff # everything the set-up installs without rights; removed by `make clean`

say() { printf '%s\n' "$*" >&2; }
die() {
    say "error: $1"
    shift
    local line
    for line in "$@"; do say "  $line"; done
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# bounded SECONDS CMD...: runs CMD with a time limit; an interrupt ends it together with all its children.
# `timeout` makes a process group of its own, which a Ctrl-C on the terminal would not reach: hence the trap.
bounded() {
    local seconds=$1 child status=0 traps
    shift
    traps=$(trap -p INT TERM HUP)
    timeout -k 15 "$seconds" "$@" <&0 &
    child=$!
    trap 'kill -TERM "$child" 2>/dev/null; wait "$child" 2>/dev/null; exit 130' INT TERM HUP
    wait "$child" || status=$?
    trap - INT TERM HUP
    eval "$traps"
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then say "stopped after $seconds s: $*"; fi
    return "$status"
}

# rustup installs there without touching the PATH of shells that are already open.
find_cargo() {
    have cargo || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    have cargo || die "cargo is missing" "install Rust $(rust_version) or newer with rustup (needs no rights), then run this again"
}
rust_version() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1; }

# find_nextest: makes `cargo nextest` work, with the one on PATH or that of the set-up; fails if there is none.
find_nextest() {
    if ! have cargo-nextest && [ -x "$beff_dir/nextest/bin/cargo-nextest" ]; then PATH=$PATH:$beff_dir/nextest/bin; fi
    cargo nextest --version >/dev/null 2>&1
}

# mpi_flavour MPICC: mpich, openmpi or intel, from the header it compiles against; fails if it cannot compile.
mpi_flavour() {
    local macros
    macros=$(printf '#include <mpi.h>\n' | "$1" -E -dM -x c - 2>/dev/null) || return 1
    case $macros in
    *"#define OMPI_MAJOR_VERSION "*) echo openmpi ;;
    *"#define I_MPI_VERSION "*) echo intel ;;
    *"#define MPICH_VERSION "*) echo mpich ;;
    *) return 1 ;;
    esac
}

# find_mpi NAME: path of the compiler wrapper. NAME is mpich or openmpi (installed on the system), venv-mpich or
# venv-openmpi (installed here by the set-up), or a wrapper by name or path.
find_mpi() {
    local name=$1 candidate
    case $name in
    venv-*) set -- "$beff_dir/${name#venv-}/bin/mpicc" ;;
    mpich | openmpi)
        set -- "mpicc.$name" "/usr/lib64/$name/bin/mpicc" mpicc
        name=flavour-$name
        ;;
    esac
    for candidate in "$@"; do
        candidate=$(command -v "$candidate" 2>/dev/null) || continue
        case $name in
        flavour-*) [ "$(mpi_flavour "$candidate")" = "${name#flavour-}" ] || continue ;;
        *) mpi_flavour "$candidate" >/dev/null || continue ;;
        esac
        echo "$candidate"
        return 0
    done
    return 1
}

# no_mpi NAME: ends with the reason why find_mpi fails.
no_mpi() {
    local dir
    if have "$1"; then
        while read -r dir; do
            [ -d "$dir" ] || die "$1 -show names the directory $dir, which does not exist" \
                "Intel MPI takes it from I_MPI_ROOT: source its vars.sh or setvars.sh; else set MPICC to the wrapper of an installed MPI"
        done < <(shown_dirs "$1" -I)
        die "$1 does not compile a program that includes mpi.h" "try: $1 -v"
    fi
    die "no MPI named $1" "run: make setup, or set MPICC to the compiler wrapper of an installed MPI"
}

# find_launcher MPICC: the launcher that belongs to the wrapper (mpicc.openmpi -> mpirun.openmpi). MPIRUN wins.
find_launcher() {
    local dir suffix candidate
    if [ -n "${MPIRUN:-}" ]; then
        echo "$MPIRUN"
        return 0
    fi
    dir=$(dirname "$1")
    suffix=$(basename "$1")
    suffix=${suffix#mpicc}
    for candidate in "$dir/mpirun$suffix" "$dir/mpiexec$suffix" "$dir/mpirun" "$dir/mpiexec" mpirun mpiexec; do
        command -v "$candidate" 2>/dev/null && return 0
    done
    return 1
}

# shown_dirs MPICC -I|-L: directories that its -show names after this option, one per line; Intel MPI quotes them.
shown_dirs() { "$1" -show 2>/dev/null | xargs printf '%s\n' | sed -n "s/^$2//p"; }

# mpi_library_dirs MPICC: directories of its libraries that the dynamic linker does not search by itself.
mpi_library_dirs() {
    local word dir searched dirs=
    searched=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -n 's,.* => \(/.*\)/[^/]*$,\1,p' | sort -u |
        while read -r dir; do readlink -f "$dir"; done)
    while read -r word; do
        dir=$(readlink -f "$word") || continue
        compgen -G "$dir/libmpi*.so.[0-9]*" >/dev/null || continue
        grep -qxF "$dir" <<<"$searched" || dirs=$dirs${dirs:+:}$dir
    done < <(shown_dirs "$1" -L)
    echo "$dirs"
}

# find_libclang: the directory of libclang, which bindgen loads; LIBCLANG_PATH wins, the newest of the system is next.
find_libclang() {
    local dir
    if [ -n "${LIBCLANG_PATH:-}" ]; then
        echo "$LIBCLANG_PATH"
        return 0
    fi
    while read -r dir; do
        # libclang-cpp is another library, which bindgen does not take.
        if compgen -G "$dir/libclang.so*" >/dev/null || compgen -G "$dir/libclang-[0-9]*.so*" >/dev/null; then
            echo "$dir"
            return 0
        fi
    done < <(
        llvm-config --libdir 2>/dev/null || true
        printf '%s\n' /usr/lib/llvm-*/lib /usr/lib64/llvm*/lib* | sort -rV
        printf '%s\n' /usr/lib/*-linux-gnu /usr/lib64 /usr/lib /usr/local/lib
        printf '%s\n' "$beff_dir"/libclang/lib*/python3*/site-packages/clang/native
    )
    return 1
}
