/* Counts heap allocations in the timed region, those of the MPI library included: loaded into the ranks of a test before their MPI.
 *
 * The region begins with the first call that moves data or starts a reduction, and ends with the sync of a write, or with the last such
 * call of a read. BEFF_ALLOCATIONS is a directory: the file named by the process id has one counter of 8 bytes for each origin. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum origin { PROGRAM, REDUCTION, FILE_CALL, SYSTEM_CALL, ORIGINS };
static uint64_t counted[ORIGINS], nowhere[ORIGINS + 1];
static uint64_t *in_region = nowhere; /* behind the origins: number of regions */
static uint64_t before[ORIGINS];
static int region, persistent;
/* Threads of the library count too; only the main thread makes the calls below. */
static __thread enum origin current;

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
static void count(void) { __atomic_add_fetch(&counted[current], 1, __ATOMIC_RELAXED); }
void *malloc(size_t bytes) { return count(), __libc_malloc(bytes); }
void *calloc(size_t items, size_t bytes) { return count(), __libc_calloc(items, bytes); }
void *realloc(void *old, size_t bytes) { return count(), __libc_realloc(old, bytes); }
void *memalign(size_t to, size_t bytes) { return count(), __libc_memalign(to, bytes); }
void *aligned_alloc(size_t to, size_t bytes) { return memalign(to, bytes); }
int posix_memalign(void **into, size_t to, size_t bytes) { return (*into = memalign(to, bytes)) ? 0 : 12; }

static void commit(void) {
    for (int n = 0; n < ORIGINS; n++) in_region[n] += counted[n] - before[n], before[n] = counted[n];
}

static void enter(void) {
    if (!region) {
        for (int n = 0; n < ORIGINS; n++) before[n] = counted[n];
        in_region[ORIGINS]++;
        region = 1;
    }
    commit();
}

__attribute__((constructor)) static void begin(void) {
    char name[4096];
    const char *directory = getenv("BEFF_ALLOCATIONS");
    if (!directory) return;
    snprintf(name, sizeof name, "%s/%d", directory, (int)getpid());
    int file = open(name, O_CREAT | O_RDWR, 0666);
    if (file < 0 || ftruncate(file, sizeof nowhere)) abort();
    in_region = mmap(0, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (in_region == MAP_FAILED) abort();
    close(file);
}

#define PLACES long a, long b, long c, long d, long e, long f, long g, long h
#define ALL a, b, c, d, e, f, g, h
typedef long any(PLACES);

/* What is called by a function below is part of it. */
#define CALL(function, origin, at_entry, at_exit)                                                                           \
    long counted_##function(PLACES) __asm__(#function); /* its header, if any, declares other types */                      \
    long counted_##function(PLACES) {                                                                                       \
        static any *real;                                                                                                   \
        if (!real) real = (any *)dlsym(RTLD_NEXT, #function);                                                               \
        if (current != PROGRAM) return real(ALL);                                                                           \
        at_entry;                                                                                                           \
        current = origin;                                                                                                   \
        long result = real(ALL);                                                                                            \
        current = PROGRAM;                                                                                                  \
        at_exit;                                                                                                            \
        return result;                                                                                                      \
    }
#define MOVES(function, origin) CALL(function, origin, enter(), commit())
#define SYNCS(function, origin) CALL(function, origin, if (region) commit(), region = 0)
#define ENDS(function) CALL(function, REDUCTION, region = 0, )
CALL(MPI_Start, REDUCTION, persistent = 1; enter(), commit())
CALL(MPI_Test, REDUCTION, , )
/* Ends the region, unless it is what starts a reduction because the library has no persistent ones. */
CALL(MPI_Iallreduce, REDUCTION, if (region && !persistent) commit(), region = region && !persistent; if (region) commit())
MOVES(MPI_File_write, FILE_CALL)
MOVES(MPI_File_write_all, FILE_CALL)
MOVES(MPI_File_write_at, FILE_CALL)
MOVES(MPI_File_write_at_all, FILE_CALL)
MOVES(MPI_File_write_shared, FILE_CALL)
MOVES(MPI_File_write_ordered, FILE_CALL)
MOVES(MPI_File_read, FILE_CALL)
MOVES(MPI_File_read_all, FILE_CALL)
MOVES(MPI_File_read_at, FILE_CALL)
MOVES(MPI_File_read_at_all, FILE_CALL)
MOVES(MPI_File_read_shared, FILE_CALL)
MOVES(MPI_File_read_ordered, FILE_CALL)
MOVES(pwrite64, SYSTEM_CALL)
MOVES(pread64, SYSTEM_CALL)
SYNCS(fsync, SYSTEM_CALL)
SYNCS(MPI_File_sync, FILE_CALL)
ENDS(MPI_Ibarrier)
ENDS(MPI_File_open)
ENDS(MPI_File_close)
