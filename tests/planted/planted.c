/* Planted time: loaded into the ranks of a test before their MPI, it gives the program a clock that stands still, except for what
 * the test says that its calls take. So every interval that the program records is known beforehand, to the step of this clock,
 * whatever else the machine does. The program is the one that users start: nothing in it knows of this.
 *
 * Only calls that come from the program itself are planted, by their return address. Libraries, MPI first of all, keep the clock
 * of the machine, and what they call among themselves is none of the program's calls.
 *
 * Each rank has a clock of its own. Waiting for another rank takes no time on it: what a rank records is what it spent itself,
 * and differs from rank to rank by as much as a test wants. A shared clock would make all ranks of a barrier equal, and "the
 * slowest rank" could be any of them.
 *
 * BEFF_PLANTED      rules, separated by blanks: FUNCTION[@RANK][#NTH]=NS[+STEP]. FUNCTION may end in `*`. Call n (from 0, of this
 *                   function and rank) takes NS + STEP * (n % 8) ns. Of several rules that fit, the last one holds. Calls
 *                   without a rule are passed on, neither timed nor told. Two words are no rules: `computing` lets the clock
 *                   go on while the program computes outside of its calls, by the processor's time, for loops that wait for
 *                   it; `cycles` plants the cycle counter too.
 * BEFF_PLANTED_LOG  directory for `rank-N.log`, one line for each call (of messages: for equal calls behind each other):
 *                   function, number of the first, calls, begin and end on the clock in ns, file (or descriptor), count
 *                   (elements or bytes of one call), return value, name of the file (open alone).
 *
 * Arguments are passed on as they came, all twelve places of them: integers and pointers travel alike on the 64-bit machines
 * MPI runs on, and a place that was not given holds something that nobody looks at. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

enum { RULES = 128 };
static const uint64_t TICK_NS = 10;                    /* what one reading of the clock takes: loops that wait for it end */
static const uint64_t BEGIN_NS = 1000ULL * 1000000000; /* any time */

static struct rule {
    char function[40];
    long rank, nth; /* -1: any */
    uint64_t ns, step;
} rules[RULES];
static int rule_count;

struct known {
    const char *name;
    long calls;
    int is_known, is_planted; /* looked up; has a rule */
    int is_message;           /* calls behind each other share a line */
};

static int active;    /* 1 in a rank of the program */
static int computing; /* the clock goes on while the program computes */
static int cycles;    /* the cycle counter is planted too */
static long rank, ranks = 1;
static uint64_t now_ns = BEGIN_NS;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;
static struct run {
    struct known *of;
    long first, calls, handle, count, result;
    uint64_t begin, end;
} run; /* of equal calls, not yet written */
static struct { uintptr_t begin, end; } program[8]; /* where the program lies in memory */
static int program_parts;

static int from_program(const void *address) {
    uintptr_t at = (uintptr_t)address;
    for (int i = 0; i < program_parts; i++)
        if (at >= program[i].begin && at < program[i].end) return 1;
    return 0;
}
#define PLANTED (active && from_program(__builtin_return_address(0)))

/* The first one is the program itself. */
static int find_program(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    for (int i = 0; i < info->dlpi_phnum && program_parts < 8; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        program[program_parts].begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        program[program_parts].end = program[program_parts].begin + info->dlpi_phdr[i].p_memsz;
        program_parts++;
    }
    return 1;
}

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "planted: no %s\n", name);
        abort();
    }
    return found;
}

static void refuse(const char *what, const char *why) {
    fprintf(stderr, "planted: %s: %s\n", what, why);
    abort();
}

static void read_rule(const char *text) {
    if (rule_count == RULES) refuse(text, "too many rules");
    struct rule *r = &rules[rule_count++];
    r->rank = r->nth = -1;
    size_t length = strcspn(text, "@#=");
    if (length >= sizeof r->function) refuse(text, "long name");
    memcpy(r->function, text, length);
    char *at = (char *)text + length;
    if (*at == '@') r->rank = strtol(at + 1, &at, 10);
    if (*at == '#') r->nth = strtol(at + 1, &at, 10);
    if (*at != '=') refuse(text, "no rule");
    r->ns = strtoull(at + 1, &at, 10);
    if (*at == '+') r->step = strtoull(at + 1, &at, 10);
    if (*at) refuse(text, "no rule");
}

static const char *first_of(const char *a, const char *b, const char *c) {
    const char *value = getenv(a);
    if (!value) value = getenv(b);
    return value ? value : getenv(c);
}

static int virtual_cycles(void);

__attribute__((constructor)) static void begin(void) {
    const char *plan = getenv("BEFF_PLANTED"), *directory = getenv("BEFF_PLANTED_LOG");
    const char *number = first_of("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK");
    const char *size = first_of("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE");
    /* The launcher and what the program starts have the same environment. */
    if (!plan || !directory || !number || strcmp(program_invocation_short_name, "beff-raw")) return;
    rank = strtol(number, 0, 10);
    if (size) ranks = strtol(size, 0, 10);
    char *copy = strdup(plan), *rest = copy;
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        if (strcmp(word, "computing") == 0) computing = 1;
        else if (strcmp(word, "cycles") == 0) cycles = 1;
        else read_rule(word);
    }
    free(copy);
    char path[4096];
    snprintf(path, sizeof path, "%s/rank-%ld.log", directory, rank);
    log_file = fopen(path, "w");
    if (!log_file) refuse(path, strerror(errno));
    dl_iterate_phdr(find_program, 0);
    cycles = cycles && virtual_cycles();
    fprintf(log_file, "cycles 0 1 0 0 0 %d 0\n", cycles);
    active = 1;
}

static void write_run(void) {
    if (run.of && log_file)
        fprintf(log_file, "%s %ld %ld %llu %llu %ld %ld %ld\n", run.of->name, run.first, run.calls,
                (unsigned long long)(run.begin - BEGIN_NS), (unsigned long long)(run.end - BEGIN_NS), run.handle, run.count,
                run.result);
    run.of = 0;
}

static void flush(void) {
    pthread_mutex_lock(&lock);
    write_run();
    if (log_file) fflush(log_file);
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void end(void) { flush(); }

static uint64_t computed_ns(void) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))next("clock_gettime");
    struct timespec time;
    real(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* What the thread has computed since then is on the clock, or nobody's. */
static __thread uint64_t computed_until;
static void computed(int counts) {
    if (!computing) return;
    uint64_t ns = computed_ns();
    if (counts && computed_until) __atomic_fetch_add(&now_ns, ns - computed_until, __ATOMIC_RELAXED);
    computed_until = ns;
}

static uint64_t read_clock(void) {
    computed(1);
    return __atomic_fetch_add(&now_ns, TICK_NS, __ATOMIC_RELAXED);
}

static int fits(const struct rule *r, const char *name) {
    return (r->rank < 0 || r->rank == rank) && fnmatch(r->function, name, 0) == 0;
}

/* Lets the time of a call pass and tells of it. */
static void plant(struct known *f, long handle, long count, long result, const char *name) {
    int saved = errno;
    computed(0);
    pthread_mutex_lock(&lock);
    if (!f->is_known) {
        f->is_known = 1;
        for (int i = 0; i < rule_count; i++) f->is_planted |= fits(&rules[i], f->name);
    }
    if (f->is_planted) {
        long n = f->calls++;
        const struct rule *last = 0;
        for (int i = 0; i < rule_count; i++)
            if (fits(&rules[i], f->name) && (rules[i].nth < 0 || rules[i].nth == n)) last = &rules[i];
        uint64_t ns = last ? last->ns + last->step * (uint64_t)(n % 8) : 0;
        uint64_t from = __atomic_fetch_add(&now_ns, ns, __ATOMIC_RELAXED), to = from + ns;
        if (name || !f->is_message || run.of != f || run.handle != handle || run.count != count || run.result != result) {
            write_run();
            run = (struct run){.of = f, .first = n, .handle = handle, .count = count, .result = result, .begin = from};
        }
        run.calls++;
        run.end = to;
        if (name && log_file) {
            fprintf(log_file, "%s %ld 1 %llu %llu %ld %ld %ld %s\n", f->name, n, (unsigned long long)(from - BEGIN_NS),
                    (unsigned long long)(to - BEGIN_NS), handle, count, result, name);
            run.of = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}

#define PLACES long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l
#define ALL a, b, c, d, e, f, g, h, i, j, k, l
typedef long any(PLACES);

/* A function that is passed on: `handle` and `count` are expressions of its arguments and its `result`. */
#define CALL_AS(function, as, handle, count, message)                                                                       \
    int function(PLACES) {                                                                                                  \
        static any *real;                                                                                                   \
        static struct known of = {.name = #as, .is_message = message};                                                      \
        if (!real) real = (any *)next(#function);                                                                           \
        int planted = PLANTED;                                                                                              \
        long file = planted ? (long)(handle) : 0;                                                                           \
        if (planted) computed(1);                                                                                           \
        long result = (int)real(ALL);                                                                                       \
        if (planted) plant(&of, file, (long)(int)(count), result, 0);                                                       \
        return (int)result;                                                                                                 \
    }

#define CALL_OF(function, handle, count, message) CALL_AS(function, function, handle, count, message)
#define CALL(function, handle, count) CALL_OF(function, handle, count, 0)

/* Files of MPI. */
int MPI_File_open(PLACES) {
    static any *real;
    static struct known of = {.name = "MPI_File_open"};
    if (!real) real = (any *)next("MPI_File_open");
    int planted = PLANTED;
    if (planted) computed(1);
    long result = (int)real(ALL);
    if (planted) plant(&of, result ? 0 : *(long *)e, c, result, (const char *)b);
    return (int)result;
}
CALL(MPI_File_close, *(long *)a, 0)
CALL(MPI_File_set_view, a, b)
CALL(MPI_File_sync, a, 0)
CALL(MPI_File_get_size, a, 0)
CALL(MPI_File_write, a, c)
CALL(MPI_File_write_all, a, c)
CALL(MPI_File_write_at, a, d)
CALL(MPI_File_write_at_all, a, d)
CALL(MPI_File_write_shared, a, c)
CALL(MPI_File_write_ordered, a, c)
CALL(MPI_File_read, a, c)
CALL(MPI_File_read_all, a, c)
CALL(MPI_File_read_at, a, d)
CALL(MPI_File_read_at_all, a, d)
CALL(MPI_File_read_shared, a, c)
CALL(MPI_File_read_ordered, a, c)
CALL(MPI_File_iwrite, a, c)
CALL(MPI_File_iwrite_all, a, c)
CALL(MPI_File_iwrite_at, a, d)
CALL(MPI_File_iwrite_at_all, a, d)
CALL(MPI_File_iwrite_shared, a, c)
CALL(MPI_File_iread, a, c)
CALL(MPI_File_iread_all, a, c)
CALL(MPI_File_iread_at, a, d)
CALL(MPI_File_iread_at_all, a, d)
CALL(MPI_File_iread_shared, a, c)
CALL(MPI_File_write_all_begin, a, c)
CALL(MPI_File_write_all_end, a, 0)
CALL(MPI_File_write_at_all_begin, a, d)
CALL(MPI_File_write_at_all_end, a, 0)
CALL(MPI_File_write_ordered_begin, a, c)
CALL(MPI_File_write_ordered_end, a, 0)
CALL(MPI_File_read_all_begin, a, c)
CALL(MPI_File_read_all_end, a, 0)
CALL(MPI_File_read_at_all_begin, a, d)
CALL(MPI_File_read_at_all_end, a, 0)
CALL(MPI_File_read_ordered_begin, a, c)
CALL(MPI_File_read_ordered_end, a, 0)

/* Ranks that agree. */
CALL(MPI_Barrier, 0, 0)
/* Their time is that of the beginning: asking whether they are complete takes none, however often. */
CALL(MPI_Ibarrier, 0, 0)
CALL(MPI_Iallreduce, 0, 0)
CALL_AS(MPI_Start, MPI_Iallreduce, 0, 0, 0) /* a persistent one */
CALL(MPI_Bcast, 0, 0)

/* Messages. Requests carry no length: MPI_Waitall tells that of the last send begun. */
static long begun_count;
static long longest(const int *counts) {
    int most = 0;
    for (long r = 0; r < ranks; r++)
        if (counts[r] > most) most = counts[r];
    return most;
}
CALL_OF(MPI_Sendrecv, 0, b, 1)
CALL_OF(MPI_Send, 0, b, 1)
CALL_OF(MPI_Recv, 0, b, 1)
CALL(MPI_Isend, (begun_count = (int)b, 0), b)
CALL(MPI_Irecv, 0, b)
CALL_OF(MPI_Alltoallv, 0, longest((const int *)b), 1)
CALL_OF(MPI_Waitall, 0, begun_count, 1)
CALL(MPI_Wait, 0, 0)

int MPI_Finalize(void) {
    flush();
    return ((int (*)(void))next("MPI_Finalize"))();
}

/* Files of the kernel. */
int openat(int directory, const char *path, int flags, unsigned mode) {
    static int (*real)(int, const char *, int, unsigned);
    static struct known of = {.name = "openat"};
    if (!real) real = (int (*)(int, const char *, int, unsigned))next("openat");
    int planted = PLANTED, fd = real(directory, path, flags, mode);
    if (!planted) return fd;
    /* The program names a file in a directory that it holds. */
    char link[64], name[8192];
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t len = readlink(link, name, sizeof name / 2);
    if (len < 0) len = 0;
    snprintf(name + len, sizeof name - (size_t)len, "/%s", path);
    plant(&of, fd, flags, fd < 0, name);
    return fd;
}
#define MOVES(function, CONST)                                                                                                    \
    ssize_t function(int fd, CONST void *memory, size_t bytes, off64_t offset) {                                                 \
        static ssize_t (*real)(int, CONST void *, size_t, off64_t);                                                              \
        static struct known of = {.name = #function};                                                                    \
        if (!real) real = (ssize_t (*)(int, CONST void *, size_t, off64_t))next(#function);                                      \
        int planted = PLANTED;                                                                                              \
        ssize_t moved = real(fd, memory, bytes, offset);                                                                       \
        if (planted) plant(&of, fd, (long)bytes, moved < 0, 0);                                                             \
        return moved;                                                                                                       \
    }
MOVES(pwrite64, const)
MOVES(pread64, )
#define ENDS(function)                                                                                                      \
    int function(int fd) {                                                                                                  \
        static int (*real)(int);                                                                                            \
        static struct known of = {.name = #function};                                                                    \
        if (!real) real = (int (*)(int))next(#function);                                                                    \
        int planted = PLANTED, result = real(fd);                                                                           \
        if (planted) plant(&of, fd, 0, result, 0);                                                                          \
        return result;                                                                                                      \
    }
ENDS(fsync)
ENDS(close)
#define RESERVES(function)                                                                                                  \
    int function(int fd, int mode, off64_t begin, off64_t bytes) {                                                          \
        static int (*real)(int, int, off64_t, off64_t);                                                                     \
        static struct known of = {.name = #function};                                                                       \
        if (!real) real = (int (*)(int, int, off64_t, off64_t))next(#function);                                             \
        int planted = PLANTED, result = real(fd, mode, begin, bytes);                                                       \
        if (planted) plant(&of, fd, mode, result, 0);                                                                       \
        return result;                                                                                                      \
    }
RESERVES(fallocate)
RESERVES(fallocate64)

/* The clock. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (clock == CLOCK_MONOTONIC && PLANTED) {
        uint64_t ns = read_clock();
        time->tv_sec = (time_t)(ns / 1000000000);
        time->tv_nsec = (long)(ns % 1000000000);
        return 0;
    }
    if (!real) real = (int (*)(clockid_t, struct timespec *))next("clock_gettime");
    return real(clock, time);
}

double MPI_Wtime(void) {
    static double (*real)(void);
    if (PLANTED) return (double)read_clock() * 1e-9;
    if (!real) real = (double (*)(void))next("MPI_Wtime");
    return real();
}

/* Who sleeps waits for others or for the kernel. It also takes its time on the clock, so that who waits by the clock ends. */
static void slept(const struct timespec *time) {
    __atomic_fetch_add(&now_ns, (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec, __ATOMIC_RELAXED);
}
int nanosleep(const struct timespec *time, struct timespec *left) {
    static int (*real)(const struct timespec *, struct timespec *);
    if (!real) real = (int (*)(const struct timespec *, struct timespec *))next("nanosleep");
    if (PLANTED) slept(time);
    return real(time, left);
}
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    static int (*real)(clockid_t, int, const struct timespec *, struct timespec *);
    if (!real) real = (int (*)(clockid_t, int, const struct timespec *, struct timespec *))next("clock_nanosleep");
    if (PLANTED && !(flags & TIMER_ABSTIME)) slept(time);
    return real(clock, flags, time, left);
}

/* The cycle counter, which the program reads for the laps of `imb`. Reading it is forbidden, and the fault answered: the program
 * gets its clock in ns, everybody else (MPI, the kernel's own clock) the counter. Not for calls that do not block: threads that C
 * libraries make for those have this signal blocked. */
#ifdef __x86_64__
static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);

static void cycles_read(int signal, siginfo_t *info, void *context) {
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)registers[REG_RIP];
    int plain = at[0] == 0x0f && at[1] == 0x31, with_core = at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xf9;
    if (!plain && !with_core) { /* a fault like any other */
        struct sigaction usual = {.sa_handler = SIG_DFL};
        real_sigaction(signal, &usual, 0);
        return;
    }
    uint64_t value;
    unsigned core = 0;
    if (active && from_program(at)) {
        value = read_clock();
    } else {
        prctl(PR_SET_TSC, PR_TSC_ENABLE);
        value = __rdtscp(&core);
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    }
    registers[REG_RAX] = (greg_t)(value & 0xffffffff);
    registers[REG_RDX] = (greg_t)(value >> 32);
    if (with_core) registers[REG_RCX] = core;
    registers[REG_RIP] += plain ? 2 : 3;
}

static int virtual_cycles(void) {
    real_sigaction = (int (*)(int, const struct sigaction *, struct sigaction *))next("sigaction");
    struct sigaction answer = {.sa_sigaction = cycles_read, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    real_sigaction(SIGSEGV, &answer, 0);
    return prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0;
}

/* Nobody takes the answer away. */
int sigaction(int signal, const struct sigaction *wanted, struct sigaction *old) {
    if (!real_sigaction) real_sigaction = (int (*)(int, const struct sigaction *, struct sigaction *))next("sigaction");
    return real_sigaction(signal, cycles && signal == SIGSEGV ? 0 : wanted, old);
}
#else
static int virtual_cycles(void) { return 0; }
#endif
