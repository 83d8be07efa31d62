/* LD_PRELOAD: fails, cuts short or damages calls of chosen ranks as BEFF_SHIM says (rules.h). Calls: pwrite pread write read
 * fsync open close fallocate truncate, uring_write uring_read uring_fsync. pwrite and pread are all positioned forms. Completions
 * of io_uring are seen through syscall(2), as long as a system call takes the submissions (no --sqpoll).
 * BEFF_SHIM_LOG: directory; each process that struck something leaves a file there. BEFF_SHIM_SEED: of one_in.
 *
 *   cc -O1 -shared -fPIC -o shim.so shim.c
 */
#define _GNU_SOURCE
#include "rules.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))real(#name, &real_##name))
static int ready;
static void *real(const char *name, void **known) {
    if (!*known) *known = dlsym(RTLD_NEXT, name);
    return *known;
}

static int my_rank(void) {
    const char *names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
    for (int i = 0; i < 3; i++)
        if (getenv(names[i])) return atoi(getenv(names[i]));
    return -1;
}

/* Only ranks are met: a launcher has no rank. */
static void begin(void) {
    if (ready) return;
    ready = 1;
    int rank = my_rank();
    if (rank >= 0) rules_read(getenv("BEFF_SHIM"), getenv("BEFF_SHIM_SEED"), rank);
}

static void note(const char *call, struct rule *r, const char *path, long at, long length) {
    const char *dir = getenv("BEFF_SHIM_LOG");
    if (!dir || r->done > 20) return;
    char name[4096], line[4608];
    snprintf(name, sizeof name, "%s/%d", dir, my_rank());
    int n = snprintf(line, sizeof line, "%s %d/%d at %ld length %ld of %s\n", call, r->fault, r->error, at, length, path);
    long fd = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return;
    syscall(SYS_write, fd, line, n);
    syscall(SYS_close, fd);
}

/* The rule that strikes a call on a descriptor. */
static struct rule *strike(const char *call, int fd, long at, long length) {
    char link[40], path[4096];
    begin();
    if (!rule_count || !rules_for(call)) return NULL;
    int moves = strstr(call, "write") || strstr(call, "read");
    if (moves && length == 0) return NULL; /* nothing to lose */
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || path[0] != '/' || !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6)) return NULL;
    path[n] = 0;
    struct rule *r = rules_strike(call, path);
    if (r) note(call, r, path, at, length);
    return r;
}

/* Moves one piece in the kernel's own way; at < 0: at the position of the file. */
static ssize_t plain(int write, int fd, const void *bytes, size_t length, off_t at) {
    if (at < 0) return syscall(write ? SYS_write : SYS_read, fd, bytes, length);
    return syscall(write ? SYS_pwrite64 : SYS_pread64, fd, bytes, length, at);
}

/* What a struck transfer gives. Damage is done to a copy: the memory of a writer stays as it is. */
static ssize_t struck(struct rule *r, int write, int fd, unsigned char *bytes, size_t length, off_t at) {
    if (r->fault == ERROR) return errno = r->error, -1;
    if (r->fault == NOTHING) return 0;
    if (r->fault == SHORT) return length < 2 ? 0 : plain(write, fd, bytes, length / 2, at);
    if (r->fault == STALE) {
        if (at < 0) lseek(fd, (off_t)length, SEEK_CUR);
        return (ssize_t)length;
    }
    off_t there = r->fault == MISPLACE && at >= 0 ? at + (off_t)length : at;
    if (!write) {
        ssize_t n = plain(0, fd, bytes, length, there);
        if (n > 0) rules_damage(r->fault, bytes, (size_t)n);
        return there != at ? (ssize_t)length : n;
    }
    void *copy = NULL; /* aligned: the file may be open with O_DIRECT */
    if (posix_memalign(&copy, 4096, length + 1)) return errno = ENOMEM, -1;
    memcpy(copy, bytes, length);
    rules_damage(r->fault, copy, length);
    ssize_t n = plain(1, fd, copy, length, there);
    free(copy);
    return n;
}

static ssize_t many(struct rule *r, int write, int fd, const struct iovec *v, int count, off_t at) {
    ssize_t all = 0;
    for (int i = 0; i < count; i++) {
        ssize_t n = i ? plain(write, fd, v[i].iov_base, v[i].iov_len, at < 0 ? at : at + all)
                      : struck(r, write, fd, v[i].iov_base, v[i].iov_len, at);
        if (n < 0) return all ? all : n;
        all += n;
        if ((size_t)n < v[i].iov_len) break;
    }
    return all;
}

#define MOVE(name, call, write, buffer)                                                                               \
    static void *real_##name;                                                                                         \
    ssize_t name(int fd, buffer bytes, size_t length, off_t at) {                                                     \
        struct rule *r = strike(call, fd, at, (long)length);                                                          \
        return r ? struck(r, write, fd, (unsigned char *)bytes, length, at) : REAL(name)(fd, bytes, length, at);      \
    }
MOVE(pwrite, "pwrite", 1, const void *)
MOVE(pwrite64, "pwrite", 1, const void *)
MOVE(pread, "pread", 0, void *)
MOVE(pread64, "pread", 0, void *)

#define MOVE_MANY(name, call, write, more, pass)                                                                      \
    static void *real_##name;                                                                                         \
    ssize_t name(int fd, const struct iovec *v, int count, off_t at more) {                                           \
        struct rule *r = strike(call, fd, at, count > 0 ? (long)v->iov_len : 0);                                      \
        return r ? many(r, write, fd, v, count, at) : REAL(name)(fd, v, count, at pass);                              \
    }
#define FLAGS , int flags
#define PASS , flags
MOVE_MANY(pwritev, "pwrite", 1, , )
MOVE_MANY(pwritev64, "pwrite", 1, , )
MOVE_MANY(pwritev2, "pwrite", 1, FLAGS, PASS)
MOVE_MANY(pwritev64v2, "pwrite", 1, FLAGS, PASS)
MOVE_MANY(preadv, "pread", 0, , )
MOVE_MANY(preadv64, "pread", 0, , )
MOVE_MANY(preadv2, "pread", 0, FLAGS, PASS)
MOVE_MANY(preadv64v2, "pread", 0, FLAGS, PASS)

static void *real_write, *real_read;
ssize_t write(int fd, const void *bytes, size_t length) {
    struct rule *r = strike("write", fd, -1, (long)length);
    return r ? struck(r, 1, fd, (unsigned char *)bytes, length, -1) : REAL(write)(fd, bytes, length);
}
ssize_t read(int fd, void *bytes, size_t length) {
    struct rule *r = strike("read", fd, -1, (long)length);
    return r ? struck(r, 0, fd, bytes, length, -1) : REAL(read)(fd, bytes, length);
}

/* Calls without data: an error, or a success that did nothing. */
#define CALL(name, call, params, args, at, length)                                                                    \
    static void *real_##name;                                                                                         \
    int name params {                                                                                                 \
        struct rule *r = strike(call, fd, at, length);                                                                \
        if (!r) return REAL(name) args;                                                                               \
        return r->fault == ERROR ? (errno = r->error, -1) : 0;                                                        \
    }
CALL(fsync, "fsync", (int fd), (fd), 0, 0)
CALL(fdatasync, "fsync", (int fd), (fd), 0, 0)
CALL(fallocate, "fallocate", (int fd, int mode, off_t at, off_t length), (fd, mode, at, length), at, length)
CALL(fallocate64, "fallocate", (int fd, int mode, off_t at, off_t length), (fd, mode, at, length), at, length)
CALL(ftruncate, "truncate", (int fd, off_t length), (fd, length), 0, length)
CALL(ftruncate64, "truncate", (int fd, off_t length), (fd, length), 0, length)
#define RESERVE(name)                                                                                                 \
    static void *real_##name;                                                                                         \
    int name(int fd, off_t at, off_t length) { /* gives the error itself */                                           \
        struct rule *r = strike("fallocate", fd, at, length);                                                         \
        return r ? r->error : REAL(name)(fd, at, length);                                                             \
    }
RESERVE(posix_fallocate)
RESERVE(posix_fallocate64)

static struct rule *strike_open(const char *path) {
    begin();
    struct rule *r = rule_count && path ? rules_strike("open", path) : NULL;
    if (r) note("open", r, path, 0, 0);
    return r && r->fault == ERROR ? r : NULL;
}
#define OPEN(name, params, args)                                                                                      \
    static void *real_##name;                                                                                         \
    int name params {                                                                                                 \
        va_list more;                                                                                                 \
        va_start(more, flags);                                                                                        \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;                                     \
        va_end(more);                                                                                                 \
        struct rule *r = strike_open(path);                                                                           \
        return r ? (errno = r->error, -1) : REAL(name) args;                                                          \
    }
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

#include "shim_uring.h"
