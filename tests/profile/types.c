/* Every constructor of datatypes, each made of the one before, in memory and in views. The text says what the constructor was given. */
#include "expect.h"

static MPI_File file;
static char *data;
static MPI_Status status;

static char text[100000];
static int only_asked;

/* One more shell around the text of the type so far. */
static void around(const char *format, ...) {
    static char inner[100000], front[1000];
    strcpy(inner, text);
    va_list list;
    va_start(list, format);
    vsnprintf(front, sizeof front, format, list);
    va_end(list);
    snprintf(text, sizeof text, "%s;%s)", front, inner);
}

static void moves(MPI_Datatype type, const char *what) {
    int size, n;
    MPI_Type_commit(&type);
    if (only_asked) {
        MPI_Aint extent;
        int code = MPI_File_get_type_extent(file, type, &extent);
        expect("File_get_type_extent handle=1 type=%s number=%ld", what, (long)extent), done(code);
        return;
    }
    MPI_Type_size(type, &size);
    int code = MPI_File_write_at(file, 7, data, 2, type, &status);
    MPI_Get_elements(&status, MPI_BYTE, &n);
    expect("File_write_at handle=1 offset=7 count=2 type=%s bytes=%d", what, 2 * size);
    if (n != 2 * size) expect(" but %d", n);
    done(code);
}

/* The type is used, and replaced by the next one made of it. */
static MPI_Datatype next(MPI_Datatype old, MPI_Datatype new) {
    moves(new, text);
    if (old != MPI_INT && old != MPI_DOUBLE && old != MPI_FLOAT && old != MPI_BYTE) MPI_Type_free(&old);
    return new;
}

static void named(void) {
#define NAMED(t)                                                                                                       \
    {                                                                                                                  \
        MPI_##t, #t                                                                                                    \
    }
    struct {
        MPI_Datatype type;
        const char *name;
    } all[] = {NAMED(CHAR), NAMED(SHORT), NAMED(INT), NAMED(LONG), NAMED(UNSIGNED_CHAR), NAMED(UNSIGNED_SHORT), NAMED(UNSIGNED),
               NAMED(UNSIGNED_LONG), NAMED(FLOAT), NAMED(DOUBLE), NAMED(LONG_DOUBLE), NAMED(BYTE), NAMED(WCHAR),
               NAMED(SIGNED_CHAR), NAMED(INT8_T), NAMED(INT16_T), NAMED(INT32_T), NAMED(INT64_T), NAMED(UINT8_T),
               NAMED(UINT16_T), NAMED(UINT32_T), NAMED(UINT64_T), NAMED(C_BOOL), NAMED(C_DOUBLE_COMPLEX), NAMED(AINT),
               NAMED(OFFSET), NAMED(COUNT), NAMED(FLOAT_INT), NAMED(2INT),
               NAMED(INTEGER), NAMED(REAL), NAMED(DOUBLE_PRECISION), NAMED(COMPLEX), NAMED(LOGICAL), NAMED(CHARACTER)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) moves(all[i].type, all[i].name);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    char path[4096];
    snprintf(path, sizeof path, "%s/file-%d", argv[2], rank);
    data = calloc(1, 1 << 22);
    data += 1 << 20;
    int code = MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    expect("File_open handle=1 name=%s comm=%d mode=rdwr+create granted number=-1", path, rank), done(code);
    named();
    MPI_Datatype t = MPI_INT, n, pair[2];
    int lengths[] = {2, 1, 3}, places[] = {0, 4, 6};
    MPI_Aint at[] = {0, 400, 900};
    strcpy(text, "INT");
    MPI_Type_contiguous(3, t, &n), around("contiguous(3"), t = next(t, n);
    MPI_Type_vector(2, 2, 3, t, &n), around("vector(2;2;3"), t = next(t, n);
    MPI_Type_dup(t, &n), t = next(t, n);
    MPI_Type_create_hvector(2, 1, 100, t, &n), around("hvector(2;1;100"), t = next(t, n);
    MPI_Type_indexed(3, lengths, places, t, &n), around("indexed(2,1,3;0,4,6"), t = next(t, n);
    MPI_Type_dup(t, &n), t = next(t, n);
    MPI_Type_dup(t, &n), t = next(t, n);
    MPI_Type_free(&t);
    strcpy(text, "DOUBLE"), t = MPI_DOUBLE;
    MPI_Type_create_hindexed(3, lengths, at, t, &n), around("hindexed(2,1,3;0,400,900"), t = next(t, n);
    MPI_Type_create_indexed_block(3, 2, places, t, &n), around("indexed_block(2;0,4,6"), t = next(t, n);
    at[0] = -80, at[1] = 10000, at[2] = 90000;
    MPI_Type_create_hindexed_block(3, 1, at, t, &n), around("hindexed_block(1;-80,10000,90000"), t = next(t, n);
    MPI_Type_create_resized(t, -80, 200000, &n), around("resized(-80;200000"), t = next(t, n);
    MPI_Type_free(&t);
    /* Two different types in one, one of them twice. */
    MPI_Type_vector(2, 1, 2, MPI_SHORT, &pair[0]);
    MPI_Type_contiguous(2, pair[0], &pair[1]);
    MPI_Datatype parts[] = {pair[1], pair[0], MPI_CHAR};
    at[0] = 0, at[1] = 64, at[2] = 128;
    MPI_Type_create_struct(3, lengths, at, parts, &t);
    MPI_Type_free(&pair[0]), MPI_Type_free(&pair[1]);
    strcpy(text, "struct(2,1,3;0,64,128;contiguous(2;vector(2;1;2;SHORT)),vector(2;1;2;SHORT),CHAR)");
    int sizes[] = {4, 6}, subsizes[] = {2, 3}, starts[] = {1, 2};
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, t, &n), around("subarray(4,6;2,3;1,2;c"), t = next(t, n);
    MPI_Type_free(&t);
    strcpy(text, "FLOAT"), t = MPI_FLOAT;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, t, &n), around("subarray(4,6;2,3;1,2;fortran");
    t = next(t, n);
    int spread[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, how[] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[] = {2, 1};
    MPI_Type_create_darray(2, 1, 2, sizes, spread, how, grid, MPI_ORDER_C, t, &n);
    around("darray(2;1;4,6;Block,Cyclic;-,2;2,1;c"), t = next(t, n);
    MPI_Type_free(&t);
    strcpy(text, "BYTE"), t = MPI_BYTE;
    int none[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK}, plain[] = {MPI_DISTRIBUTE_DFLT_DARG, 5}, row[] = {1, 2};
    MPI_Type_create_darray(2, 0, 2, sizes, none, plain, row, MPI_ORDER_FORTRAN, t, &n);
    around("darray(2;0;4,6;None,Block;-,5;1,2;fortran"), t = next(t, n);
    MPI_Type_free(&t);
    MPI_Type_create_f90_real(6, 30, &t), moves(t, "F90_REAL(6,30)");
    MPI_Type_create_f90_integer(9, &t), moves(t, "F90_INTEGER(9)");
    MPI_Type_contiguous(2, t, &n), strcpy(text, "contiguous(2;F90_INTEGER(9))"), moves(n, text), MPI_Type_free(&n);
#if MPI_VERSION >= 4
    /* The same with large counts. MPICH 4.0 cannot move data of such types. */
    only_asked = 1;
    MPI_Count counts[] = {2, 1, 3}, distances[] = {0, 4, 6}, large[] = {4, 6}, part[] = {2, 3}, from[] = {1, 2};
    strcpy(text, "INT"), t = MPI_INT;
    MPI_Type_contiguous_c(3, t, &n), around("contiguous(3"), t = next(t, n);
    MPI_Type_vector_c(2, 2, 3, t, &n), around("vector(2;2;3"), t = next(t, n);
    MPI_Type_create_hvector_c(2, 1, 100, t, &n), around("hvector(2;1;100"), t = next(t, n);
    MPI_Type_indexed_c(3, counts, distances, t, &n), around("indexed(2,1,3;0,4,6"), t = next(t, n);
    MPI_Type_free(&t);
    strcpy(text, "INT"), t = MPI_INT;
    MPI_Type_create_indexed_block_c(3, 2, distances, t, &n), around("indexed_block(2;0,4,6"), t = next(t, n);
    distances[1] = 400, distances[2] = 900;
    MPI_Type_create_hindexed_c(3, counts, distances, t, &n), around("hindexed(2,1,3;0,400,900"), t = next(t, n);
    distances[1] = 9000, distances[2] = 20000;
    MPI_Type_create_hindexed_block_c(3, 1, distances, t, &n), around("hindexed_block(1;0,9000,20000"), t = next(t, n);
    MPI_Type_create_resized_c(t, 0, 40000, &n), around("resized(0;40000"), t = next(t, n);
    MPI_Type_free(&t);
    strcpy(text, "INT"), t = MPI_INT;
    MPI_Type_create_subarray_c(2, large, part, from, MPI_ORDER_C, t, &n), around("subarray(4,6;2,3;1,2;c"), t = next(t, n);
    MPI_Type_create_darray_c(2, 1, 2, large, spread, how, grid, MPI_ORDER_C, t, &n);
    around("darray(2;1;4,6;Block,Cyclic;-,2;2,1;c"), t = next(t, n);
    MPI_Type_free(&t);
    distances[1] = 64, distances[2] = 128;
    MPI_Datatype simple[] = {MPI_INT, MPI_SHORT, MPI_CHAR};
    MPI_Type_create_struct_c(3, counts, distances, simple, &t);
    moves(t, "struct(2,1,3;0,64,128;INT,SHORT,CHAR)"), MPI_Type_free(&t);
    only_asked = 0;
#endif
    /* Handles come back for other types: a thousand of them. */
    for (int i = 0; i < 1000; i++) {
        MPI_Type_contiguous(1 + i % 3, MPI_SHORT, &t);
        snprintf(text, sizeof text, "contiguous(%d;SHORT)", 1 + i % 3);
        moves(t, text);
        MPI_Type_free(&t);
    }
    MPI_Type_vector(4, 1, 2, MPI_INT, &t), MPI_Type_commit(&t);
    code = MPI_File_set_view(file, 40, MPI_INT, t, "native", MPI_INFO_NULL);
    expect("File_set_view handle=1 offset=40 etype=INT filetype=vector(4;1;2;INT) granted"), done(code);
    MPI_Type_free(&t);
    moves(MPI_INT, "INT");
    code = MPI_File_close(&file);
    expect("File_close handle=1"), done(code);
    printf("%d done\n", rank);
    end();
    return 0;
}
