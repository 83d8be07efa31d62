/* PnetCDF: a variable written collectively in blocks of rows, another one with requests; read back: pnetcdf FILE */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

enum { ROWS = 32, COLUMNS = 500 };

int main(int argc, char **argv) {
    int rank, size, file, dimensions[2], together, later, request, status, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file);
    ncmpi_def_dim(file, "row", (MPI_Offset)ROWS * size, &dimensions[0]);
    ncmpi_def_dim(file, "column", COLUMNS, &dimensions[1]);
    ncmpi_def_var(file, "together", NC_FLOAT, 2, dimensions, &together);
    ncmpi_def_var(file, "later", NC_FLOAT, 2, dimensions, &later);
    ncmpi_enddef(file);
    static float out[ROWS * COLUMNS], in[ROWS * COLUMNS];
    for (int n = 0; n < ROWS * COLUMNS; n++) out[n] = (float)(rank * 100000 + n);
    MPI_Offset start[2] = {(MPI_Offset)ROWS * rank, 0}, count[2] = {ROWS, COLUMNS};
    ncmpi_put_vara_float_all(file, together, start, count, out);
    ncmpi_iput_vara_float(file, later, start, count, out, &request);
    ncmpi_wait_all(file, 1, &request, &status);
    ncmpi_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    start[0] = (MPI_Offset)ROWS * ((rank + 1) % size);
    ncmpi_get_vara_float_all(file, later, start, count, in);
    for (int n = 0; n < ROWS * COLUMNS; n++) wrong += in[n] != (float)(((rank + 1) % size) * 100000 + n);
    ncmpi_close(file);
    printf("rank %d: %d wrong\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
