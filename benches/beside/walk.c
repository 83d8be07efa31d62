/* b_eff's loops in an ordinary C program: its own main, MPI_Init, memory from malloc, and the walk through it that release 3.6
 * makes. `beff-raw comm` is compared with it by comm.sh. Nothing here is taken from beff-raw.
 *
 *   mpirun -n N ./walk LMAX-BYTES
 *
 * Three repetitions, each: ping-pong of ranks 0 and 1, then the ring of all ranks by MPI_Sendrecv, MPI_Alltoallv and
 * MPI_Irecv + MPI_Isend, over 21 sizes. Rank 0 prints one line for each loop:
 *
 *   method bytes repetition iterations seconds(slowest rank) MB/s(all ranks; ping-pong: one direction) */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PING_PONG, SENDRECV, ALLTOALLV, NONBLOCKING, METHODS };
enum { SIZES = 21, REPETITIONS = 3, MOST = 300, PLACES = 6 };
static const char *const names[METHODS] = {"ping_pong", "sendrecv", "alltoallv", "nonblocking"};
static const double loop_seconds = 3.75e-3;

static char *out, *in;
static long memory, base;
static int rank, ranks, left, right, *counts, *send_at, *receive_at;

/* Behind a message: the next one begins a multiple of 8 bytes further, or at 0 where it would not fit. */
static inline void next(long bytes)
{
    base += (bytes + 7) / 8 * 8;
    if (base + bytes > memory)
        base = 0;
}

static void ping_pong(int bytes)
{
    if (rank == 0) {
        MPI_Send(out + base, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in + base, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(in + base, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out + base, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    next(bytes);
}

static void exchange(int to, int from, int bytes)
{
    MPI_Sendrecv(out + base, bytes, MPI_BYTE, to, 0, in + base, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    next(bytes);
}

static void alltoallv(int bytes)
{
    send_at[left] = receive_at[right] = (int)base;
    next(bytes);
    if (left != right) {
        send_at[right] = receive_at[left] = (int)base;
        next(bytes);
    }
    MPI_Alltoallv(out, counts, send_at, MPI_BYTE, in, counts, receive_at, MPI_BYTE, MPI_COMM_WORLD);
}

static void nonblocking(int bytes)
{
    MPI_Request requests[4];
    int n = 0;
    long first = base, second;
    next(bytes);
    second = base;
    MPI_Irecv(in + first, bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD, &requests[n++]);
    if (left != right) {
        MPI_Irecv(in + second, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, &requests[n++]);
        next(bytes);
    }
    MPI_Isend(out + first, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, &requests[n++]);
    if (left != right)
        MPI_Isend(out + second, bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

/* Seconds of the slowest rank. */
static double timed(int method, int bytes, int iterations)
{
    double seconds, slowest;
    /* A message of this size must fit behind the last one of another size. Two messages of an iteration must not overlap. */
    if (base + bytes > memory || (base % ((bytes + 7) / 8 * 8) != 0 && (PLACES + 1L) * bytes > memory))
        base = 0;
    for (int n = 0; n < ranks; n++)
        counts[n] = n == left || n == right ? bytes : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    seconds = MPI_Wtime();
    for (int n = 0; n < iterations; n++) {
        switch (method) {
        case PING_PONG:
            ping_pong(bytes);
            break;
        case SENDRECV:
            exchange(left, right, bytes);
            if (left != right)
                exchange(right, left, bytes);
            break;
        case ALLTOALLV:
            alltoallv(bytes);
            break;
        default:
            nonblocking(bytes);
        }
    }
    seconds = MPI_Wtime() - seconds;
    MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static int size_of(int index, double lmax)
{
    return index <= 12 ? 1 << index : (int)lround(4096.0 * pow(lmax / 4096.0, (index - 12) / 8.0));
}

static int count_for(double seconds_of_one)
{
    double count = loop_seconds / seconds_of_one;
    return count < 1 ? 1 : count > MOST ? MOST : (int)count;
}

/* All sizes of some methods, which take turns at each size. */
static void sizes(int repetition, int begin, int end, double lmax)
{
    int iterations[METHODS] = {MOST, MOST, MOST, MOST};
    for (int index = 0; index < SIZES; index++) {
        int bytes = size_of(index, lmax);
        for (int method = begin; method < end; method++) {
            double seconds = timed(method, bytes, iterations[method]);
            double one = seconds / iterations[method];
            long messages = method == PING_PONG || left == right ? 2 : 2L * ranks;
            if (method != PING_PONG && left == right)
                messages = ranks;
            if (rank == 0)
                printf("%s %d %d %d %.9f %.3f\n", names[method], bytes, repetition, iterations[method], seconds,
                       (double)bytes * messages / one / 1e6);
            double growth = index + 1 < SIZES ? (double)size_of(index + 1, lmax) / bytes : 1;
            /* Short messages take about as long as shorter ones, long ones as long as they are. */
            iterations[method] = count_for(one * (bytes < 4096 ? 1 : growth));
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    double lmax = argc > 1 ? atof(argv[1]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (lmax < 8192 || lmax > 128 << 20 || ranks < 2) {
        if (rank == 0)
            fprintf(stderr, "usage: mpirun -n N %s LMAX-BYTES: at least 2 ranks, 8192 to 134217728 bytes\n", argv[0]);
        MPI_Finalize();
        return 2;
    }
    left = (rank + ranks - 1) % ranks;
    right = (rank + 1) % ranks;
    memory = PLACES * ((long)lmax + 16);
    out = malloc(memory);
    in = malloc(memory);
    counts = calloc(ranks, sizeof(int));
    send_at = calloc(ranks, sizeof(int));
    receive_at = calloc(ranks, sizeof(int));
    if (!out || !in || !counts || !send_at || !receive_at) {
        fprintf(stderr, "rank %d: no memory\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(out, 1, memory);
    memset(in, 2, memory);
    /* Pages are mapped and connections made before the clock. */
    for (int method = 0; method < METHODS; method++)
        timed(method, (int)lmax, PLACES);
    for (int repetition = 0; repetition < REPETITIONS; repetition++) {
        sizes(repetition, PING_PONG, SENDRECV, lmax);
        sizes(repetition, SENDRECV, METHODS, lmax);
    }
    MPI_Finalize();
    return 0;
}
