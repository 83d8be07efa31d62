/* Prints what calls cost, in ns: the least of many batches of each kind.
 * cost FILE              8 bytes at a time into FILE, a test of nothing pending, and messages to itself
 * cost FILE CALLS        CALLS writes of 8 bytes, and what memory the process had at most */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A batch of records fills four blocks of 64 KiB, so that the least one has written them. */
enum { RECORDS = 4 * 2048, PLAIN = 500 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

#define LEAST(name, batches, calls, call)                                                                                              \
    do {                                                                                                               \
        double least = 1e18;                                                                                           \
        for (int batch = 0; batch < batches; batch++) {                                                                \
            double begin = now_ns();                                                                                   \
            for (int i = 0; i < calls; i++) {                                                                          \
                call;                                                                                                  \
            }                                                                                                          \
            double took = (now_ns() - begin) / calls;                                                                  \
            if (took < least) least = took;                                                                            \
        }                                                                                                              \
        printf("%s %.1f\n", name, least);                                                                              \
    } while (0)

static void memory(long calls) {
    FILE *status = fopen("/proc/self/status", "r");
    char line[200];
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM", 5)) printf("calls %ld %s", calls, line);
    if (status) fclose(status);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_File file;
    MPI_Status status;
    char data[8] = "8 bytes";
    if (MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file)) return 1;
    if (argc > 2) {
        long calls = atol(argv[2]);
        for (long i = 0; i < calls; i++) {
            MPI_File_write_at(file, 8 * (i & 1023), data, 8, MPI_BYTE, &status);
            if (i == calls / 10) memory(i);
        }
        memory(calls);
    } else {
        MPI_Request request = MPI_REQUEST_NULL, pair[2];
        int flag;
        char in[8];
        LEAST("write_at", 50, RECORDS, MPI_File_write_at(file, 8 * (i & 1023), data, 8, MPI_BYTE, &status));
        LEAST("read_at", 50, RECORDS, MPI_File_read_at(file, 8 * (i & 1023), data, 8, MPI_BYTE, &status));
        LEAST("test", 400, PLAIN, MPI_Test(&request, &flag, &status));
        LEAST("messages", 400, PLAIN, {
            MPI_Irecv(in, 8, MPI_BYTE, 0, 0, MPI_COMM_SELF, pair);
            MPI_Isend(data, 8, MPI_BYTE, 0, 0, MPI_COMM_SELF, pair + 1);
            MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        });
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
