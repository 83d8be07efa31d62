/* The benchmarks of IMB-IO as their definition says, with nothing else: what `beff-raw imb` is compared with (imb.sh).
 *
 *   mpirun -n N imb NAME DIR BYTES...
 *
 * The file exists with all its bytes, written before, outside the clock; every repetition has the same buffer. Two barriers, then
 * n calls. Writes: behind all of them (aggregate) or behind each (non-aggregate) sync, barrier, sync, inside the clock. Reads: no sync.
 * Of a non-blocking name this is t_pure, the blocking call. A line for each mode and size: name, mode, bytes, repetitions, t_max in us,
 * the slowest rank's time divided by n. All ranks take part; those of S in a file of rank 0 only wait. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AGGREGATE = 1000, NON_AGGREGATE = 100, VOLUME = 40 << 20, PIECE = 1 << 20 };

/* What a name says. */
struct benchmark {
    char group;    /* S, P, C; O: Open_Close */
    int write;
    int blocking;  /* as the name has it; what is timed always is */
    char pointer;  /* I(ndv), E(xpl), S(hared), P(riv) */
};

/* One rank in a row. */
struct row {
    struct benchmark what;
    MPI_Comm comm;
    MPI_File file;
    char *buffer;
    int bytes;         /* of this rank in each step */
    MPI_Offset first;  /* where they begin */
    MPI_Offset step;   /* from one step to the next, X or the part of a private file */
    long n;
    int failed;
};

static void die(const char *what, const char *name)
{
    fprintf(stderr, "imb: %s: %s\n", what, name);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static struct benchmark parse(const char *name)
{
    struct benchmark b = {name[0], 1, 1, 'I'};
    if (!strcmp(name, "Open_Close")) {
        b.group = 'O';
        return b;
    }
    const char *verb = name + 2;
    if (strlen(name) < 10 || !strchr("SPC", name[0]) || name[1] != '_')
        die("no such name", name);
    if (*verb == 'I') {
        b.blocking = 0;
        verb++;
    }
    b.write = !strncmp(verb, "Write_", 6);
    if (!b.write && strncmp(verb, "Read_", 5))
        die("no such name", name);
    b.pointer = verb[b.write ? 6 : 5];
    if (!strchr("IESP", b.pointer))
        die("no such name", name);
    return b;
}

/* Units of 4 bytes, one more for the low ranks; the last byte is that of X. */
static void part(long x, int ranks, int rank, MPI_Offset *begin, int *bytes)
{
    long units = (x + 3) / 4, base = units / ranks, mod = units % ranks;
    long off = rank < mod ? rank * (base + 1) * 4 : (rank * base + mod) * 4;
    long end = off + (rank < mod ? base + 1 : base) * 4;
    if (off > x)
        off = x;
    if (end > x)
        end = x;
    *begin = off;
    *bytes = (int)(end - off);
}

/* The file as it is found: all its bytes, on the storage. */
static void prepare(MPI_Comm comm, const char *path, long bytes)
{
    int rank, failed;
    MPI_File file;
    char *piece = calloc(1, PIECE);
    MPI_Comm_rank(comm, &rank);
    failed = MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (failed)
        die("cannot be made", path);
    for (long at = 0; rank == 0 && at < bytes; at += PIECE)
        failed |= MPI_File_write_at(file, at, piece, at + PIECE < bytes ? PIECE : (int)(bytes - at), MPI_BYTE,
                                    MPI_STATUS_IGNORE);
    failed |= MPI_File_sync(file);
    failed |= MPI_File_close(&file);
    free(piece);
    if (failed)
        die("cannot be filled", path);
}

/* P_*_Indv and C_*_Indv see their own tiles. */
static void view(struct row *r, long x)
{
    MPI_Datatype block, tile;
    if (r->what.pointer != 'I' || r->what.group == 'S' || r->bytes == 0)
        return;
    MPI_Type_contiguous(r->bytes, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, x, &tile);
    MPI_Type_commit(&tile);
    r->failed |= MPI_File_set_view(r->file, r->first, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    MPI_Type_free(&block);
    MPI_Type_free(&tile);
}

#define MEMORY r->buffer, r->bytes, MPI_BYTE, status
#define PLACE (r->first + j * r->step)

/* One repetition. */
static inline int call(const struct row *r, long j, MPI_Status *status)
{
    int all = r->what.group == 'C';
    switch (r->what.pointer) {
    case 'E':
        if (r->what.write)
            return all ? MPI_File_write_at_all(r->file, PLACE, MEMORY) : MPI_File_write_at(r->file, PLACE, MEMORY);
        return all ? MPI_File_read_at_all(r->file, PLACE, MEMORY) : MPI_File_read_at(r->file, PLACE, MEMORY);
    case 'S':
        if (r->what.write)
            return all ? MPI_File_write_ordered(r->file, MEMORY) : MPI_File_write_shared(r->file, MEMORY);
        return all ? MPI_File_read_ordered(r->file, MEMORY) : MPI_File_read_shared(r->file, MEMORY);
    default:
        if (r->what.write)
            return all ? MPI_File_write_all(r->file, MEMORY) : MPI_File_write(r->file, MEMORY);
        return all ? MPI_File_read_all(r->file, MEMORY) : MPI_File_read(r->file, MEMORY);
    }
}

static int sync_all(const struct row *r)
{
    int failed = MPI_File_sync(r->file);
    MPI_Barrier(r->comm);
    return failed | MPI_File_sync(r->file);
}

/* Seconds of all repetitions on this rank. */
static double timed(struct row *r, int aggregate)
{
    int moved = r->bytes;
    MPI_Status status;
    MPI_Barrier(r->comm);
    MPI_Barrier(r->comm);
    double begin = MPI_Wtime();
    for (long j = 0; j < r->n; j++) {
        r->failed |= call(r, j, &status);
        if (r->what.write && !aggregate)
            r->failed |= sync_all(r);
    }
    if (r->what.write && aggregate)
        r->failed |= sync_all(r);
    double seconds = MPI_Wtime() - begin;
    MPI_Get_count(&status, MPI_BYTE, &moved);
    r->failed |= moved != r->bytes;
    return seconds;
}

static double opening(struct row *r, const char *path)
{
    char byte = 1;
    MPI_Barrier(r->comm);
    MPI_Barrier(r->comm);
    double begin = MPI_Wtime();
    for (long j = 0; j < r->n; j++) {
        r->failed |= MPI_File_open(r->comm, path, MPI_MODE_RDWR, MPI_INFO_NULL, &r->file);
        r->failed |= MPI_File_write_at(r->file, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
        r->failed |= MPI_File_close(&r->file);
    }
    return MPI_Wtime() - begin;
}

static double measure(struct row *r, const char *path, long x, int aggregate)
{
    double seconds;
    if (r->what.group == 'O') {
        prepare(r->comm, path, 1);
        return opening(r, path);
    }
    MPI_Comm owner = r->what.pointer == 'P' ? MPI_COMM_SELF : r->comm;
    prepare(owner, path, r->step * r->n);
    r->buffer = aligned_alloc(4096, (size_t)(r->bytes / 4096 + 1) * 4096);
    memset(r->buffer, 1, (size_t)r->bytes);
    r->failed |= MPI_File_open(owner, path, r->what.write ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, &r->file);
    view(r, x);
    seconds = timed(r, aggregate);
    r->failed |= MPI_File_close(&r->file);
    free(r->buffer);
    return seconds;
}

static void run(const char *name, const char *directory, long x, int aggregate, int shown)
{
    struct row r = {.what = parse(name), .comm = MPI_COMM_WORLD};
    int rank, ranks;
    char path[4096];
    double seconds = 0, slowest;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (r.what.group == 'S')
        r.comm = MPI_COMM_SELF;
    long most = aggregate ? AGGREGATE : NON_AGGREGATE;
    r.n = x > 0 && VOLUME / x < most ? VOLUME / x : most;
    if (r.n < 1)
        r.n = 1;
    part(x, r.what.group == 'S' ? 1 : ranks, r.what.group == 'S' ? 0 : rank, &r.first, &r.bytes);
    r.step = x;
    if (r.what.pointer == 'P' && r.what.group != 'O') {
        r.first = 0;
        r.step = r.bytes;
        snprintf(path, sizeof path, "%s/imb-%d.dat", directory, rank);
    } else {
        snprintf(path, sizeof path, "%s/imb.dat", directory);
    }
    if (r.what.group != 'S' || rank == 0)
        seconds = measure(&r, path, x, aggregate) / r.n;
    if (r.failed)
        die("a call failed, or the last one was short", name);
    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0 && shown)
        printf("%s %s %ld %ld %.4f\n", name, aggregate ? "aggregate" : "non-aggregate", x, r.n, slowest * 1e6);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 || (r.what.pointer == 'P' && r.what.group != 'O'))
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc < 4)
        die("expected", "NAME DIR BYTES...");
    struct benchmark what = parse(argv[1]);
    int modes = what.write && what.blocking && what.group != 'O' ? 2 : 1;
    int sizes = what.group == 'O' ? 1 : argc - 3;
    /* The first contact of ranks, files and memory is nobody's. */
    run(argv[1], argv[2], what.group == 'O' ? 0 : atol(argv[3]), 1, 0);
    for (int mode = 0; mode < modes; mode++)
        for (int n = 0; n < sizes; n++)
            run(argv[1], argv[2], what.group == 'O' ? 0 : atol(argv[3 + n]), mode == 0, 1);
    MPI_Finalize();
    return 0;
}
