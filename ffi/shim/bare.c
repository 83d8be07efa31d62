/* The calls of two loops of b_eff with nothing around them, as a C programmer writes them: one buffer, one message after the
 * other. What beff-raw's own loops cost beside these is measured in the same process, in turns. */
#include "shim.h"

double beff_bare_ping_pong(const char *out, char *in, int bytes, long iterations, int begins, int peer, MPI_Comm comm)
{
    double begin = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        if (begins) {
            MPI_Send(out, bytes, MPI_BYTE, peer, 0, comm);
            MPI_Recv(in, bytes, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, peer, 0, comm);
        }
    }
    return MPI_Wtime() - begin;
}

double beff_bare_sendrecv(const char *out, char *in, int bytes, long iterations, int left, int right, MPI_Comm comm)
{
    double begin = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        MPI_Sendrecv(out, bytes, MPI_BYTE, left, 0, in, bytes, MPI_BYTE, right, 0, comm, MPI_STATUS_IGNORE);
        if (left != right)
            MPI_Sendrecv(out, bytes, MPI_BYTE, right, 0, in, bytes, MPI_BYTE, left, 0, comm, MPI_STATUS_IGNORE);
    }
    return MPI_Wtime() - begin;
}
