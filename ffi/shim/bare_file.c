/* Bare loops of MPI-IO, as a C programmer writes them: n transfers of `bytes` each with the windows of one buffer in turn, at
 * increasing explicit offsets or at the file pointer. Returns seconds, or -1 if a call failed or the last transfer was short, so
 * that failures do not appear fast. MPI_SUCCESS is 0. */
#include "shim.h"

/* Loop of one call; for transfer i its offset, and its memory with the arguments that follow in every call. */
#define LOOP(call)                                                                                                          \
    for (long i = 0; i < loop.n; i++)                                                                                      \
        failed |= call
#define PLACE (loop.offset + i * loop.stride)
#define WINDOW (buffer + (i % loop.windows) * loop.bytes), loop.bytes, MPI_BYTE, &status

/* Checks the last transfer, after the clock has been read. */
static double result(int failed, long n, int bytes, const MPI_Status *last, double seconds)
{
    int moved = bytes;
    if (!failed && n > 0)
        failed |= MPI_Get_count(last, MPI_BYTE, &moved);
    return failed || moved != bytes ? -1.0 : seconds;
}

double beff_bare_file_write(MPI_File file, const char *buffer, struct beff_bare_loop loop)
{
    int failed = 0;
    MPI_Status status;
    double begin = MPI_Wtime();
    if (loop.explicit_offsets && loop.collective)
        LOOP(MPI_File_write_at_all(file, PLACE, WINDOW));
    else if (loop.explicit_offsets)
        LOOP(MPI_File_write_at(file, PLACE, WINDOW));
    else if (loop.collective)
        LOOP(MPI_File_write_all(file, WINDOW));
    else
        LOOP(MPI_File_write(file, WINDOW));
    return result(failed, loop.n, loop.bytes, &status, MPI_Wtime() - begin);
}

double beff_bare_file_read(MPI_File file, char *buffer, struct beff_bare_loop loop)
{
    int failed = 0;
    MPI_Status status;
    double begin = MPI_Wtime();
    if (loop.explicit_offsets && loop.collective)
        LOOP(MPI_File_read_at_all(file, PLACE, WINDOW));
    else if (loop.explicit_offsets)
        LOOP(MPI_File_read_at(file, PLACE, WINDOW));
    else if (loop.collective)
        LOOP(MPI_File_read_all(file, WINDOW));
    else
        LOOP(MPI_File_read(file, WINDOW));
    return result(failed, loop.n, loop.bytes, &status, MPI_Wtime() - begin);
}

int beff_bare_file_view(MPI_File file, MPI_Offset displacement, int part, MPI_Aint extent)
{
    if (part == 0 || part == extent)
        return MPI_File_set_view(file, displacement, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Datatype block, tile;
    int error = MPI_Type_contiguous(part, MPI_BYTE, &block);
    if (error)
        return error;
    error = MPI_Type_create_resized(block, 0, extent, &tile);
    MPI_Type_free(&block);
    if (error)
        return error;
    error = MPI_Type_commit(&tile);
    if (!error)
        error = MPI_File_set_view(file, displacement, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    MPI_Type_free(&tile);
    return error;
}
