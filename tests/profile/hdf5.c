/* A program with a library like HDF5, or with two, or with none.
 *   -DLIBRARY=N: the library N; -DEXTENSION: a library that calls one
 *   linked | private EXTENSION EXTENSION | absent */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int64_t hid_t;
typedef hid_t (*work)(void);
hid_t H5Fcreate(const char *name, unsigned flags, hid_t creation, hid_t access);
hid_t H5Fopen(const char *name, unsigned flags, hid_t access);
int H5Fclose(hid_t file);
hid_t H5Dcreate1(hid_t place, const char *name, hid_t type, hid_t space, hid_t creation);
hid_t H5Dcreate2(hid_t place, const char *name, hid_t type, hid_t space, hid_t links, hid_t creation, hid_t access);
int H5Dwrite(hid_t set, hid_t memory, hid_t space, hid_t selection, hid_t transfer, const void *buffer);
int H5Dread(hid_t set, hid_t memory, hid_t space, hid_t selection, hid_t transfer, void *buffer);

#ifdef LIBRARY
hid_t H5Fcreate(const char *name, unsigned flags, hid_t creation, hid_t access) { return name && flags == 2 && creation == 3 && access == 4 ? 100 : -1; }
hid_t H5Fopen(const char *name, unsigned flags, hid_t access) { return name && flags == 2 && access == 3 ? 101 : -1; }
int H5Fclose(hid_t file) { return file == 100 ? 0 : -1; }
hid_t H5Dcreate1(hid_t place, const char *name, hid_t type, hid_t space, hid_t creation) {
    return place == 100 && name && type == 3 && space == 4 && creation == 5 ? 200 : -1;
}
/* The last argument is in memory, not in a register. */
hid_t H5Dcreate2(hid_t place, const char *name, hid_t type, hid_t space, hid_t links, hid_t creation, hid_t access) {
    return place == 100 && name && type == 3 && space == 4 && links == 5 && creation == 6 && access == INT64_C(7) << 40 ? 201 : -1;
}
int H5Dwrite(hid_t set, hid_t memory, hid_t space, hid_t selection, hid_t transfer, const void *buffer) {
    if (!buffer) return LIBRARY;
    return set == 201 && memory == 2 && space == 3 && selection == 4 && transfer == 5 ? (int)((work)(uintptr_t)buffer)() : -1;
}
int H5Dread(hid_t set, hid_t memory, hid_t space, hid_t selection, hid_t transfer, void *buffer) {
    return set == 0 && memory == 2 && space == 3 && selection == 4 && transfer == 5 && buffer ? -2 : 0;
}
long H5Iget_name(hid_t object, char *name, size_t bytes) {
    return snprintf(name, bytes, "%s", object == 100 ? "/" : "/group/set");
}
#elif defined(EXTENSION)
int extension(void) { return H5Dwrite(201, 2, 3, 4, 5, NULL); }
#else
static MPI_File file;
static hid_t write_one(void) { return MPI_File_write_at(file, 0, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE); }

int main(int argc, char **argv) {
    char path[4096];
    int wrong = argc < 4;
    MPI_Init(&argc, &argv);
    snprintf(path, sizeof path, "%s/file", argv[2]);
    if (!strcmp(argv[3], "private")) {
        for (int n = 0; n < 2; n++) {
            void *library = dlopen(argv[4 + n], RTLD_NOW | RTLD_LOCAL);
            int (*call)(void) = library ? (int (*)(void))(uintptr_t)dlsym(library, "extension") : NULL;
            if (!call || call() != n + 1) printf("library %d: %d, %s\n", n + 1, call ? call() : 0, library ? "" : dlerror()), wrong = 1;
        }
    } else if (!strcmp(argv[3], "absent")) {
        int (*call)(hid_t) = (int (*)(hid_t))(uintptr_t)dlsym(RTLD_DEFAULT, "H5Fclose");
        wrong |= call && call(100) >= 0;
    } else {
#ifdef LINKED
        MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        wrong |= H5Fcreate("a.h5", 2, 3, 4) != 100;
        wrong |= H5Dcreate2(100, "set", 3, 4, 5, 6, INT64_C(7) << 40) != 201;
        wrong |= H5Dcreate1(100, "/old", 3, 4, 5) != 200;
        wrong |= H5Dwrite(201, 2, 3, 4, 5, (void *)(uintptr_t)write_one) != 0;
        wrong |= H5Dread(0, 2, 3, 4, 5, (void *)(uintptr_t)write_one) != -2; /* fails */
        wrong |= H5Fclose(100) != 0;
        wrong |= H5Fopen("b.h5", 2, 3) != 101;
        MPI_File_close(&file);
#endif
    }
    puts(wrong ? "wrong" : "right");
    MPI_Finalize();
    return wrong;
}
#endif
