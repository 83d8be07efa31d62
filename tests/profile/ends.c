/* Ends in the way that the third argument says, behind as many writes as the fourth. */
#include "expect.h"
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static MPI_File file;
static long calls;
static char byte = 'x';
static const char *directory;

static void *writes(void *which) {
    long base = *(int *)which * calls;
    for (long i = 0; i < calls; i++) MPI_File_write_at(file, base + i, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    return NULL;
}

/* Files of other threads come and go at the same addresses. */
static void *opens(void *which) {
    char path[4096];
    snprintf(path, sizeof path, "%s/of-%d", directory, *(int *)which);
    for (long i = 0; i < calls; i++) {
        MPI_File own;
        MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &own);
        MPI_File_write_at(own, *(int *)which, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_close(&own);
    }
    return NULL;
}

static void aborts(MPI_File *failed, int *code, ...) {
    (void)failed, (void)code;
    MPI_Abort(MPI_COMM_WORLD, 7);
}

/* Rank 1 goes on without what is preloaded. */
static void half(char **argv) {
    const char *own = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    if (own && !strcmp(own, "1") && getenv("LD_PRELOAD")) {
        unsetenv("LD_PRELOAD");
        execv(argv[0], argv);
    }
}

int main(int argc, char **argv) {
    const char *how = argv[3];
    int provided, numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    calls = atol(argv[4]);
    directory = argv[2];
    if (!strcmp(how, "half")) half(argv);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char path[4096];
    snprintf(path, sizeof path, "%s/file-%d", argv[2], rank);
    if (!strcmp(how, "uneven") && rank == 0) calls = 10;
    if (!strcmp(how, "stderr")) close(2);
    if (!strcmp(how, "size")) {
        struct rlimit limit = {1 << 17, 1 << 17};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    if (!strcmp(how, "threads")) {
        pthread_t threads[4];
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 4; i++) pthread_create(threads + i, NULL, writes, numbers + 4 * round + i);
            for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        }
    } else if (!strcmp(how, "opens")) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(threads + i, NULL, opens, numbers + i);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    } else {
        writes(numbers);
    }
    if (!strcmp(how, "stale")) {
        /* The library complains about the file before it looks at anything else. */
        MPI_Datatype type, stale;
        MPI_Info info, old;
        MPI_Type_contiguous(3, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Info_create(&info);
        stale = type, old = info;
        MPI_Type_free(&type);
        MPI_Info_free(&info);
        MPI_File_write_at(MPI_FILE_NULL, 0, &byte, 1, stale, MPI_STATUS_IGNORE);
        MPI_File_write_at(MPI_FILE_NULL, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_set_view(MPI_FILE_NULL, 0, stale, stale, "native", old);
    }
    if (!strcmp(how, "nested")) {
        /* Each made of thirty times the one before, which is the same: 729 million parts, where the library tells that they are. */
#ifdef OPEN_MPI
        const int most = 3;
#else
        const int most = 6;
#endif
        MPI_Datatype type = MPI_BYTE, same[30];
        int lengths[30];
        MPI_Aint places[30];
        for (int depth = 0; depth < most; depth++) {
            for (int i = 0; i < 30; i++) same[i] = type, lengths[i] = i < 1, places[i] = 0;
            MPI_Type_create_struct(30, lengths, places, same, &type);
            if (depth > 0) MPI_Type_free(same);
        }
        MPI_Type_commit(&type);
        MPI_File_write_at(file, 0, &byte, 1, type, MPI_STATUS_IGNORE);
        MPI_Type_free(&type);
    }
    if (!strcmp(how, "handler")) {
        MPI_Errhandler handler;
        MPI_File_create_errhandler(aborts, &handler);
        MPI_File_set_errhandler(file, handler);
        MPI_File_write_at(file, 0, &byte, -1, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    if (!strcmp(how, "fork")) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            /* No MPI call is allowed here, but one that fails at once does no harm. */
            MPI_File none = file;
            MPI_Offset size;
            MPI_File_get_size(none, &size);
            exit(3);
        }
        int status;
        waitpid(child, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
    }
    if (!strcmp(how, "fatal")) {
        MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
        MPI_File_write_at(file, 0, &byte, -1, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(how, "exit")) exit(0);
    if (!strcmp(how, "_exit")) _exit(0);
    MPI_File_close(&file);
    MPI_Finalize();
    /* In one piece: the launcher mixes those of the ranks. */
    char line[64];
    int length = snprintf(line, sizeof line, "%s\n", how);
    /* Where one of several ranks ends so, some launchers end the others before they have said anything. */
    int code = ranks > 1 ? 0 : 4;
    return write(1, line, length) == length ? code : 5;
}
