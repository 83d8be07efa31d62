/* Parts that need C: constants of mpi.h, the layout of a status, and thread-local memory without a call of the dynamic linker.
 * No symbol of the MPI library may be referenced here, because most processes that load this have no MPI. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct beff_thread {
    void *lane;
    int depth;
};
static __thread struct beff_thread own __attribute__((tls_model("initial-exec")));
struct beff_thread *beff_thread(void) { return &own; }

/* Handles: a number, or the name of a data symbol, in the order of `PredefinedHandles` in mpi.rs. */
#ifdef OPEN_MPI
#define HANDLE(value, symbol) symbol
const char *const beff_handle_symbols[] = {
#else
#define HANDLE(value, symbol) (uintptr_t)(value)
const char *const beff_handle_symbols[] = {0};
const uintptr_t beff_handle_values[] = {
#endif
    HANDLE(MPI_COMM_WORLD, "ompi_mpi_comm_world"),
    HANDLE(MPI_COMM_NULL, "ompi_mpi_comm_null"),
    HANDLE(MPI_DATATYPE_NULL, "ompi_mpi_datatype_null"),
    HANDLE(MPI_BYTE, "ompi_mpi_byte"),
    HANDLE(MPI_REQUEST_NULL, "ompi_request_null"),
    HANDLE(MPI_INFO_NULL, "ompi_mpi_info_null"),
    HANDLE(MPI_ERRORS_ARE_FATAL, "ompi_mpi_errors_are_fatal"),
    HANDLE(MPI_ERRORS_RETURN, "ompi_mpi_errors_return"),
};
/* Assumptions of mpi.rs for each MPI. */
#if defined(MPI_ABI_VERSION) && MPI_ABI_VERSION > 0
const uintptr_t beff_file_null = (uintptr_t)MPI_FILE_NULL;
_Static_assert(sizeof(MPI_Datatype) == 8 && sizeof(MPI_Request) == 8, "handles are pointers");
_Static_assert(MPI_STATUS_IGNORE == 0 && MPI_STATUSES_IGNORE == 0, "ignored statuses");
#elif defined(OPEN_MPI)
const uintptr_t beff_handle_values[8] = {0};
_Static_assert(sizeof(MPI_Datatype) == 8 && sizeof(MPI_Request) == 8, "handles are pointers");
_Static_assert(offsetof(MPI_Status, _ucount) == 16 && sizeof(size_t) == 8, "bytes in a status");
_Static_assert(MPI_STATUS_IGNORE == 0 && MPI_STATUSES_IGNORE == 0, "ignored statuses");
#elif defined(MPICH_NUMVERSION) || defined(MPICH_VERSION) || defined(I_MPI_VERSION) || defined(MVAPICH2_VERSION)
_Static_assert(sizeof(MPI_Datatype) == 4 && sizeof(MPI_Request) == 4, "handles are numbers");
_Static_assert(offsetof(MPI_Status, count_lo) == 0 && offsetof(MPI_Status, count_hi_and_cancelled) == 4, "bytes in a status");
_Static_assert((uintptr_t)MPI_STATUS_IGNORE == 1 && (uintptr_t)MPI_STATUSES_IGNORE == 1, "ignored statuses");
#else
#error "This MPI is neither MPICH or a derivative nor Open MPI: the layout of its MPI_Status is unknown."
#endif
_Static_assert(sizeof(MPI_File) == 8 && sizeof(MPI_Status) <= 64, "files and statuses");

const int beff_status_size = sizeof(MPI_Status);

int beff_status_error(const void *status) { return ((const MPI_Status *)status)->MPI_ERROR; }

const int beff_combiners[] = {
    MPI_COMBINER_NAMED,         MPI_COMBINER_DUP,           MPI_COMBINER_CONTIGUOUS,      MPI_COMBINER_VECTOR,
    MPI_COMBINER_HVECTOR,       MPI_COMBINER_INDEXED,       MPI_COMBINER_HINDEXED,        MPI_COMBINER_INDEXED_BLOCK,
    MPI_COMBINER_HINDEXED_BLOCK, MPI_COMBINER_STRUCT,       MPI_COMBINER_SUBARRAY,        MPI_COMBINER_DARRAY,
    MPI_COMBINER_RESIZED,       MPI_COMBINER_F90_REAL,      MPI_COMBINER_F90_COMPLEX,     MPI_COMBINER_F90_INTEGER,
    /* The _INTEGER combiners of removed Fortran functions precede their successors in every mpi.h. The standard ABI has none: there
     * these are the numbers of combiners above, which are found first. */
    MPI_COMBINER_HVECTOR - 1,   MPI_COMBINER_HINDEXED - 1,  MPI_COMBINER_STRUCT - 1,
};

const int beff_modes[] = {
    MPI_MODE_RDONLY, MPI_MODE_RDWR,        MPI_MODE_WRONLY, MPI_MODE_CREATE,     MPI_MODE_EXCL,
    MPI_MODE_DELETE_ON_CLOSE, MPI_MODE_UNIQUE_OPEN, MPI_MODE_APPEND, MPI_MODE_SEQUENTIAL,
};
const int beff_whences[] = {MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END};
const int beff_distributions[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
const int beff_default_argument = MPI_DISTRIBUTE_DFLT_DARG;
const int beff_order_fortran = MPI_ORDER_FORTRAN;
const int beff_undefined = MPI_UNDEFINED;
const int beff_err_in_status = MPI_ERR_IN_STATUS;
const int beff_err_pending = MPI_ERR_PENDING;
const int beff_info_key_bytes = MPI_MAX_INFO_KEY + 1;
const int beff_name_bytes = MPI_MAX_OBJECT_NAME + 1;

struct beff_class {
    const char *name;
    int value;
};
#define CLASS(name) {#name, name}
const struct beff_class beff_classes[] = {
    CLASS(MPI_ERR_OTHER), CLASS(MPI_ERR_UNKNOWN), CLASS(MPI_ERR_INTERN), CLASS(MPI_ERR_ACCESS), CLASS(MPI_ERR_AMODE),
    CLASS(MPI_ERR_ARG), CLASS(MPI_ERR_BAD_FILE), CLASS(MPI_ERR_BUFFER), CLASS(MPI_ERR_COMM), CLASS(MPI_ERR_CONVERSION),
    CLASS(MPI_ERR_COUNT), CLASS(MPI_ERR_DUP_DATAREP), CLASS(MPI_ERR_FILE), CLASS(MPI_ERR_FILE_EXISTS),
    CLASS(MPI_ERR_FILE_IN_USE), CLASS(MPI_ERR_GROUP), CLASS(MPI_ERR_INFO), CLASS(MPI_ERR_INFO_KEY),
    CLASS(MPI_ERR_INFO_NOKEY), CLASS(MPI_ERR_INFO_VALUE), CLASS(MPI_ERR_IN_STATUS), CLASS(MPI_ERR_IO), CLASS(MPI_ERR_NAME),
    CLASS(MPI_ERR_NO_MEM), CLASS(MPI_ERR_NO_SPACE), CLASS(MPI_ERR_NO_SUCH_FILE), CLASS(MPI_ERR_NOT_SAME), CLASS(MPI_ERR_OP),
    CLASS(MPI_ERR_PENDING), CLASS(MPI_ERR_QUOTA), CLASS(MPI_ERR_RANK), CLASS(MPI_ERR_READ_ONLY), CLASS(MPI_ERR_REQUEST),
    CLASS(MPI_ERR_TAG), CLASS(MPI_ERR_TRUNCATE), CLASS(MPI_ERR_TYPE), CLASS(MPI_ERR_UNSUPPORTED_DATAREP),
    CLASS(MPI_ERR_UNSUPPORTED_OPERATION), {0, 0},
};
