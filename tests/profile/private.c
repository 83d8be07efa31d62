/* Loads the MPI library privately, as the extensions of Python and Julia do, and writes 8 bytes through it. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void *library, *inside;

static void *find(const char *name) {
    void *symbol = dlsym(inside, name);
    if (!symbol) exit(8);
    return symbol;
}

#ifdef PART
/* The extension: linked with MPI, loaded by the program. */
int part(const char *path) {
    MPI_File file;
    char data[8] = "8 bytes";
    MPI_Init(NULL, NULL);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 5, data, 8, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    return MPI_Finalize();
}
#else
int main(int argc, char **argv) {
    char path[4096];
    library = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
    if (!library) return puts(dlerror()), 9;
    inside = library;
    snprintf(path, sizeof path, "%s/file", argv[2]);
    return ((int (*)(const char *))find("part"))(path);
}
#endif
