/* Parts of mpi.h for the replay that bindgen cannot read: functions that some libraries lack, constants, and types by name. */
#ifndef BEFF_REPLAY_H
#define BEFF_REPLAY_H
#include <mpi.h>

typedef void (*beff_any_function)(void);
/* Data access routines in the order of the standard (as in beff_trace::Function), and their large-count variants; null if the
 * library lacks them. The caller knows the prototypes. */
enum beff_data_functions { BEFF_DATA_FUNCTIONS = 34 };
extern const beff_any_function beff_data_function[BEFF_DATA_FUNCTIONS];
extern const beff_any_function beff_data_function_c[BEFF_DATA_FUNCTIONS];

/* Null if the library lacks them. */
typedef int (*beff_type_extent_c)(MPI_File, MPI_Datatype, MPI_Count *);
typedef int (*beff_get_status_any)(int, const MPI_Request *, int *, int *, MPI_Status *);
typedef int (*beff_get_status_all)(int, const MPI_Request *, int *, MPI_Status *);
typedef int (*beff_get_status_some)(int, const MPI_Request *, int *, int *, MPI_Status *);
extern const beff_type_extent_c beff_get_type_extent_c;
extern const beff_get_status_any beff_request_get_status_any;
extern const beff_get_status_all beff_request_get_status_all;
extern const beff_get_status_some beff_request_get_status_some;

/* Bits of an access mode, in the order rdonly, rdwr, wronly, create, excl, delete_on_close, unique_open, append, sequential. */
extern const int beff_amodes[9];
extern const int beff_seek_set, beff_seek_cur, beff_seek_end;
extern const int beff_order_c, beff_order_fortran;
extern const int beff_distribute_none, beff_distribute_block, beff_distribute_cyclic, beff_distribute_dflt_darg;
extern const int beff_max_datarep_string;
extern const int beff_combiner_named;
extern const MPI_Datatype beff_datatype_null;
extern const int beff_err_in_status, beff_err_pending, beff_err_other;

/* The predefined type of a name without MPI_; MPI_DATATYPE_NULL if the library lacks it. */
MPI_Datatype beff_named_type(const char *name);

/* Constructors with 64-bit numbers: the plain function if all fit an int, else the large-count variant; -1 if the library lacks
 * it (error codes are not negative). */
int beff_type_contiguous(long long count, MPI_Datatype of, MPI_Datatype *made);
int beff_type_vector(long long count, long long block, long long stride, MPI_Datatype of, MPI_Datatype *made);
int beff_type_hvector(long long count, long long block, long long stride, MPI_Datatype of, MPI_Datatype *made);
int beff_type_indexed(long long count, const long long *blocks, const long long *displacements, MPI_Datatype of,
                      MPI_Datatype *made);
int beff_type_hindexed(long long count, const long long *blocks, const long long *displacements, MPI_Datatype of,
                       MPI_Datatype *made);
int beff_type_indexed_block(long long count, long long block, const long long *displacements, MPI_Datatype of,
                            MPI_Datatype *made);
int beff_type_hindexed_block(long long count, long long block, const long long *displacements, MPI_Datatype of,
                             MPI_Datatype *made);
int beff_type_struct(long long count, const long long *blocks, const long long *displacements, const MPI_Datatype *of,
                     MPI_Datatype *made);
int beff_type_subarray(int dimensions, const long long *sizes, const long long *subsizes, const long long *starts, int order,
                       MPI_Datatype of, MPI_Datatype *made);
int beff_type_darray(int ranks, int rank, int dimensions, const long long *sizes, const int *distributions,
                     const int *arguments, const int *grid, int order, MPI_Datatype of, MPI_Datatype *made);

/* MPI_File_create_errhandler with an empty function. */
int beff_create_errhandler(MPI_Errhandler *made);
#endif
