/* A strided application, as PRIOmark has one: strided.c FILE BLOCK_BYTES BLOCKS ROUNDS.
 * Every rank sees its blocks of one file through a view, writes them independently and collectively, syncs, and reads them back. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
    const int block = atoi(argv[2]), blocks = atoi(argv[3]), rounds = atoi(argv[4]);
    char *memory = malloc((size_t)block);
    memset(memory, 'a' + rank, (size_t)block);
    MPI_Datatype view;
    MPI_Type_vector(1, block, block, MPI_BYTE, &view);
    MPI_Datatype strided;
    MPI_Type_create_resized(view, 0, (MPI_Aint)block * size, &strided);
    MPI_Type_commit(&strided);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, (MPI_Offset)rank * block, MPI_BYTE, strided, "native", MPI_INFO_NULL);
    for (int round = 0; round < rounds; round++) {
        MPI_File_seek(file, 0, MPI_SEEK_SET);
        for (int n = 0; n < blocks; n++) MPI_File_write(file, memory, block, MPI_BYTE, MPI_STATUS_IGNORE);
        for (int n = 0; n < blocks; n++) MPI_File_write_all(file, memory, block, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_sync(file);
        MPI_File_seek(file, 0, MPI_SEEK_SET);
        for (int n = 0; n < blocks; n++) MPI_File_read(file, memory, block, MPI_BYTE, MPI_STATUS_IGNORE);
        for (int n = 0; n < blocks; n++) MPI_File_read_all(file, memory, block, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Type_free(&strided);
    MPI_Type_free(&view);
    free(memory);
    MPI_Finalize();
    return 0;
}
