/* A file system that accepts fallocate and makes the file longer, but no blocks for it, and that counts one block for an empty file, as ZFS
 * does: stands before the C library (LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

static int longer(int fd, int mode, off_t end)
{
    struct stat now;
    if (fstat(fd, &now))
        return -1;
    return now.st_size < end && !(mode & FALLOC_FL_KEEP_SIZE) ? ftruncate(fd, end) : 0;
}

int fallocate(int fd, int mode, off_t from, off_t bytes)
{
    return longer(fd, mode, from + bytes);
}

int fallocate64(int fd, int mode, off64_t from, off64_t bytes)
{
    return longer(fd, mode, from + bytes);
}

int statx(int fd, const char *path, int flags, unsigned mask, struct statx *told)
{
    int (*real)(int, const char *, int, unsigned, struct statx *) = dlsym(RTLD_NEXT, "statx");
    int failed = real(fd, path, flags, mask, told);
    if (!failed)
        told->stx_blocks += 1;
    return failed;
}
