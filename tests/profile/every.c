/* Every function of MPI-IO, and its twin with large counts where there is one, on several files and communicators. */
#include "expect.h"

static MPI_File file;
static int handle, request_number;
static int data[64];
static MPI_Status status;

static long moved(int code) {
    int n;
    if (code) return -1;
    MPI_Get_elements(&status, MPI_BYTE, &n);
    return n;
}

static void bytes(int code) {
    if (!code) expect(" bytes=%ld", moved(code));
    done(code);
}

#define AT(f, name, offset, n)                                                                                         \
    do {                                                                                                               \
        int code = f(file, offset, data, n, MPI_INT, &status);                                                         \
        expect("%s handle=%d offset=%d count=%d type=INT", name, handle, (int)(offset), (int)(n));                     \
        bytes(code);                                                                                                   \
    } while (0)
#define PLAIN(f, name, n)                                                                                              \
    do {                                                                                                               \
        int code = f(file, data, n, MPI_INT, &status);                                                                 \
        expect("%s handle=%d count=%d type=INT", name, handle, (int)(n));                                              \
        bytes(code);                                                                                                   \
    } while (0)
#define WAIT()                                                                                                         \
    do {                                                                                                               \
        int code = MPI_Wait(&request, &status);                                                                        \
        expect("Wait requests=%d done=%d:%ld", request_number, request_number, moved(code));                           \
        done(code);                                                                                                    \
    } while (0)
#define IAT(f, name, offset, n)                                                                                        \
    do {                                                                                                               \
        MPI_Request request;                                                                                           \
        int code = f(file, offset, data, n, MPI_INT, &request);                                                        \
        expect("%s handle=%d offset=%d count=%d type=INT", name, handle, (int)(offset), (int)(n));                     \
        if (!code) expect(" request=%d", ++request_number);                                                            \
        done(code);                                                                                                    \
        if (!code) WAIT();                                                                                             \
    } while (0)
#define IPLAIN(f, name, n)                                                                                             \
    do {                                                                                                               \
        MPI_Request request;                                                                                           \
        int code = f(file, data, n, MPI_INT, &request);                                                                \
        expect("%s handle=%d count=%d type=INT", name, handle, (int)(n));                                              \
        if (!code) expect(" request=%d", ++request_number);                                                            \
        done(code);                                                                                                    \
        if (!code) WAIT();                                                                                             \
    } while (0)
#define ENDING(f, name)                                                                                                \
    do {                                                                                                               \
        int code = f(file, data, &status);                                                                             \
        expect("%s handle=%d", name, handle);                                                                          \
        bytes(code);                                                                                                   \
    } while (0)
#define SPLIT_AT(f, g, name, ending, offset, n)                                                                        \
    do {                                                                                                               \
        int code = f(file, offset, data, n, MPI_INT);                                                                  \
        expect("%s handle=%d offset=%d count=%d type=INT", name, handle, (int)(offset), (int)(n));                     \
        done(code);                                                                                                    \
        ENDING(g, ending);                                                                                             \
    } while (0)
#define SPLIT(f, g, name, ending, n)                                                                                   \
    do {                                                                                                               \
        int code = f(file, data, n, MPI_INT);                                                                          \
        expect("%s handle=%d count=%d type=INT", name, handle, (int)(n));                                              \
        done(code);                                                                                                    \
        ENDING(g, ending);                                                                                             \
    } while (0)

static void all_accesses(void) {
    int at = 32 * rank;
#define ACCESSES(C, S)                                                                                                 \
    AT(MPI_File_write_at##C, "File_write_at" S, at, 8);                                                                \
    AT(MPI_File_write_at_all##C, "File_write_at_all" S, at, 8);                                                        \
    AT(MPI_File_read_at##C, "File_read_at" S, at, 4);                                                                  \
    AT(MPI_File_read_at_all##C, "File_read_at_all" S, at, 4);                                                          \
    IAT(MPI_File_iwrite_at##C, "File_iwrite_at" S, at, 7);                                                             \
    IAT(MPI_File_iwrite_at_all##C, "File_iwrite_at_all" S, at, 7);                                                     \
    IAT(MPI_File_iread_at##C, "File_iread_at" S, at, 5);                                                               \
    IAT(MPI_File_iread_at_all##C, "File_iread_at_all" S, at, 5);                                                       \
    SPLIT_AT(MPI_File_write_at_all_begin##C, MPI_File_write_at_all_end, "File_write_at_all_begin" S,                   \
             "File_write_at_all_end", at, 3);                                                                          \
    SPLIT_AT(MPI_File_read_at_all_begin##C, MPI_File_read_at_all_end, "File_read_at_all_begin" S,                      \
             "File_read_at_all_end", at, 3);                                                                           \
    seek_to(at);                                                                                                       \
    PLAIN(MPI_File_write##C, "File_write" S, 2);                                                                       \
    PLAIN(MPI_File_write_all##C, "File_write_all" S, 2);                                                               \
    IPLAIN(MPI_File_iwrite##C, "File_iwrite" S, 2);                                                                    \
    IPLAIN(MPI_File_iwrite_all##C, "File_iwrite_all" S, 2);                                                            \
    SPLIT(MPI_File_write_all_begin##C, MPI_File_write_all_end, "File_write_all_begin" S, "File_write_all_end", 2);     \
    seek_to(at);                                                                                                       \
    PLAIN(MPI_File_read##C, "File_read" S, 1);                                                                         \
    PLAIN(MPI_File_read_all##C, "File_read_all" S, 1);                                                                 \
    IPLAIN(MPI_File_iread##C, "File_iread" S, 1);                                                                      \
    IPLAIN(MPI_File_iread_all##C, "File_iread_all" S, 1);                                                              \
    SPLIT(MPI_File_read_all_begin##C, MPI_File_read_all_end, "File_read_all_begin" S, "File_read_all_end", 1);         \
    shared_to(0);                                                                                                      \
    PLAIN(MPI_File_write_shared##C, "File_write_shared" S, 2);                                                         \
    IPLAIN(MPI_File_iwrite_shared##C, "File_iwrite_shared" S, 2);                                                      \
    MPI_Barrier(MPI_COMM_WORLD);                                                                                       \
    PLAIN(MPI_File_write_ordered##C, "File_write_ordered" S, 2);                                                       \
    SPLIT(MPI_File_write_ordered_begin##C, MPI_File_write_ordered_end, "File_write_ordered_begin" S,                   \
          "File_write_ordered_end", 2);                                                                                \
    shared_to(0);                                                                                                      \
    PLAIN(MPI_File_read_shared##C, "File_read_shared" S, 1);                                                           \
    IPLAIN(MPI_File_iread_shared##C, "File_iread_shared" S, 1);                                                        \
    MPI_Barrier(MPI_COMM_WORLD);                                                                                       \
    PLAIN(MPI_File_read_ordered##C, "File_read_ordered" S, 1);                                                         \
    SPLIT(MPI_File_read_ordered_begin##C, MPI_File_read_ordered_end, "File_read_ordered_begin" S,                      \
          "File_read_ordered_end", 1);
#define seek_to(to)                                                                                                    \
    do {                                                                                                               \
        done((MPI_File_seek(file, to, MPI_SEEK_SET), expect("File_seek handle=%d offset=%d whence=set", handle, to), 0)); \
    } while (0)
#define shared_to(to)                                                                                                  \
    do {                                                                                                               \
        int code = MPI_File_seek_shared(file, to, MPI_SEEK_SET);                                                       \
        expect("File_seek_shared handle=%d offset=%d whence=set", handle, to);                                         \
        done(code);                                                                                                    \
    } while (0)
    ACCESSES(, "")
#if MPI_VERSION >= 4
    ACCESSES(_c, "_c")
#endif
}

static void manage(void) {
    MPI_Offset number = 0;
    int flag = 0, mode = 0, code;
    MPI_Group group;
    MPI_Info info;
    MPI_Datatype etype, filetype;
    MPI_Aint extent;
    char representation[MPI_MAX_DATAREP_STRING];
    MPI_Errhandler handler;
#define ANSWERS(f, name)                                                                                               \
    code = f(file, &number);                                                                                           \
    expect(name " handle=%d number=%ld", handle, (long)number);                                                        \
    done(code)
    code = MPI_File_preallocate(file, 4000);
    expect("File_preallocate handle=%d offset=4000", handle), done(code);
    code = MPI_File_set_size(file, 5000);
    expect("File_set_size handle=%d offset=5000", handle), done(code);
    ANSWERS(MPI_File_get_size, "File_get_size");
    ANSWERS(MPI_File_get_position, "File_get_position");
    ANSWERS(MPI_File_get_position_shared, "File_get_position_shared");
    code = MPI_File_seek(file, 3, MPI_SEEK_CUR);
    expect("File_seek handle=%d offset=3 whence=cur", handle), done(code);
    code = MPI_File_seek(file, -8, MPI_SEEK_END);
    expect("File_seek handle=%d offset=-8 whence=end", handle), done(code);
    code = MPI_File_get_byte_offset(file, 5, &number);
    expect("File_get_byte_offset handle=%d offset=5 number=%ld", handle, (long)number), done(code);
    code = MPI_File_get_group(file, &group);
    expect("File_get_group handle=%d", handle), done(code);
    MPI_Group_free(&group);
    code = MPI_File_get_amode(file, &mode);
    expect("File_get_amode handle=%d mode=rdwr+create", handle), done(code);
    code = MPI_File_get_info(file, &info);
    expect("File_get_info handle=%d", handle), done(code);
    code = MPI_File_set_info(file, info);
    expect("File_set_info handle=%d info granted", handle), done(code);
    MPI_Info_free(&info);
    code = MPI_File_get_view(file, &number, &etype, &filetype, representation);
    expect("File_get_view handle=%d number=%ld", handle, (long)number), done(code);
    code = MPI_File_get_type_extent(file, MPI_DOUBLE, &extent);
    expect("File_get_type_extent handle=%d type=DOUBLE number=%ld", handle, (long)extent), done(code);
#if MPI_VERSION >= 4
    MPI_Count large;
    code = MPI_File_get_type_extent_c(file, MPI_DOUBLE, &large);
    expect("File_get_type_extent_c handle=%d type=DOUBLE number=%ld", handle, (long)large), done(code);
#endif
    code = MPI_File_set_atomicity(file, 1);
    expect("File_set_atomicity handle=%d flag=1", handle), done(code);
    code = MPI_File_get_atomicity(file, &flag);
    expect("File_get_atomicity handle=%d flag=%d", handle, flag), done(code);
    code = MPI_File_set_atomicity(file, 0);
    expect("File_set_atomicity handle=%d flag=0", handle), done(code);
    code = MPI_File_sync(file);
    expect("File_sync handle=%d", handle), done(code);
    code = MPI_File_get_errhandler(file, &handler);
    expect("File_get_errhandler handle=%d number=1", handle), done(code);
    code = MPI_File_set_errhandler(file, handler);
    expect("File_set_errhandler handle=%d number=1", handle), done(code);
    code = MPI_File_call_errhandler(file, MPI_ERR_IO);
    expect("File_call_errhandler handle=%d number=21", handle), done(code);
    MPI_Errhandler_free(&handler);
}

static void handle_error(MPI_File *which, int *code, ...) {
    (void)which;
    (void)code;
}

static int no_extent(MPI_Datatype type, MPI_Aint *extent, void *state) {
    (void)state;
    MPI_Aint lower;
    return MPI_Type_get_extent(type, &lower, extent);
}

static void open_file(MPI_Comm comm, const char *members, const char *path, int mode, const char *bits, int size) {
    int code = MPI_File_open(comm, path, mode, MPI_INFO_NULL, &file);
    expect("File_open handle=%d name=%s comm=%s mode=%s%s number=%d", ++handle, path, members, bits, code ? "" : " granted", size);
    done(code);
}

static void close_file(void) {
    int number = handle, code = MPI_File_close(&file);
    expect("File_close handle=%d", number);
    done(code);
}

static void errors(const char *path) {
    open_file(MPI_COMM_SELF, rank ? "1" : "0", "/nowhere/at/all", MPI_MODE_RDONLY, "rdonly", -1);
    open_file(MPI_COMM_SELF, rank ? "1" : "0", path, MPI_MODE_RDONLY, "rdonly", 5000);
    AT(MPI_File_write_at, "File_write_at", 0, 1);
    AT(MPI_File_read_at, "File_read_at", 0, -1);
    AT(MPI_File_read_at, "File_read_at", -5, 1);
    AT(MPI_File_read_at, "File_read_at", 4990, 8);
    AT(MPI_File_read_at, "File_read_at", 5000, 8);
    int code = MPI_File_read_at(file, 0, data, 1, MPI_DATATYPE_NULL, &status);
    expect("File_read_at handle=%d offset=0 count=1", handle), done(code);
    close_file();
    char gone[4096];
    snprintf(gone, sizeof gone, "%s.not", path);
    code = MPI_File_delete(gone, MPI_INFO_NULL);
    expect("File_delete name=%s", gone), done(code);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    char path[4096], own[4096];
    snprintf(path, sizeof path, "%s/shared", argv[2]);
    snprintf(own, sizeof own, "%s/own-%d", argv[2], rank);
    int code;
    MPI_Errhandler handler;
    code = MPI_File_create_errhandler(handle_error, &handler);
    expect("File_create_errhandler"), done(code);
    code = MPI_Register_datarep("own", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, no_extent, NULL);
    expect("Register_datarep name=own"), done(code);
#if MPI_VERSION >= 4
    code = MPI_Register_datarep_c("large", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, no_extent, NULL);
    expect("Register_datarep_c name=large"), done(code);
#endif
    MPI_Pcontrol(2, "more");
    expect("Pcontrol number=2\n");
    open_file(MPI_COMM_WORLD, "0,1", path, MPI_MODE_RDWR | MPI_MODE_CREATE, "rdwr+create", -1);
    code = MPI_File_set_view(file, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    expect("File_set_view handle=%d offset=16 etype=INT filetype=INT granted", handle), done(code);
    all_accesses();
    manage();
    close_file();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm self;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &self);
    open_file(self, rank ? "1" : "0", own, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL, "wronly+create+excl", -1);
    AT(MPI_File_write_at, "File_write_at", 3, 5);
    code = MPI_File_set_errhandler(file, handler);
    expect("File_set_errhandler handle=%d number=2", handle), done(code);
    close_file();
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&self);
    code = MPI_File_delete(own, MPI_INFO_NULL);
    expect("File_delete name=%s", own), done(code);
    errors(path);
    printf("rank %d of %d: %d openings\n", rank, ranks, handle);
    end();
    return 5;
}
