/* Predefined types by their names in the standard; null for those that the library lacks. */
#include "replay.h"
#include <string.h>

#define NAMED(name) \
    if (strcmp(asked, #name) == 0) \
        return MPI_##name;

MPI_Datatype beff_named_type(const char *asked)
{
#ifdef MPI_CHAR
    NAMED(CHAR)
#endif
#ifdef MPI_SHORT
    NAMED(SHORT)
#endif
#ifdef MPI_INT
    NAMED(INT)
#endif
#ifdef MPI_LONG
    NAMED(LONG)
#endif
#ifdef MPI_LONG_LONG_INT
    NAMED(LONG_LONG_INT)
#endif
#ifdef MPI_LONG_LONG
    NAMED(LONG_LONG)
#endif
#ifdef MPI_SIGNED_CHAR
    NAMED(SIGNED_CHAR)
#endif
#ifdef MPI_UNSIGNED_CHAR
    NAMED(UNSIGNED_CHAR)
#endif
#ifdef MPI_UNSIGNED_SHORT
    NAMED(UNSIGNED_SHORT)
#endif
#ifdef MPI_UNSIGNED
    NAMED(UNSIGNED)
#endif
#ifdef MPI_UNSIGNED_LONG
    NAMED(UNSIGNED_LONG)
#endif
#ifdef MPI_UNSIGNED_LONG_LONG
    NAMED(UNSIGNED_LONG_LONG)
#endif
#ifdef MPI_FLOAT
    NAMED(FLOAT)
#endif
#ifdef MPI_DOUBLE
    NAMED(DOUBLE)
#endif
#ifdef MPI_LONG_DOUBLE
    NAMED(LONG_DOUBLE)
#endif
#ifdef MPI_WCHAR
    NAMED(WCHAR)
#endif
#ifdef MPI_C_BOOL
    NAMED(C_BOOL)
#endif
#ifdef MPI_INT8_T
    NAMED(INT8_T)
#endif
#ifdef MPI_INT16_T
    NAMED(INT16_T)
#endif
#ifdef MPI_INT32_T
    NAMED(INT32_T)
#endif
#ifdef MPI_INT64_T
    NAMED(INT64_T)
#endif
#ifdef MPI_UINT8_T
    NAMED(UINT8_T)
#endif
#ifdef MPI_UINT16_T
    NAMED(UINT16_T)
#endif
#ifdef MPI_UINT32_T
    NAMED(UINT32_T)
#endif
#ifdef MPI_UINT64_T
    NAMED(UINT64_T)
#endif
#ifdef MPI_C_COMPLEX
    NAMED(C_COMPLEX)
#endif
#ifdef MPI_C_FLOAT_COMPLEX
    NAMED(C_FLOAT_COMPLEX)
#endif
#ifdef MPI_C_DOUBLE_COMPLEX
    NAMED(C_DOUBLE_COMPLEX)
#endif
#ifdef MPI_C_LONG_DOUBLE_COMPLEX
    NAMED(C_LONG_DOUBLE_COMPLEX)
#endif
#ifdef MPI_BYTE
    NAMED(BYTE)
#endif
#ifdef MPI_PACKED
    NAMED(PACKED)
#endif
#ifdef MPI_AINT
    NAMED(AINT)
#endif
#ifdef MPI_OFFSET
    NAMED(OFFSET)
#endif
#ifdef MPI_COUNT
    NAMED(COUNT)
#endif
#ifdef MPI_CXX_BOOL
    NAMED(CXX_BOOL)
#endif
#ifdef MPI_CXX_FLOAT_COMPLEX
    NAMED(CXX_FLOAT_COMPLEX)
#endif
#ifdef MPI_CXX_DOUBLE_COMPLEX
    NAMED(CXX_DOUBLE_COMPLEX)
#endif
#ifdef MPI_CXX_LONG_DOUBLE_COMPLEX
    NAMED(CXX_LONG_DOUBLE_COMPLEX)
#endif
#ifdef MPI_FLOAT_INT
    NAMED(FLOAT_INT)
#endif
#ifdef MPI_DOUBLE_INT
    NAMED(DOUBLE_INT)
#endif
#ifdef MPI_LONG_INT
    NAMED(LONG_INT)
#endif
#ifdef MPI_2INT
    NAMED(2INT)
#endif
#ifdef MPI_SHORT_INT
    NAMED(SHORT_INT)
#endif
#ifdef MPI_LONG_DOUBLE_INT
    NAMED(LONG_DOUBLE_INT)
#endif
#ifdef MPI_INTEGER
    NAMED(INTEGER)
#endif
#ifdef MPI_REAL
    NAMED(REAL)
#endif
#ifdef MPI_DOUBLE_PRECISION
    NAMED(DOUBLE_PRECISION)
#endif
#ifdef MPI_COMPLEX
    NAMED(COMPLEX)
#endif
#ifdef MPI_DOUBLE_COMPLEX
    NAMED(DOUBLE_COMPLEX)
#endif
#ifdef MPI_LOGICAL
    NAMED(LOGICAL)
#endif
#ifdef MPI_CHARACTER
    NAMED(CHARACTER)
#endif
#ifdef MPI_INTEGER1
    NAMED(INTEGER1)
#endif
#ifdef MPI_INTEGER2
    NAMED(INTEGER2)
#endif
#ifdef MPI_INTEGER4
    NAMED(INTEGER4)
#endif
#ifdef MPI_INTEGER8
    NAMED(INTEGER8)
#endif
#ifdef MPI_INTEGER16
    NAMED(INTEGER16)
#endif
#ifdef MPI_REAL2
    NAMED(REAL2)
#endif
#ifdef MPI_REAL4
    NAMED(REAL4)
#endif
#ifdef MPI_REAL8
    NAMED(REAL8)
#endif
#ifdef MPI_REAL16
    NAMED(REAL16)
#endif
#ifdef MPI_COMPLEX4
    NAMED(COMPLEX4)
#endif
#ifdef MPI_COMPLEX8
    NAMED(COMPLEX8)
#endif
#ifdef MPI_COMPLEX16
    NAMED(COMPLEX16)
#endif
#ifdef MPI_COMPLEX32
    NAMED(COMPLEX32)
#endif
#ifdef MPI_LOGICAL1
    NAMED(LOGICAL1)
#endif
#ifdef MPI_LOGICAL2
    NAMED(LOGICAL2)
#endif
#ifdef MPI_LOGICAL4
    NAMED(LOGICAL4)
#endif
#ifdef MPI_LOGICAL8
    NAMED(LOGICAL8)
#endif
#ifdef MPI_LOGICAL16
    NAMED(LOGICAL16)
#endif
#ifdef MPI_2REAL
    NAMED(2REAL)
#endif
#ifdef MPI_2DOUBLE_PRECISION
    NAMED(2DOUBLE_PRECISION)
#endif
#ifdef MPI_2INTEGER
    NAMED(2INTEGER)
#endif
#ifdef MPI_2COMPLEX
    NAMED(2COMPLEX)
#endif
#ifdef MPI_2DOUBLE_COMPLEX
    NAMED(2DOUBLE_COMPLEX)
#endif
    return MPI_DATATYPE_NULL;
}
