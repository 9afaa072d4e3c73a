! cured_sum_mpi_mod: packs of cured_sum_mod through MPI, and cured_reprosum_calc: exact sums of the fields of an array over
! the ranks of a
! communicator, with the arguments that shr_reprosum_calc of E3SM and CESM has, in one Allreduce:
!
!     use cured_sum_mpi_mod, only: shr_reprosum_calc => cured_reprosum_calc
!
! The answers are the true sums, rounded once. So they differ from baselines of that method in last bits, once.
!
! Thread: whichever may call MPI. With OpenMP, threads share the fields. Owner: the caller owns all that is passed. Licence:
! Apache-2.0.
module cured_sum_mpi_mod
    use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
    use mpi
    use cured_sum_mod
    implicit none
    private
    public :: cured_sum_allreduce, cured_sum_iallreduce, cured_sum_requests, cured_reprosum_calc

    ! An MPI counts elements in an integer of 32 bits: more numbers than these go in pieces.
    integer(int64), parameter :: most = 2_int64**30
    ! What arr_max_levels_out says: limbs of a sum.
    integer, parameter :: levels = cured_sum_f64_numbers - 4

contains

    ! Adds up the packs of all ranks, into those of each. All ranks give as many numbers. Without ierror an error ends the job.
    subroutine cured_sum_allreduce(packs, comm, ierror)
        integer(int64), intent(inout), contiguous :: packs(:)
        integer, intent(in) :: comm
        integer, intent(out), optional :: ierror
        integer(int64) :: from, to
        integer :: error
        error = MPI_SUCCESS
        from = 1
        do while (from <= size(packs, kind=int64) .and. error == MPI_SUCCESS)
            to = min(from + most - 1, size(packs, kind=int64))
            call MPI_Allreduce(MPI_IN_PLACE, packs(from:to), int(to - from + 1), MPI_INTEGER8, MPI_SUM, comm, error)
            from = to + 1
        end do
        call tell(error, comm, ierror)
    end subroutine cured_sum_allreduce

    ! How many requests cured_sum_iallreduce starts.
    pure function cured_sum_requests(numbers) result(requests)
        integer(int64), intent(in) :: numbers
        integer :: requests
        requests = int((numbers + most - 1)/most)
    end function cured_sum_requests

    ! The same, begun: wait for all requests (MPI_Waitall) before packs are read.
    subroutine cured_sum_iallreduce(packs, comm, requests, ierror)
        integer(int64), intent(inout), contiguous, asynchronous :: packs(:)
        integer, intent(in) :: comm
        integer, intent(out) :: requests(:)
        integer, intent(out), optional :: ierror
        integer(int64) :: from, to
        integer :: error, i
        error = MPI_SUCCESS
        requests = MPI_REQUEST_NULL ! so that all may be waited for where one was not started
        from = 1
        do i = 1, cured_sum_requests(size(packs, kind=int64))
            to = min(from + most - 1, size(packs, kind=int64))
            if (error == MPI_SUCCESS) call MPI_Iallreduce(MPI_IN_PLACE, packs(from:to), int(to - from + 1), MPI_INTEGER8, &
                                                          MPI_SUM, comm, requests(i), error)
            from = to + 1
        end do
        call tell(error, comm, ierror)
    end subroutine cured_sum_iallreduce

    ! Sums arr(1:nsummands, f) of all ranks to arr_gsum(f), for each of nflds fields.
    !   allow_infnan           .true.: a field with NaN or infinities has the sum that IEEE 754 gives; else they end the job
    !   commid                 the communicator; MPI_COMM_WORLD by default
    !   arr_gbl_max_out, gbl_max_nsummands_out   the greatest magnitude of each field, and the most summands of a rank. They cost an
    !                          Allreduce with MAX, only where one of them is asked for
    !   arr_max_levels_out     68, the limbs of a sum
    !   repro_sum_stats        1 is added to the count of sums with one reduction, and to that of MAX where it was needed
    !   rel_diff               0: an exact sum has no other to be compared with
    !   ddpdd_sum, arr_gbl_max, arr_max_levels, gbl_max_nsummands, gbl_count, repro_sum_validate   are not looked at
    subroutine cured_reprosum_calc(arr, arr_gsum, nsummands, dsummands, nflds, allow_infnan, ddpdd_sum, arr_gbl_max, &
                                   arr_gbl_max_out, arr_max_levels, arr_max_levels_out, gbl_max_nsummands, &
                                   gbl_max_nsummands_out, gbl_count, repro_sum_validate, repro_sum_stats, rel_diff, commid)
        integer, intent(in) :: nsummands, dsummands, nflds
        real(real64), intent(in), target :: arr(dsummands, nflds)
        real(real64), intent(out) :: arr_gsum(nflds)
        logical, intent(in), optional :: allow_infnan, ddpdd_sum, repro_sum_validate
        real(real64), intent(in), optional :: arr_gbl_max(nflds)
        real(real64), intent(out), optional :: arr_gbl_max_out(nflds), rel_diff(2, nflds)
        integer, intent(in), optional :: arr_max_levels(nflds), gbl_max_nsummands, gbl_count, commid
        integer, intent(out), optional :: arr_max_levels_out(nflds), gbl_max_nsummands_out
        integer, intent(inout), optional :: repro_sum_stats(6)
        integer(int64), allocatable :: packs(:, :)
        integer(int64), allocatable :: largest(:) ! bits: those of magnitudes are in their order
        integer :: comm, error, f
        logical :: allowed
        comm = MPI_COMM_WORLD
        if (present(commid)) comm = commid
        allowed = .false.
        if (present(allow_infnan)) allowed = allow_infnan
        if (nsummands < 0 .or. nsummands > dsummands) call give_up('nsummands: it lies between 0 and dsummands', comm)
        allocate (packs(cured_sum_f64_numbers, nflds), largest(nflds + 1)) ! not on the stack, which is short in threads
        call pack_fields(arr, nsummands, packs)
        call allreduce_fields(packs, size(packs, kind=int64), comm)
        do f = 1, nflds
            if (.not. allowed .and. any(packs(cured_sum_f64_numbers - 2:, f) /= 0)) &
                call give_up('arr: it has NaN or infinities, and allow_infnan is not .true.', comm)
            call cured_sum_finish(cured_sum_values, cured_sum_f64, packs(:, f), arr_gsum(f))
        end do
        if (present(arr_gbl_max_out) .or. present(gbl_max_nsummands_out)) then
            do f = 1, nflds
                largest(f) = transfer(max(0.0_real64, maxval(abs(arr(:nsummands, f)))), 0_int64)
            end do
            largest(nflds + 1) = nsummands
            call MPI_Allreduce(MPI_IN_PLACE, largest, nflds + 1, MPI_INTEGER8, MPI_MAX, comm, error)
            call tell(error, comm)
            if (present(arr_gbl_max_out)) arr_gbl_max_out = transfer(largest(:nflds), [0.0_real64])
            if (present(gbl_max_nsummands_out)) gbl_max_nsummands_out = int(largest(nflds + 1))
            if (present(repro_sum_stats)) repro_sum_stats(5) = repro_sum_stats(5) + 1
        end if
        if (present(arr_max_levels_out)) arr_max_levels_out = levels
        if (present(repro_sum_stats)) repro_sum_stats(1) = repro_sum_stats(1) + 1
        if (present(rel_diff)) rel_diff = 0
    end subroutine cured_reprosum_calc

    ! The pack of each field; with OpenMP, threads share the fields.
    subroutine pack_fields(arr, nsummands, packs)
        real(real64), intent(in), target, contiguous :: arr(:, :)
        integer, intent(in) :: nsummands
        integer(int64), intent(inout), contiguous :: packs(:, :)
        type(cured_sum_t) :: s
        integer :: f
        !$omp parallel do private(s)
        do f = 1, size(arr, 2)
            call cured_sum_begin(s, cured_sum_values, cured_sum_f64)
            call cured_sum_add(s, arr(:nsummands, f))
            call cured_sum_pack(s, packs(:, f))
        end do
    end subroutine pack_fields

    ! Of all fields at once, as one array.
    subroutine allreduce_fields(packs, numbers, comm)
        integer(int64), intent(in) :: numbers
        integer(int64), intent(inout) :: packs(numbers)
        integer, intent(in) :: comm
        call cured_sum_allreduce(packs, comm)
    end subroutine allreduce_fields

    ! Hands on what MPI said; nobody asked: a sum that is not that of all ranks ends the job.
    subroutine tell(error, comm, ierror)
        integer, intent(in) :: error, comm
        integer, intent(out), optional :: ierror
        if (present(ierror)) then
            ierror = error
        else if (error /= MPI_SUCCESS) then
            call give_up('a reduction over the ranks failed', comm)
        end if
    end subroutine tell

    subroutine give_up(message, comm)
        character(*), intent(in) :: message
        integer, intent(in) :: comm
        integer :: error
        write (error_unit, '(2a)') 'cured_sum_mpi_mod: ', message
        flush (error_unit)
        call MPI_Abort(comm, 1, error)
    end subroutine give_up

end module cured_sum_mpi_mod
