/* Open MPI 4.1 opens no name without a directory.
 * One file under several names, and several files under one name. Prints the order of the distinct files that it opens or deletes. */
#include "expect.h"
#include <sys/stat.h>
#include <unistd.h>

static void use(const char *name, int mode) {
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file)) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_write_at(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int made = MPI_MODE_CREATE | MPI_MODE_RDWR, old = MPI_MODE_RDWR;
    if (chdir(argv[2])) return 2;
    if (rank == 0 && (mkdir("a", 0700) || mkdir("b", 0700))) return 2;
    MPI_Barrier(MPI_COMM_WORLD);
    if (chdir("a")) return 2;
    use("./f", made); /* 0 */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && (symlink("../a/f", "../b/link") || link("f", "../b/hard"))) return 2;
    MPI_Barrier(MPI_COMM_WORLD);
    if (chdir("../b")) return 2;
    use("./f", made);     /* 1 */
    use("../a/f", old); /* 0 */
    use("./link", old);   /* 0 */
    use("./hard", old);   /* 0 */
    if (rank == 0) MPI_File_delete("./link", MPI_INFO_NULL); /* 2 */
    MPI_Barrier(MPI_COMM_WORLD);
    use("../a/f", old); /* 0 */
    MPI_Finalize();
    return 0;
}
