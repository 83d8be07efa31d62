# `make run` measures, `make test` and `make check` check; all find or install what is missing first. Details: scripts/.
export RANKS T DIR BACKEND ARGS BEFF_SETUP MPICC MPIRUN PREFIX DESTDIR

.DEFAULT_GOAL := help
.PHONY: help run install check test campaign setup info clean

help:
	@echo 'make run     b_eff_io, 2 ranks through MPI-IO, about a minute'
	@echo '             RANKS=2 T=60s BACKEND=mpiio DIR=<on the file system to measure> ARGS="more options"'
	@echo 'make install  the program, its profiler, completions and manual pages'
	@echo '             PREFIX=/usr/local DESTDIR=<for packages>'
	@echo 'make check   format, lints, unit tests and documentation of the crates that changed since main'
	@echo 'make test    format, lints, docs, and all tests with MPICH and Open MPI'
	@echo 'make campaign  the same, and all combinations where make test takes pairs'
	@echo 'make setup   only install what make test needs'
	@echo 'make info    what is found on this machine'
	@echo 'make clean   remove builds, private installations and scratch files'
	@echo 'BEFF_SETUP=system|apt|venv   use only what is there | packages | private Python wheels; unset: first that works'
	@echo 'MPICC=<wrapper> MPIRUN=<launcher>   use this MPI and no other'

run:
	@scripts/run.sh

install:
	@scripts/install.sh

check:
	@scripts/check.sh

test:
	@scripts/test.sh

campaign:
	@BEFF_CAMPAIGN=1 scripts/test.sh

setup:
	@scripts/setup.sh test

info:
	@scripts/info.sh

clean:
	rm -rf target target-* .beff
