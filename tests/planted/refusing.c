/* Stands before the C library and refuses system calls, as the seccomp filter of a container does. REFUSED names them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static int refused(const char *name) {
    const char *list = getenv("REFUSED");
    return list && strstr(list, name);
}

int memfd_create(const char *name, unsigned flags) {
    static int (*next)(const char *, unsigned);
    if (!next) next = (int (*)(const char *, unsigned))dlsym(RTLD_NEXT, "memfd_create");
    if (refused("memfd_create") && strcmp(name, "beff-ring") == 0) {
        errno = EPERM;
        return -1;
    }
    return next(name, flags);
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *cpus) {
    static int (*next)(pid_t, size_t, const cpu_set_t *);
    if (!next) next = (int (*)(pid_t, size_t, const cpu_set_t *))dlsym(RTLD_NEXT, "sched_setaffinity");
    if (refused("sched_setaffinity")) {
        errno = EPERM;
        return -1;
    }
    return next(pid, size, cpus);
}

long syscall(long number, ...) {
    static long (*next)(long, ...);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (!next) next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_io_uring_setup && refused("io_uring_setup")) {
        errno = EPERM;
        return -1;
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
