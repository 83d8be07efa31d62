/* Parallel HDF5: every rank writes rows of a dataset, collectively and alone, and reads those of the rank behind it: hdf5 FILE */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 64, COLUMNS = 1000 };

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    hsize_t all[2] = {(hsize_t)ROWS * size, COLUMNS}, part[2] = {ROWS, COLUMNS};
    hid_t space = H5Screate_simple(2, all, NULL), memory = H5Screate_simple(2, part, NULL);
    hid_t transfer = H5Pcreate(H5P_DATASET_XFER), create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(create, 0); /* or no two files are alike */
    static double out[ROWS][COLUMNS], in[ROWS][COLUMNS];
    int wrong = 0;
    for (int way = 0; way < 2; way++) {
        H5Pset_dxpl_mpio(transfer, way == 0 ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
        hid_t data = H5Dcreate2(file, way == 0 ? "together" : "alone", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, create, H5P_DEFAULT);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++) out[r][c] = rank * 1e6 + r * 1e3 + c;
        hsize_t start[2] = {(hsize_t)ROWS * rank, 0};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
        H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, transfer, out);
        H5Fflush(file, H5F_SCOPE_GLOBAL);
        MPI_Barrier(MPI_COMM_WORLD);
        start[0] = (hsize_t)ROWS * ((rank + 1) % size);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
        H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, transfer, in);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++) wrong += in[r][c] != ((rank + 1) % size) * 1e6 + r * 1e3 + c;
        H5Dclose(data);
    }
    H5Pclose(transfer);
    H5Pclose(create);
    H5Sclose(space);
    H5Sclose(memory);
    H5Pclose(access);
    H5Fclose(file);
    printf("rank %d: %d wrong\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
