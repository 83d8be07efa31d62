/* One failure, once: loaded into the ranks of a test, it lets one call of the kernel fail with EIO, where the test says so.
 *
 * BEFF_FAIL = CALL:NAME:NTH  CALL is `write` or `read` (pwrite64 and pwritev2, pread64 and preadv2), NAME a part of the name of the file,
 * NTH the number of the call that fails among those of this process that fit, from 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long seen;

static int fails(const char *call, int fd)
{
    const char *rule = getenv("BEFF_FAIL");
    char what[16], name[64], link[64], path[4096];
    long nth;
    if (!rule || sscanf(rule, "%15[^:]:%63[^:]:%ld", what, name, &nth) != 3 || strcmp(what, call))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    const char *base = strrchr(path, '/');
    if (!strstr(base ? base : path, name) || atomic_fetch_add(&seen, 1) != nth)
        return 0;
    errno = EIO;
    return 1;
}

#define ORIGINAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void *memory, size_t bytes, off64_t offset)
{
    return fails("write", fd) ? -1 : ORIGINAL(pwrite64)(fd, memory, bytes, offset);
}

ssize_t pread64(int fd, void *memory, size_t bytes, off64_t offset)
{
    return fails("read", fd) ? -1 : ORIGINAL(pread64)(fd, memory, bytes, offset);
}

ssize_t pwritev2(int fd, const struct iovec *memory, int count, off_t offset, int flags)
{
    return fails("write", fd) ? -1 : ORIGINAL(pwritev2)(fd, memory, count, offset, flags);
}

ssize_t preadv2(int fd, const struct iovec *memory, int count, off_t offset, int flags)
{
    return fails("read", fd) ? -1 : ORIGINAL(preadv2)(fd, memory, count, offset, flags);
}
