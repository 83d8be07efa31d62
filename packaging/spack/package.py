# SPDX-License-Identifier: MIT OR Apache-2.0
"""Spack recipe of beff-raw; `spack install beff-raw ^openmpi` builds it with that MPI."""

import os

from spack.package import *


class BeffRaw(Package):
    """Parallel-I/O benchmark: b_eff_io through MPI-IO, POSIX, io_uring and mmap, b_eff, IMB-IO, and record and
    replay of the MPI-IO of applications."""

    # The project has no published archive: a mirror, or `spack develop`, provides the source.
    version("0.2.0")

    license("MIT OR Apache-2.0", checked_by="beff-raw authors")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("rust@1.88:", type="build")
    # libclang reads mpi.h.
    depends_on("llvm+clang", type="build")
    depends_on("mpi")

    conflicts("platform=darwin", msg="io_uring and /proc are those of Linux")
    conflicts("platform=windows", msg="io_uring and /proc are those of Linux")

    def setup_build_environment(self, env):
        env.set("BEFF_SETUP", "system")
        env.set("MPICC", self.spec["mpi"].mpicc)
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)
        # Crates stay in the stage, not in the home directory of whoever installs.
        env.set("CARGO_HOME", os.path.join(self.stage.path, "cargo"))

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        beff_raw = Executable(self.prefix.bin.join("beff-raw"))
        beff_raw("--version")
        beff_raw("plan", "--ranks", "2")
