/* What a test program of the profiler says of its own calls: one line each, in the file expected-RANK of the directory it is given.
 * The test compares them with what was recorded. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *expected;
static int rank, ranks;

static void begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char path[4096];
    snprintf(path, sizeof path, "%s/expected-%d", (*argv)[1], rank);
    expected = fopen(path, "w");
    if (!expected) MPI_Abort(MPI_COMM_WORLD, 9);
}

static void expect(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vfprintf(expected, format, list);
    va_end(list);
}

/* The end of a line: the error, if there was one. */
static void done(int code) {
    static const struct {
        int value;
        const char *name;
    } classes[] = {
        {MPI_ERR_ACCESS, "ACCESS"}, {MPI_ERR_AMODE, "AMODE"}, {MPI_ERR_ARG, "ARG"}, {MPI_ERR_COUNT, "COUNT"}, {MPI_ERR_FILE, "FILE"},
        {MPI_ERR_IO, "IO"}, {MPI_ERR_NO_SUCH_FILE, "NO_SUCH_FILE"}, {MPI_ERR_OTHER, "OTHER"}, {MPI_ERR_READ_ONLY, "READ_ONLY"},
        {MPI_ERR_TYPE, "TYPE"}, {MPI_ERR_UNSUPPORTED_OPERATION, "UNSUPPORTED_OPERATION"}, {MPI_ERR_FILE_EXISTS, "FILE_EXISTS"},
        {MPI_ERR_UNSUPPORTED_DATAREP, "UNSUPPORTED_DATAREP"}, {MPI_ERR_DUP_DATAREP, "DUP_DATAREP"}, {MPI_ERR_INTERN, "INTERN"},
        {MPI_ERR_REQUEST, "REQUEST"}, {MPI_ERR_UNKNOWN, "UNKNOWN"},
    };
    if (code) {
        int class;
        MPI_Error_class(code, &class);
        for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
            if (classes[i].value == class) expect(" error=MPI_ERR_%s", classes[i].name);
    }
    expect("\n");
    fflush(expected);
}

static void end(void) {
    fclose(expected);
    MPI_Finalize();
}
