/* MPI_File_write_at and MPI_File_read_at that return at once with a full status. */
#include <mpi.h>

static int moved(int count, MPI_Datatype datatype, MPI_Status *status) {
    return MPI_Status_set_elements(status, datatype, count);
}

int MPI_File_write_at(MPI_File file, MPI_Offset offset, const void *data, int count, MPI_Datatype datatype, MPI_Status *status) {
    (void)file, (void)offset, (void)data;
    return moved(count, datatype, status);
}

int MPI_File_read_at(MPI_File file, MPI_Offset offset, void *data, int count, MPI_Datatype datatype, MPI_Status *status) {
    (void)file, (void)offset, (void)data;
    return moved(count, datatype, status);
}
