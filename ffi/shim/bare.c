/* Bare loops of b_eff: two loops of MPI calls only, as a C programmer writes them. A message is at `base` of both buffers; base
 * then advances, and is reset to 0 if the next message would begin beyond `last`. Advance 0 reuses one buffer. The overhead of
 * beff-raw's loops relative to these is measured in the same process, in turns. Returns seconds, or -1 if a call failed, so that
 * failures do not appear fast. MPI_SUCCESS is 0. */
#include "shim.h"

#define NEXT(walk) \
    do { \
        (walk).base += (walk).advance; \
        if ((walk).base > (walk).last) \
            (walk).base = 0; \
    } while (0)

double beff_bare_ping_pong(const char *out, char *in, struct beff_bare_walk walk, int bytes, long iterations, int begins,
                           int peer, MPI_Comm comm)
{
    int failed = 0;
    double begin = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        if (begins) {
            failed |= MPI_Send(out + walk.base, bytes, MPI_BYTE, peer, 0, comm);
            failed |= MPI_Recv(in + walk.base, bytes, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
        } else {
            failed |= MPI_Recv(in + walk.base, bytes, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
            failed |= MPI_Send(out + walk.base, bytes, MPI_BYTE, peer, 0, comm);
        }
        NEXT(walk);
    }
    double seconds = MPI_Wtime() - begin;
    return failed ? -1.0 : seconds;
}

double beff_bare_sendrecv(const char *out, char *in, struct beff_bare_walk walk, int bytes, long iterations, int left,
                          int right, MPI_Comm comm)
{
    int failed = 0;
    double begin = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        failed |= MPI_Sendrecv(out + walk.base, bytes, MPI_BYTE, left, 0, in + walk.base, bytes, MPI_BYTE, right, 0, comm,
                               MPI_STATUS_IGNORE);
        NEXT(walk);
        if (left != right) {
            failed |= MPI_Sendrecv(out + walk.base, bytes, MPI_BYTE, right, 0, in + walk.base, bytes, MPI_BYTE, left, 0,
                                   comm, MPI_STATUS_IGNORE);
            NEXT(walk);
        }
    }
    double seconds = MPI_Wtime() - begin;
    return failed ? -1.0 : seconds;
}
