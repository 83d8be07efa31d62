/* mpi.h of the standard ABI of MPI-5 for mpi-sys, which converts handles to Fortran integers by functions of earlier standards. The
 * compiler wrapper that scripts/env.sh generates searches this directory first, and names it in `-show`, for bindgen. */
#ifndef MPI_ABI
#define MPI_ABI /* The mpi.h of MPICH and Intel MPI then includes mpi_abi.h. */
#endif
#include_next <mpi.h>
#if !defined(MPI_ABI_VERSION) || MPI_ABI_VERSION != 1
#error "This mpi.h is not that of version 1 of the standard ABI: use the mpicc of this MPI without scripts/env.sh abi."
#endif

#ifndef BEFF_ABI_MPI_H
#define BEFF_ABI_MPI_H
typedef int MPI_Fint;
#define MPI_Comm_c2f MPI_Comm_toint
#define MPI_Comm_f2c MPI_Comm_fromint
#define MPI_Errhandler_c2f MPI_Errhandler_toint
#define MPI_Errhandler_f2c MPI_Errhandler_fromint
#define MPI_File_c2f MPI_File_toint
#define MPI_File_f2c MPI_File_fromint
#define MPI_Group_c2f MPI_Group_toint
#define MPI_Group_f2c MPI_Group_fromint
#define MPI_Info_c2f MPI_Info_toint
#define MPI_Info_f2c MPI_Info_fromint
#define MPI_Message_c2f MPI_Message_toint
#define MPI_Message_f2c MPI_Message_fromint
#define MPI_Op_c2f MPI_Op_toint
#define MPI_Op_f2c MPI_Op_fromint
#define MPI_Request_c2f MPI_Request_toint
#define MPI_Request_f2c MPI_Request_fromint
#define MPI_Type_c2f MPI_Type_toint
#define MPI_Type_f2c MPI_Type_fromint
#define MPI_Win_c2f MPI_Win_toint
#define MPI_Win_f2c MPI_Win_fromint
#endif
