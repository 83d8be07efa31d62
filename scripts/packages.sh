#!/usr/bin/env bash
# Builds or checks the recipes of packaging/, and prints a table in Markdown of what was done.
#
#   scripts/packages.sh [spack] [easybuild] [debian] [container]     all unless given
#
# debian     source and binary package from the commit at hand, by dpkg-buildpackage; unpacked, and started under both launchers
# container  the image, by buildah, on a root of debootstrap, without a daemon; the program is run inside as the user of the image (as root)
# spack      `spack spec` if there is one on PATH; otherwise the recipe is compiled as Python only
# easybuild  parsed by EasyBuild, with Environment Modules, if `eb` is on PATH; otherwise compiled as Python only
# Results are left in target-packages/. The exit status is 1 if a recipe failed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/debian-root.sh
. "$root/scripts/debian-root.sh"

which=("$@")
[ ${#which[@]} -gt 0 ] || which=(spack easybuild debian container)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
work=$root/target-packages
mkdir -p "$work"
find_cargo

# source_tree DIR: the files of the commit.
source_tree() {
    rm -rf "$1"
    mkdir -p "$1"
    git -C "$root" archive HEAD | tar -x -C "$1"
}

package_spack() {
    local recipe=$root/packaging/spack repo=$work/spack/repo
    if ! have spack; then
        python3 -m py_compile "$recipe/package.py" && echo "valid Python; spack is missing here"
        return
    fi
    rm -rf "$work/spack"
    mkdir -p "$repo/packages/beff_raw"
    cp "$recipe/package.py" "$repo/packages/beff_raw/"
    printf 'repo:\n  namespace: beff\n  api: v2.0\n' >"$repo/repo.yaml"
    spack -C <(:) -c "repos:beff:$repo" spec beff-raw ^mpich >&2 && echo "concretized with mpich"
}

package_easybuild() {
    local recipe options=(--modules-tool=EnvironmentModules --module-syntax=Tcl --dry-run)
    if [ "$(id -u)" -eq 0 ]; then options+=(--allow-use-as-root-and-accept-consequences); fi
    for recipe in "$root"/packaging/easybuild/*.eb; do
        if have eb; then
            bounded 300 eb "${options[@]}" "$recipe" >&2 || return 1
        else
            python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$recipe" || return 1
        fi
    done
    if have eb; then echo "parsed by EasyBuild"; else echo "valid Python; EasyBuild is missing here"; fi
}

package_debian() {
    local tree=$work/beff-raw-$version unpacked=$work/unpacked name
    have dpkg-buildpackage || { say "dpkg-dev and debhelper are missing" && return 1; }
    source_tree "$tree"
    cp -r "$root/packaging/debian" "$tree/debian"
    printf 'beff-raw (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- The beff-raw authors <beff-raw@localhost>  %s\n' \
        "$version" "$(git -C "$root" log -1 --format=%aD)" >"$tree/debian/changelog"
    (cd "$tree" && bounded 5400 dpkg-buildpackage -us -uc -d) >&2 || return 1
    rm -rf "$unpacked"
    dpkg-deb -x "$work"/beff-raw_"$version"_*.deb "$unpacked" || return 1
    for name in mpich openmpi; do
        local launch=(mpirun."$name")
        if [ "$name" = openmpi ]; then launch+=(--allow-run-as-root --oversubscribe); fi
        bounded 120 "${launch[@]}" -n 2 "$unpacked/usr/bin/beff-raw" --backend null -T 1s --out "$work/$name" >&2 || return 1
    done
    echo "$(du -h "$work"/beff-raw_"$version"_*.deb | cut -f 1), run by both launchers"
}

package_container() {
    local context=$work/container
    have buildah || { say "buildah is missing: apt-get install buildah" && return 1; }
    rm -rf "$context"
    mkdir -p "$context/source"
    make_root "$context/root" ca-certificates >&2
    tar -C "$context/root/opt" -cf "$context/rust.tar" rust
    tar -C "$context/root" --exclude=./opt/rust -cf "$context/root.tar" .
    rm -rf "$context/root"
    git -C "$root" archive -o "$context/source.tar" HEAD
    local options=(--storage-driver vfs --root "$work/images" --runroot "$work/images-run")
    bounded 5400 buildah "${options[@]}" build --isolation chroot --network host --file "$root/packaging/Containerfile" \
        --tag "beff-raw:$version" "$context" >&2 || return 1
    local container name
    container=$(buildah "${options[@]}" from --pull-never "beff-raw:$version") || return 1
    for name in mpich openmpi; do
        bounded 120 buildah "${options[@]}" run --isolation chroot "$container" -- \
            mpirun."$name" -n 2 beff-raw --backend posix -T 1s --space 100M --path . >&2 || return 1
    done
    buildah "${options[@]}" rm "$container" >/dev/null
    echo "image beff-raw:$version, run as its user by both launchers"
}

echo '| recipe | seconds | outcome |'
echo '|---|---|---|'
failures=0
for name in "${which[@]}"; do
    declare -F "package_$name" >/dev/null || die "$name: no such recipe" "spack, easybuild, debian or container"
    start=$SECONDS
    if outcome=$("package_$name" 2>"$work/$name.log"); then
        outcome="ok, $outcome"
    else
        outcome="FAILED, log $work/$name.log" failures=$((failures + 1))
    fi
    echo "| $name | $((SECONDS - start)) | $outcome |"
done
[ "$failures" -eq 0 ]
