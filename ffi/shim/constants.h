/* Constants of MPI as symbols, named as those of mpi-sys, whose place they take in builds without libclang. */
#ifndef BEFF_CONSTANTS_H
#define BEFF_CONSTANTS_H

#include <mpi.h>

extern const MPI_Comm RSMPI_COMM_SELF;
extern const MPI_Comm RSMPI_COMM_WORLD;
extern const MPI_Datatype RSMPI_DOUBLE;
extern const MPI_Datatype RSMPI_INT64_T;
extern const MPI_Datatype RSMPI_UINT64_T;
extern const MPI_Datatype RSMPI_UINT8_T;
extern const MPI_Errhandler RSMPI_ERRORS_ARE_FATAL;
extern const MPI_Errhandler RSMPI_ERRORS_RETURN;
extern const MPI_File RSMPI_FILE_NULL;
extern const MPI_Group RSMPI_GROUP_NULL;
extern const MPI_Info RSMPI_INFO_NULL;
extern const MPI_Op RSMPI_MAX;
extern const MPI_Op RSMPI_MIN;
extern const MPI_Op RSMPI_SUM;
extern const MPI_Request RSMPI_REQUEST_NULL;
extern MPI_Status *const RSMPI_STATUSES_IGNORE;
extern MPI_Status *const RSMPI_STATUS_IGNORE;
extern const int RSMPI_THREAD_FUNNELED;
extern const int RSMPI_THREAD_MULTIPLE;
extern const int RSMPI_THREAD_SERIALIZED;
extern const int RSMPI_THREAD_SINGLE;

#endif
