/* A file system that accepts fallocate and makes the file longer, but keeps no blocks for it, as one that copies what it writes: stands
 * before the C library (LD_PRELOAD). */
#define _GNU_SOURCE
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
