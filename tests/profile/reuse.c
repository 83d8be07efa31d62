/* One buffer for everything: each rank writes blocks of several sizes from it and reads them back into it, and then those of the rank
 * before it: reuse.c FILE ROUNDS. A write under way shares the buffer with one that is made meanwhile. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

static const int sizes[] = {1, 4096, 100000, MOST};
static unsigned char buffer[MOST];
static int wrong;

static void fill(int round, int rank, int bytes) {
    for (int i = 0; i < bytes; i++) buffer[i] = (unsigned char)(round * 31 + rank * 7 + i % 251);
}

static void look(MPI_File file, MPI_Offset offset, int round, int rank, int bytes) {
    MPI_Status status;
    int count;
    memset(buffer, 0, (size_t)bytes);
    MPI_File_read_at(file, offset, buffer, bytes, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    wrong += count != bytes;
    for (int i = 0; i < bytes; i++) wrong += buffer[i] != (unsigned char)(round * 31 + rank * 7 + i % 251);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    const int rounds = atoi(argv[2]);
    const MPI_Offset own = (MPI_Offset)rank * rounds * 2 * MOST, before = (rank + size - 1) % size;
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int round = 0; round < rounds; round++) {
        const int bytes = sizes[round % 4];
        const MPI_Offset at = own + (MPI_Offset)round * 2 * MOST;
        MPI_Request request;
        fill(round, rank, bytes);
        MPI_File_write_at(file, at, buffer, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        look(file, at, round, rank, bytes);
        MPI_File_iwrite_at(file, at + MOST, buffer, bytes, MPI_BYTE, &request);
        MPI_File_write_at(file, at, buffer, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        look(file, at + MOST, round, rank, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++) {
        const MPI_Offset at = before * rounds * 2 * MOST + (MPI_Offset)round * 2 * MOST;
        look(file, at, round, (int)before, sizes[round % 4]);
    }
    MPI_File_close(&file);
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, %d rounds, %d wrong\n", size, rounds, all);
    MPI_Finalize();
    return rank == 0 && all != 0 ? 3 : 0;
}
