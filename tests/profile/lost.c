/* Its record is damaged in the way that the third argument says, after half of as many writes as the fourth. */
#define _GNU_SOURCE
#include "expect.h"
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static MPI_File file;
static long calls;
static char byte = 'x';
/* Directory of the record. */
static const char *profile;
static sigjmp_buf back;
static volatile sig_atomic_t caught;

static void jump(int signal) {
    caught += signal == SIGBUS;
    siglongjmp(back, 1);
}

static void jump_info(int signal, siginfo_t *info, void *context) {
    (void)info, (void)context;
    jump(signal);
}

static void *writes(void *which) {
    long base = *(long *)which;
    for (long i = 0; i < calls / 2; i++)
        if (MPI_File_write_at(file, base + i, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE)) exit(9);
    return NULL;
}

static void damage(const char *how) {
    char path[4096];
    if (!profile) return;
    snprintf(path, sizeof path, "%s/rank-%d.beff", profile, rank);
    if (!strcmp(how, "unlink"))
        unlink(path);
    else if (truncate(path, strcmp(how, "part") ? 0 : 70000))
        exit(8);
}

/* A fault of the program itself, in a mapping of its own. */
static void own_fault(const char *directory) {
    char path[4096];
    snprintf(path, sizeof path, "%s/own-%d", directory, rank);
    int own = open(path, O_RDWR | O_CREAT, 0600);
    if (ftruncate(own, 4096)) exit(7);
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    if (ftruncate(own, 0)) exit(7);
    if (!sigsetjmp(back, 1)) memory[1] = 1;
    unlink(path);
}

/* The handler of the program, as it sees it. */
static const char *handler(void) {
    struct sigaction now;
    sigaction(SIGBUS, NULL, &now);
    if (now.sa_flags & SA_SIGINFO) return now.sa_sigaction == jump_info ? "info" : "other";
    return now.sa_handler == jump ? "jump" : now.sa_handler == SIG_DFL ? "default" : "other";
}

int main(int argc, char **argv) {
    const char *how = argv[3];
    profile = getenv("BEFF_PROFILE_DIR");
    calls = atol(argv[4]);
    if (!strcmp(how, "before")) signal(SIGBUS, jump);
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char path[4096], line[256] = "";
    snprintf(path, sizeof path, "%s/file-%d", argv[2], rank);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    long first = 0, second = calls / 2;
    writes(&first);
    if (!strcmp(how, "after")) {
        struct sigaction action = {.sa_sigaction = jump_info, .sa_flags = SA_SIGINFO | SA_RESETHAND};
        sigaction(SIGBUS, &action, NULL);
    }
    if (!strcmp(how, "restore")) {
        struct sigaction action = {.sa_handler = jump}, old;
        sigaction(SIGBUS, &action, &old);
        own_fault(argv[2]);
        sigaction(SIGBUS, &old, NULL);
    }
    if (!strcmp(how, "masked")) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    }
    if (!strcmp(how, "before") || !strcmp(how, "after")) {
        strcat(line, handler());
        own_fault(argv[2]);
    }
    damage(how);
    if (!strcmp(how, "masked") || !strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, writes, &second);
        pthread_join(thread, NULL);
        second = first;
    }
    writes(&second);
    if (strcmp(how, "restore")) snprintf(line + strlen(line), 64, " %s ", strcmp(how, "own") ? handler() : "dies");
    if (!strcmp(how, "own") || !strcmp(how, "restore")) {
        /* Without a handler the child dies. */
        pid_t child = fork();
        if (!child) {
            signal(SIGBUS, SIG_DFL);
            own_fault(argv[2]);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        snprintf(line + strlen(line), 64, "signal %d ", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    printf("%s%d %s\n", line, caught, how);
    return 0;
}
