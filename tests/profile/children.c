/* Starts processes, and a rank by MPI_Comm_spawn, which writes too. Prints the environment that they see. */
#include "expect.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *show = "env | grep -e ^LD_PRELOAD= -e ^BEFF_PROFILE_ | sed s:=.*/:=: | sort | tr '\\n' ' '";

static void child(void) {
    MPI_Comm parent;
    MPI_File file;
    char path[4096];
    MPI_Comm_get_parent(&parent);
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, parent);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    exit(0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc > 1 && !strcmp(argv[1], "child")) child();
    char *words[] = {"sh", "-c", show, NULL}, path[4096], *own[] = {"child", NULL};
    int status;
    printf("system ");
    fflush(stdout);
    status = system(show);
    FILE *pipe = popen(show, "r");
    size_t length = fread(path, 1, sizeof path - 1, pipe);
    pclose(pipe);
    printf("popen %.*sfork ", (int)length, path);
    fflush(stdout);
    if (!fork()) execv("/bin/sh", words);
    wait(&status);
    pid_t pid;
    printf("spawn ");
    fflush(stdout);
    posix_spawnp(&pid, "sh", NULL, NULL, words, environ);
    waitpid(pid, &status, 0);
    if (argc > 3 && !strcmp(argv[3], "ranks")) {
        MPI_Comm world;
        MPI_Comm_spawn(argv[0], own, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &world, MPI_ERRCODES_IGNORE);
        snprintf(path, sizeof path, "%s/spawned", argv[2]);
        MPI_Bcast(path, sizeof path, MPI_CHAR, MPI_ROOT, world);
        MPI_Comm_disconnect(&world);
        fflush(stdout);
        status = system(show);
    }
    printf("end\n");
    MPI_Finalize();
    return 0;
}
