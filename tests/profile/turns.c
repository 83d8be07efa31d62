/* Each rank reads what the one before it wrote, again and again at the same place: turns.c FILE barrier|message ROUNDS.
 * A replay that lets a read overtake its write, or a write overtake the read before it, finds other bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096 };

static int rank, size;

/* Everything before it on every rank is done (barrier), or what the rank before has done (message around the ring). */
static void pass(const char *how) {
    if (strcmp(how, "barrier") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    int token = 0;
    MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 7, (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    const char *how = argv[2];
    const int rounds = atoi(argv[3]);
    char out[BYTES], in[BYTES];
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    int wrong = 0;
    for (int round = 0; round < rounds; round++) {
        memset(out, 'a' + (round * size + rank) % 26, BYTES);
        MPI_File_write_at(file, (MPI_Offset)rank * BYTES, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        pass(how);
        const int before = (rank + size - 1) % size;
        MPI_Status status;
        int count;
        MPI_File_read_at(file, (MPI_Offset)before * BYTES, in, BYTES, MPI_BYTE, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        memset(out, 'a' + (round * size + before) % 26, BYTES);
        wrong += count != BYTES || memcmp(in, out, BYTES) != 0;
        /* The writer must not begin its next round before this read: with messages, two passes go all the way to it. */
        for (int step = 1; step < (strcmp(how, "message") == 0 ? size : 2); step++) pass(how);
    }
    MPI_File_close(&file);
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, %d rounds, %d wrong\n", size, rounds, all);
    MPI_Finalize();
    return rank == 0 && all != 0 ? 3 : 0;
}
