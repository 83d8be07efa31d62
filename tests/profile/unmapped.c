/* Where files cannot be mapped: threads that have ended, and one that has not, when MPI does. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Found before that of the C library. */
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    if ((flags & MAP_SHARED) && fd >= 0 && length == 1 << 16) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    return mmap(at, length, protection, flags, fd, offset);
}

static MPI_File file;
static long calls;
static pthread_barrier_t done, over;

static void *writes(void *which) {
    long number = (long)which;
    for (long i = 0; i < calls; i++) MPI_File_write_at(file, number * calls + i, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
    if (number == 3) {
        pthread_barrier_wait(&done);
        pthread_barrier_wait(&over);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    char path[4096];
    pthread_t threads[4];
    calls = atol(argv[3]);
    pthread_barrier_init(&done, NULL, 2);
    pthread_barrier_init(&over, NULL, 2);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    snprintf(path, sizeof path, "%s/file", argv[2]);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    for (long i = 1; i < 4; i++) pthread_create(threads + i, NULL, writes, (void *)i);
    for (long i = 1; i < 3; i++) pthread_join(threads[i], NULL);
    pthread_barrier_wait(&done);
    writes((void *)0);
    MPI_File_close(&file);
    MPI_Finalize();
    pthread_barrier_wait(&over);
    pthread_join(threads[3], NULL);
    puts("unmapped");
    return 0;
}
