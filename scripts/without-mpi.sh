#!/usr/bin/env bash
# without-mpi.sh PROGRAM DIRECTORY: writes into DIRECTORY what stands in for the MPI library of PROGRAM on a host without it. Commands that call
# no MPI function work with it; the others end with the reason. bin/beff-raw sets both variables.
set -euo pipefail
mkdir -p "$2"
substitute=$(mktemp)
trap 'rm -f "$substitute"' EXIT
{
    cat <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Programs that this one starts shall not find this library. */
__attribute__((constructor)) static void restore_library_path(void)
{
    const char *path = getenv("BEFF_RAW_LIBRARY_PATH");
    if (!path) /* another substitute was here */
        return;
    if (*path)
        setenv("LD_LIBRARY_PATH", path, 1);
    else
        unsetenv("LD_LIBRARY_PATH");
    unsetenv("BEFF_RAW_LIBRARY_PATH");
}

void beff_without_mpi(void)
{
    const char *reason = getenv("BEFF_RAW_WITHOUT_MPI");
    fprintf(stderr,
            "beff-raw: this command needs an MPI library, and %s\n"
            "  Load the module of an MPI, or set LD_LIBRARY_PATH; profile, report, compare, gate, plan and schema need none.\n",
            reason ? reason : "there is none");
    _exit(2);
}
EOF
    # The symbols of the C library have versions.
    nm -D --undefined-only "$1" | awk '$1 == "U" && $2 !~ /@/ { print "void " $2 "(void) __attribute__((alias(\"beff_without_mpi\")));" }'
} >"$substitute"
# Some MPIs have several libraries, one linked statically has none.
for library in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(libmpi[^]]*\)\].*/\1/p'); do
    cc -x c -shared -fPIC -Wl,-soname,"$library" -o "$2/$library" "$substitute"
done
