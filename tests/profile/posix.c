/* Changes the files of MPI-IO by POSIX, and others. */
#define _GNU_SOURCE
#include "expect.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void use(const char *name, int mode, int more) {
    MPI_File file;
    if (MPI_File_open(MPI_COMM_SELF, name, mode | MPI_MODE_RDWR, MPI_INFO_NULL, &file)) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_write_at(file, 0, "12345678", 8, MPI_BYTE, MPI_STATUS_IGNORE);
    if (more && ftruncate(more, 3)) exit(4);
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (chdir(argv[2])) return 2;
    use("./a", MPI_MODE_CREATE, 0);
    int directory = open(".", O_RDONLY), other = open("a", O_RDWR);
    use("./a", 0, other);
    close(other);
    if (truncate("a", 5) || rename("a", "b")) return 5;
    close(open("a", O_CREAT | O_TRUNC | O_RDWR, 0600));
    close(creat("a", 0600));
    fclose(fopen("a", "w+"));
    fclose(fopen("a", "r"));
    use("./a", 0, 0);
    if (unlinkat(directory, "a", 0) || remove("b")) return 6;
    errno = 0;
    if (!unlink("a") || errno != ENOENT) return 7;
    fclose(fopen("other", "w"));
    if (renameat(directory, "other", directory, "another") || unlink("another")) return 8;
    use("./a", MPI_MODE_CREATE, 0);
    MPI_File_delete("./a", MPI_INFO_NULL);
    errno = 77;
    close(open("/dev/null", O_WRONLY | O_TRUNC));
    int kept = errno == 77;
    MPI_Finalize();
    printf("%s\n", kept ? "as before" : "another errno");
    return 0;
}
