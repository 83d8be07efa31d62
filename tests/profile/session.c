/* MPI without MPI_Init: a session, where the library has them. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
#if MPI_VERSION >= 4
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_File file;
    char path[4096], byte = 'x';
    (void)argc;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    snprintf(path, sizeof path, "%s/file", argv[2]);
    MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    puts("session");
#else
    (void)argc, (void)argv;
    puts("no sessions");
#endif
    return 0;
}
