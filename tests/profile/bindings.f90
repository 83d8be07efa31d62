! The calls of a Fortran program, by the interface that the preprocessor is told: mpif.h, the module mpi, or mpi_f08. Every call is
! followed by what is expected of its record.
program bindings
#if defined(F08)
    use mpi_f08
#elif defined(MODULE_MPI)
    use mpi
#endif
    implicit none
#if !defined(F08) && !defined(MODULE_MPI)
    include 'mpif.h'
#endif
#if defined(F08)
    type(MPI_File) :: file
    type(MPI_Datatype) :: vector
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: state
    type(MPI_Status) :: states(2)
#else
    integer :: file, vector, requests(2), state(MPI_STATUS_SIZE), states(MPI_STATUS_SIZE, 2)
#endif
    integer :: rank, ierr, values(16), found
    integer(kind=MPI_OFFSET_KIND) :: offset, place
    logical :: flag
    character(len=1024) :: dir, data, path

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call get_command_argument(1, dir)
    call get_command_argument(2, data)
    write (path, '(a,a,i0)') trim(dir), '/expected-', rank
    open (unit=10, file=trim(path))
    write (path, '(a,a,i0)') trim(data), '/file-', rank
    values = rank

    call MPI_File_open(MPI_COMM_SELF, trim(path), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, ierr)
    write (10, '(a,a,a,i0,a)') 'File_open handle=1 name=', trim(path), ' comm=', rank, ' mode=rdwr+create granted number=-1'
    call MPI_Type_vector(3, 1, 2, MPI_INTEGER, vector, ierr)
    call MPI_Type_commit(vector, ierr)
    place = 24
    call MPI_File_set_view(file, place, MPI_INTEGER, vector, 'native', MPI_INFO_NULL, ierr)
    write (10, '(a)') 'File_set_view handle=1 offset=24 etype=INTEGER filetype=vector(3;1;2;INTEGER) granted'
    offset = 5
    call MPI_File_write_at(file, offset, values, 4, MPI_INTEGER, state, ierr)
    write (10, '(a)') 'File_write_at handle=1 offset=5 count=4 type=INTEGER bytes=16'
    call MPI_File_write_at_all(file, offset, values, 2, vector, MPI_STATUS_IGNORE, ierr)
    write (10, '(a)') 'File_write_at_all handle=1 offset=5 count=2 type=vector(3;1;2;INTEGER) bytes=24'
    call MPI_File_write(file, values, 3, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
    write (10, '(a)') 'File_write handle=1 count=3 type=INTEGER bytes=12'
    offset = -1
    call MPI_File_seek(file, offset, MPI_SEEK_CUR, ierr)
    write (10, '(a)') 'File_seek handle=1 offset=-1 whence=cur'
    call MPI_File_get_position(file, offset, ierr)
    write (10, '(a)') 'File_get_position handle=1 number=2'
    call MPI_File_read(file, values, 1, MPI_INTEGER, state, ierr)
    write (10, '(a)') 'File_read handle=1 count=1 type=INTEGER bytes=4'
    offset = 0
    call MPI_File_iwrite_at(file, offset, values, 2, MPI_INTEGER, requests(1), ierr)
    write (10, '(a)') 'File_iwrite_at handle=1 offset=0 count=2 type=INTEGER request=1'
    call MPI_File_iread_at(file, offset, values, 2, MPI_INTEGER, requests(2), ierr)
    write (10, '(a)') 'File_iread_at handle=1 offset=0 count=2 type=INTEGER request=2'
    call MPI_Waitall(2, requests, states, ierr)
    write (10, '(a)') 'Waitall requests=1,2 done=1:8,2:8'
    call MPI_File_iread(file, values, 1, MPI_INTEGER, requests(1), ierr)
    write (10, '(a)') 'File_iread handle=1 count=1 type=INTEGER request=3'
    flag = .false.
    do while (.not. flag)
        call MPI_Test(requests(1), flag, state, ierr)
    end do
    write (10, '(a)') 'Test requests=3 done=3:4'
    call MPI_File_read_at_all_begin(file, offset, values, 2, MPI_INTEGER, ierr)
    write (10, '(a)') 'File_read_at_all_begin handle=1 offset=0 count=2 type=INTEGER'
    call MPI_File_read_at_all_end(file, values, state, ierr)
    write (10, '(a)') 'File_read_at_all_end handle=1 bytes=8'
    call MPI_File_set_atomicity(file, .true., ierr)
    write (10, '(a)') 'File_set_atomicity handle=1 flag=1'
    call MPI_File_sync(file, ierr)
    write (10, '(a)') 'File_sync handle=1'
    call MPI_File_write_ordered(file, values, 1, MPI_INTEGER, state, ierr)
    write (10, '(a)') 'File_write_ordered handle=1 count=1 type=INTEGER bytes=4'
    offset = 0
    call MPI_File_read_at(file, offset, values, -1, MPI_INTEGER, state, ierr)
    write (10, '(a)') 'File_read_at handle=1 offset=0 count=-1 type=INTEGER error=MPI_ERR_COUNT'
    call MPI_Type_free(vector, ierr)
    call MPI_File_close(file, ierr)
    write (10, '(a)') 'File_close handle=1'
    close (10)
    found = 0
    print '(a,i0)', 'rank ', rank
    call MPI_Finalize(ierr)
end program bindings
