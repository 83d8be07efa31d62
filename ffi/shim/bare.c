/* The calls of two loops of b_eff with nothing around them, as a C programmer writes them: one buffer, one message after the
 * other. What beff-raw's own loops cost beside these is measured in the same process, in turns. Seconds, or -1 if a call
 * failed: a loop of failures must not pass for a fast one. MPI_SUCCESS is 0. */
#include "shim.h"

double beff_bare_ping_pong(const char *out, char *in, int bytes, long iterations, int begins, int peer, MPI_Comm comm)
{
    int failed = 0;
    double begin = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        if (begins) {
            failed |= MPI_Send(out, bytes, MPI_BYTE, peer, 0, comm);
            failed |= MPI_Recv(in, bytes, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
        } else {
            failed |= MPI_Recv(in, bytes, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
            failed |= MPI_Send(out, bytes, MPI_BYTE, peer, 0, comm);
        }
    }
    double seconds = MPI_Wtime() - begin;
    return failed ? -1.0 : seconds;
}

double beff_bare_sendrecv(const char *out, char *in, int bytes, long iterations, int left, int right, MPI_Comm comm)
{
    int failed = 0;
    double begin = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        failed |= MPI_Sendrecv(out, bytes, MPI_BYTE, left, 0, in, bytes, MPI_BYTE, right, 0, comm, MPI_STATUS_IGNORE);
        if (left != right)
            failed |= MPI_Sendrecv(out, bytes, MPI_BYTE, right, 0, in, bytes, MPI_BYTE, left, 0, comm, MPI_STATUS_IGNORE);
    }
    double seconds = MPI_Wtime() - begin;
    return failed ? -1.0 : seconds;
}
