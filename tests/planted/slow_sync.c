/* Syncs that take 30 ms, loaded into the ranks of a test: how many there were is seen in their time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

static void slow(void)
{
    struct timespec pause = {0, 30 * 1000 * 1000};
    nanosleep(&pause, 0);
}

#define ORIGINAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fsync(int fd)
{
    slow();
    return ORIGINAL(fsync)(fd);
}

int fdatasync(int fd)
{
    slow();
    return ORIGINAL(fdatasync)(fd);
}
