/* One call that moves data of a file goes wrong, in one process: stands before the C library (LD_PRELOAD).
 *
 * BEFF_FAULT = "DIRECTION WHAT NTH NAME": call number NTH (from 1) of one process on files whose path contains NAME. Calls of
 * a page or less and those past the page cache are let alone: so the program looks at samples, and at everything.
 *   DIRECTION  write or read; room: fallocate
 *   WHAT       eio       the call fails with EIO and moves nothing
 *              eintr     room: it and all that follow are interrupted
 *              enospc    room: it and all that follow find no space
 *              lose      it says that all was moved, and moves nothing
 *              flip      one bit in the middle is turned over
 *              zero      all bytes become zeros
 *              misplace  the bytes go to, or come from, 4096 bytes further on
 * BEFF_FAULT_MARK = a file that whoever makes the fault creates first, so that it happens once; it gets "PATH OFFSET LENGTH".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ, WRITE, ROOM };
typedef ssize_t (*move_fn)(int, void *, size_t, off_t);

static int wanted, nth;
static char what[16], name[256], mark[4096];
static int seen, ready;

static void read_rule(void) {
    if (ready) return;
    ready = 1;
    const char *rule = getenv("BEFF_FAULT"), *path = getenv("BEFF_FAULT_MARK");
    char direction[16];
    if (!rule || !path || sscanf(rule, "%15s %15s %d %255s", direction, what, &nth, name) != 4) {
        nth = 0;
        return;
    }
    wanted = strcmp(direction, "room") == 0 ? ROOM : strcmp(direction, "write") == 0 ? WRITE : READ;
    snprintf(mark, sizeof mark, "%s", path);
}

/* True once in all processes: this call is the one. */
static int is_the_one(int fd, int direction, off_t offset, size_t length) {
    char link[64], path[4096];
    read_rule();
    if (nth == 0 || direction != wanted || length <= 4096 || (fcntl(fd, F_GETFL) & O_DIRECT)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    if (!strstr(path, name)) return 0;
    if (__atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST) != nth) return 0;
    int out = open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (out < 0) return 0;
    dprintf(out, "%s %lld %zu\n", path, (long long)offset, length);
    close(out);
    return 1;
}

static void damage(char *bytes, size_t length) {
    if (strcmp(what, "flip") == 0 && length) bytes[length / 2] ^= 0x10;
    if (strcmp(what, "zero") == 0) memset(bytes, 0, length);
}

static ssize_t faulty(move_fn real, int fd, void *memory, size_t length, off_t offset, int writes) {
    if (strcmp(what, "eio") == 0) {
        errno = EIO;
        return -1;
    }
    if (strcmp(what, "lose") == 0) return (ssize_t)length;
    if (strcmp(what, "misplace") == 0) return real(fd, memory, length, offset + 4096);
    if (!writes) {
        ssize_t got = real(fd, memory, length, offset);
        if (got > 0) damage(memory, (size_t)got);
        return got;
    }
    char *copy = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
    memcpy(copy, memory, length);
    damage(copy, length);
    ssize_t done = real(fd, copy, length, offset);
    free(copy);
    return done;
}

static ssize_t move(const char *function, int fd, void *memory, size_t length, off_t offset, int writes) {
    move_fn real = (move_fn)dlsym(RTLD_NEXT, function);
    if (is_the_one(fd, writes, offset, length)) return faulty(real, fd, memory, length, offset, writes);
    return real(fd, memory, length, offset);
}

ssize_t pwrite(int fd, const void *m, size_t n, off_t o) { return move("pwrite", fd, (void *)m, n, o, 1); }
ssize_t pwrite64(int fd, const void *m, size_t n, off64_t o) { return move("pwrite64", fd, (void *)m, n, o, 1); }
ssize_t pread(int fd, void *m, size_t n, off_t o) { return move("pread", fd, m, n, o, 0); }
ssize_t pread64(int fd, void *m, size_t n, off64_t o) { return move("pread64", fd, m, n, o, 0); }

/* Pieces: only as a whole that fails or is lost. */
static ssize_t move_pieces(const char *function, int fd, const struct iovec *v, int count, off_t offset, int writes) {
    ssize_t (*real)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, function);
    size_t length = 0;
    for (int i = 0; i < count; i++) length += v[i].iov_len;
    if (!is_the_one(fd, writes, offset, length)) return real(fd, v, count, offset);
    if (strcmp(what, "lose") == 0) return (ssize_t)length;
    errno = EIO;
    return -1;
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t o) { return move_pieces("pwritev", fd, v, n, o, 1); }
ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t o) { return move_pieces("pwritev64", fd, v, n, o, 1); }
ssize_t preadv(int fd, const struct iovec *v, int n, off_t o) { return move_pieces("preadv", fd, v, n, o, 0); }
ssize_t preadv64(int fd, const struct iovec *v, int n, off64_t o) { return move_pieces("preadv64", fd, v, n, o, 0); }

int fallocate(int fd, int mode, off_t offset, off_t length) {
    static int from_now_on;
    int (*real)(int, int, off_t, off_t) = dlsym(RTLD_NEXT, "fallocate");
    if (!from_now_on && !is_the_one(fd, ROOM, offset, (size_t)length)) return real(fd, mode, offset, length);
    errno = strcmp(what, "eintr") == 0 ? EINTR : strcmp(what, "enospc") == 0 ? ENOSPC : EIO;
    from_now_on = errno != EIO;
    return -1;
}
int fallocate64(int fd, int mode, off64_t offset, off64_t length) { return fallocate(fd, mode, offset, length); }
