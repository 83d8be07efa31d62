/* Macros of mpi.h as symbols, and the few calls that differ between MPI libraries. */
#ifndef BEFF_SHIM_H
#define BEFF_SHIM_H
#include <mpi.h>

extern const MPI_Datatype beff_double;
extern const MPI_Datatype beff_byte;
extern const MPI_Datatype beff_uint64;
extern const MPI_Info beff_info_null;
extern const MPI_Comm beff_comm_null;
extern const int beff_undefined;
extern const int beff_proc_null;
extern const int beff_comm_type_shared;

extern const int beff_mode_create;
extern const int beff_mode_excl;
extern const int beff_mode_rdwr;
extern const int beff_mode_rdonly;
extern const int beff_mode_unique_open;

extern const int beff_max_error_string;
extern const int beff_max_info_key;
extern const int beff_max_info_val;
extern const int beff_max_library_version_string;

/* 1 if the header is that of the standard ABI of MPI-5: any library that implements it may be loaded. */
extern const int beff_standard_abi;
/* "Open MPI 4.1.4", "MPICH 4.0.2", ...: the header this file was compiled with. */
extern const char *const beff_built_with;

enum beff_cause { BEFF_CAUSE_OTHER = 0, BEFF_CAUSE_NO_SPACE = 1, BEFF_CAUSE_PATH = 2, BEFF_CAUSE_UNSUPPORTED = 3 };
/* One of the causes above for an error class of MPI-3.1 section 13.7. */
int beff_cause_of_class(int error_class);
/* Name of an error class in the standard, e.g. "MPI_ERR_OTHER". */
const char *beff_class_name(int error_class);
/* In place: in some libraries MPI_IN_PLACE is not an address constant. */
int beff_iallreduce_in_place(void *buffer, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request);
/* The same as a persistent request (MPI-4.1, section 6.13.6; MPIX_ in Open MPI 4); MPI_REQUEST_NULL where the library has none. */
int beff_allreduce_init_in_place(void *buffer, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request);
/* Offsets of messages: base, then increased by `advance`, and reset to 0 beyond last. */
struct beff_bare_walk {
    long base, advance, last;
};
/* Loops of b_eff as a C programmer writes them (bare.c); seconds of this rank, -1 if a call failed. */
double beff_bare_ping_pong(const char *out, char *in, struct beff_bare_walk walk, int bytes, long iterations, int begins,
                           int peer, MPI_Comm comm);
double beff_bare_sendrecv(const char *out, char *in, struct beff_bare_walk walk, int bytes, long iterations, int left,
                          int right, MPI_Comm comm);
/* n transfers of `bytes` each with the windows of one buffer in turn, at offsets increasing by `stride` or at the file pointer. */
struct beff_bare_loop {
    int bytes;
    long windows;
    MPI_Offset offset, stride;
    long n;
    int explicit_offsets, collective;
};
/* Loops of MPI-IO as a C programmer writes them (bare_file.c); seconds of this rank, -1 if a call failed or the last transfer
 * was short. */
double beff_bare_file_write(MPI_File file, const char *buffer, struct beff_bare_loop loop);
double beff_bare_file_read(MPI_File file, char *buffer, struct beff_bare_loop loop);
/* `part` bytes every `extent`, or plain bytes if they are equal or the part is empty; resets both file pointers. */
int beff_bare_file_view(MPI_File file, MPI_Offset displacement, int part, MPI_Aint extent);
#endif
