/* Storage that is slow in one way: stands before the C library (LD_PRELOAD).
 *
 * BEFF_SLOW = "WAY MS": MS milliseconds for each MiB.
 *   direct  every write past the page cache takes so much longer
 *   sync    every fsync or fdatasync takes so much longer for what was written through the page cache since the last one: such writes look fast */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FILES 4096

/* By descriptor: bytes that no fsync has seen. */
static atomic_llong unsynced[FILES];

static long ms_for(const char *way)
{
    const char *rule = getenv("BEFF_SLOW");
    char wanted[16];
    long ms;
    return rule && sscanf(rule, "%15s %ld", wanted, &ms) == 2 && !strcmp(wanted, way) ? ms : 0;
}

static void wait_for(long long bytes, long ms)
{
    long long ns = (bytes * ms * 1000000) >> 20;
    struct timespec pause = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    if (ns > 0)
        nanosleep(&pause, NULL);
}

static ssize_t written(int fd, ssize_t bytes)
{
    if (bytes > 0 && fcntl(fd, F_GETFL) & O_DIRECT)
        wait_for(bytes, ms_for("direct"));
    else if (bytes > 0 && fd >= 0 && fd < FILES)
        atomic_fetch_add(&unsynced[fd], bytes);
    return bytes;
}

#define ORIGINAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void *memory, size_t bytes, off64_t offset)
{
    return written(fd, ORIGINAL(pwrite64)(fd, memory, bytes, offset));
}

ssize_t pwrite(int fd, const void *memory, size_t bytes, off_t offset)
{
    return written(fd, ORIGINAL(pwrite)(fd, memory, bytes, offset));
}

ssize_t pwritev2(int fd, const struct iovec *memory, int count, off_t offset, int flags)
{
    return written(fd, ORIGINAL(pwritev2)(fd, memory, count, offset, flags));
}

static void slow_sync(int fd)
{
    if (fd >= 0 && fd < FILES)
        wait_for(atomic_exchange(&unsynced[fd], 0), ms_for("sync"));
}

int fsync(int fd)
{
    slow_sync(fd);
    return ORIGINAL(fsync)(fd);
}

int fdatasync(int fd)
{
    slow_sync(fd);
    return ORIGINAL(fdatasync)(fd);
}
