/* Writes a file, removes it without MPI-IO, writes another one, and finds the first one gone: gone.c FIRST SECOND. */
#include <mpi.h>
#include <unistd.h>

static char data[100000];

static void fill(const char *name) {
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    fill(argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && unlink(argv[1])) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    fill(argv[2]);
    MPI_File file;
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    if (!MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file)) MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Finalize();
    return 0;
}
