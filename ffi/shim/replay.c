#include "replay.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DATA_BEFORE_READ(X) \
    X(read_at) X(read_at_all) X(write_at) X(write_at_all) X(iread_at) X(iread_at_all) X(iwrite_at) X(iwrite_at_all) \
    X(read_at_all_begin) E(read_at_all_end) X(write_at_all_begin) E(write_at_all_end)
#define DATA_FROM_READ(X) \
    X(read) X(read_all) X(write) X(write_all) X(iread) X(iread_all) X(iwrite) X(iwrite_all) \
    X(read_all_begin) E(read_all_end) X(write_all_begin) E(write_all_end) \
    X(read_shared) X(write_shared) X(iread_shared) X(iwrite_shared) X(read_ordered) X(write_ordered) \
    X(read_ordered_begin) E(read_ordered_end) X(write_ordered_begin) E(write_ordered_end)
#define DATA(X) DATA_BEFORE_READ(X) DATA_FROM_READ(X)

#define PLAIN(name) (beff_any_function)MPI_File_##name,
#if MPI_VERSION >= 4
#define LARGE(name) (beff_any_function)MPI_File_##name##_c,
#else
#define LARGE(name) NULL,
#endif

#define E(name) PLAIN(name)
const beff_any_function beff_data_function[BEFF_DATA_FUNCTIONS] = {DATA(PLAIN)};
#undef E
#define E(name) NULL,
const beff_any_function beff_data_function_c[BEFF_DATA_FUNCTIONS] = {DATA(LARGE)};

#if MPI_VERSION >= 4
const beff_type_extent_c beff_get_type_extent_c = MPI_File_get_type_extent_c;
#else
const beff_type_extent_c beff_get_type_extent_c = NULL;
#endif
/* Intel MPI declares the requests without const. */
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
const beff_get_status_any beff_request_get_status_any = (beff_get_status_any)MPI_Request_get_status_any;
const beff_get_status_all beff_request_get_status_all = (beff_get_status_all)MPI_Request_get_status_all;
const beff_get_status_some beff_request_get_status_some = (beff_get_status_some)MPI_Request_get_status_some;
#else
const beff_get_status_any beff_request_get_status_any = NULL;
const beff_get_status_all beff_request_get_status_all = NULL;
const beff_get_status_some beff_request_get_status_some = NULL;
#endif

const int beff_amodes[9] = {MPI_MODE_RDONLY, MPI_MODE_RDWR, MPI_MODE_WRONLY, MPI_MODE_CREATE, MPI_MODE_EXCL,
                            MPI_MODE_DELETE_ON_CLOSE, MPI_MODE_UNIQUE_OPEN, MPI_MODE_APPEND, MPI_MODE_SEQUENTIAL};
const int beff_seek_set = MPI_SEEK_SET, beff_seek_cur = MPI_SEEK_CUR, beff_seek_end = MPI_SEEK_END;
const int beff_order_c = MPI_ORDER_C, beff_order_fortran = MPI_ORDER_FORTRAN;
const int beff_distribute_none = MPI_DISTRIBUTE_NONE, beff_distribute_block = MPI_DISTRIBUTE_BLOCK;
const int beff_distribute_cyclic = MPI_DISTRIBUTE_CYCLIC, beff_distribute_dflt_darg = MPI_DISTRIBUTE_DFLT_DARG;
const int beff_max_datarep_string = MPI_MAX_DATAREP_STRING;
const int beff_combiner_named = MPI_COMBINER_NAMED;
const MPI_Datatype beff_datatype_null = MPI_DATATYPE_NULL;
const int beff_err_in_status = MPI_ERR_IN_STATUS, beff_err_pending = MPI_ERR_PENDING, beff_err_other = MPI_ERR_OTHER;

static void nothing(MPI_File *file, int *code, ...)
{
    (void)file;
    (void)code;
}

int beff_create_errhandler(MPI_Errhandler *made)
{
    return MPI_File_create_errhandler(nothing, made);
}

static int fits(long long number)
{
    return number >= INT_MIN && number <= INT_MAX;
}

static int all_fit(long long count, const long long *numbers)
{
    for (long long n = 0; n < count; n++)
        if (!fits(numbers[n]))
            return 0;
    return 1;
}

/* Copies an array of numbers as another type; NULL only if out of memory, also for an empty array. */
#define COPY(name, type) \
    static type *name(long long count, const long long *numbers) \
    { \
        type *copy = malloc(((size_t)count + 1) * sizeof *copy); \
        for (long long n = 0; copy && n < count; n++) \
            copy[n] = (type)numbers[n]; \
        return copy; \
    }
COPY(ints, int)
COPY(aints, MPI_Aint)
#if MPI_VERSION >= 4
COPY(counts, MPI_Count)
#endif

int beff_type_contiguous(long long count, MPI_Datatype of, MPI_Datatype *made)
{
    if (fits(count))
        return MPI_Type_contiguous((int)count, of, made);
#if MPI_VERSION >= 4
    return MPI_Type_contiguous_c(count, of, made);
#else
    return -1;
#endif
}

int beff_type_vector(long long count, long long block, long long stride, MPI_Datatype of, MPI_Datatype *made)
{
    if (fits(count) && fits(block) && fits(stride))
        return MPI_Type_vector((int)count, (int)block, (int)stride, of, made);
#if MPI_VERSION >= 4
    return MPI_Type_vector_c(count, block, stride, of, made);
#else
    return -1;
#endif
}

int beff_type_hvector(long long count, long long block, long long stride, MPI_Datatype of, MPI_Datatype *made)
{
    if (fits(count) && fits(block))
        return MPI_Type_create_hvector((int)count, (int)block, stride, of, made);
#if MPI_VERSION >= 4
    return MPI_Type_create_hvector_c(count, block, stride, of, made);
#else
    return -1;
#endif
}

/* Calls a constructor with arrays of block lengths (or one for all) and displacements. */
#if MPI_VERSION >= 4
#define LARGE_ARRAYS(call) \
    MPI_Count *b = counts(count, blocks), *d = counts(count, displacements); \
    int code = b && d ? call : MPI_ERR_NO_MEM; \
    free(b); \
    free(d); \
    return code;
#else
#define LARGE_ARRAYS(call) return -1;
#endif
#define ARRAYS(displaced, type, call) \
    int *b = ints(count, blocks); \
    type *d = displaced(count, displacements); \
    int code = b && d ? call : MPI_ERR_NO_MEM; \
    free(b); \
    free(d); \
    return code;

int beff_type_indexed(long long count, const long long *blocks, const long long *displacements, MPI_Datatype of,
                      MPI_Datatype *made)
{
    if (fits(count) && all_fit(count, blocks) && all_fit(count, displacements)) {
        ARRAYS(ints, int, MPI_Type_indexed((int)count, b, d, of, made))
    }
    LARGE_ARRAYS(MPI_Type_indexed_c(count, b, d, of, made))
}

int beff_type_hindexed(long long count, const long long *blocks, const long long *displacements, MPI_Datatype of,
                       MPI_Datatype *made)
{
    if (fits(count) && all_fit(count, blocks)) {
        ARRAYS(aints, MPI_Aint, MPI_Type_create_hindexed((int)count, b, d, of, made))
    }
    LARGE_ARRAYS(MPI_Type_create_hindexed_c(count, b, d, of, made))
}

int beff_type_indexed_block(long long count, long long block, const long long *displacements, MPI_Datatype of,
                            MPI_Datatype *made)
{
    const long long *blocks = displacements;
    if (fits(count) && fits(block) && all_fit(count, displacements)) {
        ARRAYS(ints, int, MPI_Type_create_indexed_block((int)count, (int)block, d, of, made))
    }
    LARGE_ARRAYS(MPI_Type_create_indexed_block_c(count, block, d, of, made))
}

int beff_type_hindexed_block(long long count, long long block, const long long *displacements, MPI_Datatype of,
                             MPI_Datatype *made)
{
    const long long *blocks = displacements;
    if (fits(count) && fits(block)) {
        ARRAYS(aints, MPI_Aint, MPI_Type_create_hindexed_block((int)count, (int)block, d, of, made))
    }
    LARGE_ARRAYS(MPI_Type_create_hindexed_block_c(count, block, d, of, made))
}

int beff_type_struct(long long count, const long long *blocks, const long long *displacements, const MPI_Datatype *of,
                     MPI_Datatype *made)
{
    if (fits(count) && all_fit(count, blocks)) {
        ARRAYS(aints, MPI_Aint, MPI_Type_create_struct((int)count, b, d, of, made))
    }
    LARGE_ARRAYS(MPI_Type_create_struct_c(count, b, d, of, made))
}

int beff_type_subarray(int dimensions, const long long *sizes, const long long *subsizes, const long long *starts, int order,
                       MPI_Datatype of, MPI_Datatype *made)
{
    int code = MPI_ERR_NO_MEM;
    if (all_fit(dimensions, sizes) && all_fit(dimensions, subsizes) && all_fit(dimensions, starts)) {
        int *a = ints(dimensions, sizes), *b = ints(dimensions, subsizes), *c = ints(dimensions, starts);
        if (a && b && c)
            code = MPI_Type_create_subarray(dimensions, a, b, c, order, of, made);
        free(a);
        free(b);
        free(c);
        return code;
    }
#if MPI_VERSION >= 4
    MPI_Count *a = counts(dimensions, sizes), *b = counts(dimensions, subsizes), *c = counts(dimensions, starts);
    if (a && b && c)
        code = MPI_Type_create_subarray_c(dimensions, a, b, c, order, of, made);
    free(a);
    free(b);
    free(c);
    return code;
#else
    return -1;
#endif
}

int beff_type_darray(int ranks, int rank, int dimensions, const long long *sizes, const int *distributions,
                     const int *arguments, const int *grid, int order, MPI_Datatype of, MPI_Datatype *made)
{
    int code = MPI_ERR_NO_MEM;
    if (all_fit(dimensions, sizes)) {
        int *plain = ints(dimensions, sizes);
        if (plain)
            code = MPI_Type_create_darray(ranks, rank, dimensions, plain, distributions, arguments, grid, order, of, made);
        free(plain);
        return code;
    }
#if MPI_VERSION >= 4
    MPI_Count *large = counts(dimensions, sizes);
    if (large)
        code = MPI_Type_create_darray_c(ranks, rank, dimensions, large, distributions, arguments, grid, order, of, made);
    free(large);
    return code;
#else
    return -1;
#endif
}
