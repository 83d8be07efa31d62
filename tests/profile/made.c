/* Reads a file that was there, and one that it makes by itself, without MPI-IO, while it runs: made.c OLD NEW. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 300000 };

static char data[BYTES];

static int wrong(const char *name, char expected) {
    MPI_File file;
    MPI_Status status;
    int count = 0, differ = 0;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_read_at_all(file, 0, data, BYTES, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    for (int n = 0; n < BYTES; n++) differ += data[n] != expected;
    MPI_File_close(&file);
    return count == BYTES ? differ : -1;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    int found = wrong(argv[1], 'o');
    if (rank == 0) {
        FILE *file = fopen(argv[2], "w");
        memset(data, 'n', BYTES);
        if (!file || fwrite(data, 1, BYTES, file) != BYTES || fclose(file)) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    found += wrong(argv[2], 'n');
    if (rank == 0) printf("%d wrong\n", found);
    MPI_Finalize();
    return 0;
}
