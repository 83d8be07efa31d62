#include "shim.h"

#define STR2(x) #x
#define STR(x) STR2(x)

const MPI_Datatype beff_double = MPI_DOUBLE;
const MPI_Datatype beff_byte = MPI_BYTE;
const MPI_Datatype beff_uint64 = MPI_UINT64_T;
const MPI_Info beff_info_null = MPI_INFO_NULL;
const MPI_Comm beff_comm_null = MPI_COMM_NULL;
const int beff_undefined = MPI_UNDEFINED;
const int beff_proc_null = MPI_PROC_NULL;
const int beff_comm_type_shared = MPI_COMM_TYPE_SHARED;

const int beff_mode_create = MPI_MODE_CREATE;
const int beff_mode_excl = MPI_MODE_EXCL;
const int beff_mode_rdwr = MPI_MODE_RDWR;
const int beff_mode_rdonly = MPI_MODE_RDONLY;
const int beff_mode_unique_open = MPI_MODE_UNIQUE_OPEN;

const int beff_max_error_string = MPI_MAX_ERROR_STRING;
const int beff_max_info_key = MPI_MAX_INFO_KEY;
const int beff_max_info_val = MPI_MAX_INFO_VAL;
const int beff_max_library_version_string = MPI_MAX_LIBRARY_VERSION_STRING;

#if defined(MPI_ABI_VERSION) && MPI_ABI_VERSION > 0
#define STANDARD_ABI 1
#else
#define STANDARD_ABI 0
#endif
const int beff_standard_abi = STANDARD_ABI;

#if STANDARD_ABI
const char *const beff_built_with =
    "the standard ABI " STR(MPI_ABI_VERSION) "." STR(MPI_ABI_SUBVERSION) " of MPI-" STR(MPI_VERSION);
#elif defined(OMPI_MAJOR_VERSION)
const char *const beff_built_with =
    "Open MPI " STR(OMPI_MAJOR_VERSION) "." STR(OMPI_MINOR_VERSION) "." STR(OMPI_RELEASE_VERSION);
#elif defined(I_MPI_VERSION)
const char *const beff_built_with = "Intel MPI " I_MPI_VERSION;
#elif defined(MVAPICH2_VERSION)
const char *const beff_built_with = "MVAPICH2 " MVAPICH2_VERSION;
#elif defined(MPICH_VERSION)
const char *const beff_built_with = "MPICH " MPICH_VERSION;
#else
const char *const beff_built_with = "an MPI library of standard " STR(MPI_VERSION) "." STR(MPI_SUBVERSION);
#endif

/* All classes of recorded calls (beff_trace::ErrorClass). */
#define CLASSES(X) \
    X(MPI_ERR_OTHER) X(MPI_ERR_UNKNOWN) X(MPI_ERR_INTERN) X(MPI_ERR_ACCESS) X(MPI_ERR_AMODE) X(MPI_ERR_ARG) \
    X(MPI_ERR_BAD_FILE) X(MPI_ERR_BUFFER) X(MPI_ERR_COMM) X(MPI_ERR_CONVERSION) X(MPI_ERR_COUNT) \
    X(MPI_ERR_DUP_DATAREP) X(MPI_ERR_FILE) X(MPI_ERR_FILE_EXISTS) X(MPI_ERR_FILE_IN_USE) X(MPI_ERR_GROUP) \
    X(MPI_ERR_INFO) X(MPI_ERR_INFO_KEY) X(MPI_ERR_INFO_NOKEY) X(MPI_ERR_INFO_VALUE) X(MPI_ERR_IN_STATUS) \
    X(MPI_ERR_IO) X(MPI_ERR_NAME) X(MPI_ERR_NO_MEM) X(MPI_ERR_NO_SPACE) X(MPI_ERR_NO_SUCH_FILE) X(MPI_ERR_NOT_SAME) \
    X(MPI_ERR_OP) X(MPI_ERR_PENDING) X(MPI_ERR_QUOTA) X(MPI_ERR_RANK) X(MPI_ERR_READ_ONLY) X(MPI_ERR_REQUEST) \
    X(MPI_ERR_TAG) X(MPI_ERR_TRUNCATE) X(MPI_ERR_TYPE) X(MPI_ERR_UNSUPPORTED_DATAREP) \
    X(MPI_ERR_UNSUPPORTED_OPERATION)

const char *beff_class_name(int error_class)
{
    switch (error_class) {
#define NAME(c) case c: return #c;
        CLASSES(NAME)
    default: return "an unnamed MPI error class";
    }
}

int beff_cause_of_class(int error_class)
{
    switch (error_class) {
    case MPI_ERR_NO_SPACE: case MPI_ERR_QUOTA:
        return BEFF_CAUSE_NO_SPACE;
    case MPI_ERR_NO_SUCH_FILE: case MPI_ERR_FILE_EXISTS: case MPI_ERR_BAD_FILE: case MPI_ERR_ACCESS: case MPI_ERR_READ_ONLY:
        return BEFF_CAUSE_PATH;
    case MPI_ERR_UNSUPPORTED_OPERATION: case MPI_ERR_UNSUPPORTED_DATAREP:
        return BEFF_CAUSE_UNSUPPORTED;
    default:
        return BEFF_CAUSE_OTHER;
    }
}

int beff_iallreduce_in_place(void *buffer, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallreduce(MPI_IN_PLACE, buffer, count, type, op, comm, request);
}

#ifdef OPEN_MPI
/* MPIX_ in Open MPI 4, MPI_ in 5, and one soname: weak, so that a program built with either starts with the library of the other. */
#pragma weak MPI_Allreduce_init
#pragma weak MPIX_Allreduce_init
int MPI_Allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request *);
int MPIX_Allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request *);
#endif

int beff_allreduce_init_in_place(void *buffer, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
#ifdef OPEN_MPI
    if (MPI_Allreduce_init)
        return MPI_Allreduce_init(MPI_IN_PLACE, buffer, count, type, op, comm, MPI_INFO_NULL, request);
    if (MPIX_Allreduce_init)
        return MPIX_Allreduce_init(MPI_IN_PLACE, buffer, count, type, op, comm, MPI_INFO_NULL, request);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
#elif MPI_VERSION >= 4
    return MPI_Allreduce_init(MPI_IN_PLACE, buffer, count, type, op, comm, MPI_INFO_NULL, request);
#else
    (void)buffer, (void)count, (void)type, (void)op, (void)comm;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
#endif
}
