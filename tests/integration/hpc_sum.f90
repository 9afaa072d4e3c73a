! hpc_sum: cured_sum_mod and cured_sum_mpi_mod on the ranks of a job, for test_hpc.py. Prints one line, from rank 0; ends
! the job with
! another status where a rank found a fault. With the argument "infnan" it gives an infinity to cured_reprosum_calc, which
! must end the
! job.
!
! Thread: one. Owner: the program.
program hpc_sum
    use, intrinsic :: ieee_arithmetic
    use, intrinsic :: iso_fortran_env, only: error_unit, int64, real32, real64
    use mpi
    use cured_sum_mod
    use cured_sum_mpi_mod, only: shr_reprosum_calc => cured_reprosum_calc, cured_sum_allreduce, cured_sum_iallreduce, &
                                 cured_sum_requests
    implicit none
    integer, parameter :: cells = 3000, fields = 3
    real(real64) :: x(cells, fields)
    integer :: rank, ranks, error, faults = 0, all_faults, first, own
    character(16) :: what

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    first = cells*rank/ranks
    own = cells*(rank + 1)/ranks - first
    call fill()
    call get_command_argument(1, what)
    if (what == 'infnan') then
        call with_an_infinity(allowed=.false.)
    end if
    call with_an_infinity(allowed=.true.)
    call sections()
    call narrow()
    call products()
    call statuses()
    call requests()
    call reprosum(MPI_COMM_WORLD)
    call reprosum_of_a_half()
    call MPI_Allreduce(faults, all_faults, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (rank == 0) print '(a, i0, a, i0, a)', 'hpc_sum in Fortran: ', ranks, ' ranks, ', all_faults, ' faults'
    call MPI_Finalize(error)
    if (all_faults /= 0) error stop 1

contains

    subroutine fill()
        integer :: i, f
        do f = 1, fields
            do i = 1, cells
                x(i, f) = real(mod(int(i, int64)*7919_int64*f, 1009_int64) - 500, real64)/3*2.0_real64**mod(i*f, 60*f)
            end do
        end do
    end subroutine fill

    subroutine expect(good, message)
        logical, intent(in) :: good
        character(*), intent(in) :: message
        if (good) return
        write (error_unit, '(a, i0, 2a)') 'hpc_sum: rank ', rank, ': ', message
        faults = faults + 1
    end subroutine expect

    ! What one rank finds for all elements.
    function whole(a) result(total)
        real(real64), intent(in) :: a(:)
        real(real64) :: total
        type(cured_sum_t) :: s
        call cured_sum_begin(s, cured_sum_values, cured_sum_f64)
        call cured_sum_add(s, a)
        call cured_sum_value(s, total)
    end function whole

    subroutine sections()
        type(cured_sum_t) :: s, t
        real(real64) :: a, b, cube(4, 5, 6)
        integer :: i
        integer(int64) :: pack(cured_sum_f64_numbers)
        cube = reshape([(real(i, real64), i=1, 120)], [4, 5, 6])
        call cured_sum_begin(s, cured_sum_values, cured_sum_f64)
        call cured_sum_add(s, cube)
        call cured_sum_add(s, cube(:, ::2, 1))
        call cured_sum_add(s, cube(4:1:-3, 2, 3))
        call cured_sum_add(s, cube(1:0, 1, 1))
        call cured_sum_value(s, a)
        b = sum(cube) + sum(cube(:, ::2, 1)) + sum(cube(4:1:-3, 2, 3)) ! small integers: exact
        call expect(a == b, 'sections of an array')
        call cured_sum_begin(t, cured_sum_squares, cured_sum_f64)
        call cured_sum_add(t, cube(2, :, :))
        call cured_sum_value(t, a)
        call expect(a == sum(cube(2, :, :)**2), 'squares of a section')
        call cured_sum_begin(t, cured_sum_values, cured_sum_f64)
        call cured_sum_add(t, cube)
        call cured_sum_merge(s, t)
        call cured_sum_pack(s, pack)
        call cured_sum_renormalise(cured_sum_values, cured_sum_f64, pack)
        call cured_sum_finish(cured_sum_values, cured_sum_f64, pack, a)
        call expect(a == b + sum(cube) .and. pack(1) == 120 + 12 + 2 + 120, 'a merged sum')
    end subroutine sections

    subroutine narrow()
        type(cured_sum_t) :: s
        real(real32) :: a(3, 2) = reshape([1e8, 0.5, 0.25, -1e8, 1.0, 2.0], [3, 2]), cube(2, 2, 2) = 1
        real(real64) :: value
        call cured_sum_begin(s, cured_sum_values, cured_sum_f32)
        call cured_sum_add(s, a)
        call cured_sum_add(s, a(1, :))
        call cured_sum_add(s, a(3:1:-1, :))
        call cured_sum_add(s, cube(:, 1, :))
        call cured_sum_add(s, cube)
        call cured_sum_value(s, value)
        call expect(value == 3.75_real64*2 + 12, 'sums of real32')
    end subroutine narrow

    subroutine products()
        type(cured_sum_t) :: s
        real(real64) :: value
        real(real32) :: a(4) = [1.0, 2.0, 3.0, 4.0]
        call cured_sum_begin(s, cured_sum_products, cured_sum_f64)
        call cured_sum_add_products(s, x(1:10, 1), x(19:1:-2, 1))
        call cured_sum_value(s, value)
        call expect(abs(value - dot_product(x(1:10, 1), x(19:1:-2, 1))) <= &
                    1e-12_real64*sum(abs(x(1:10, 1)*x(19:1:-2, 1))), 'products')
        call cured_sum_begin(s, cured_sum_products, cured_sum_f32)
        call cured_sum_add_products(s, a, a(4:1:-1))
        call cured_sum_value(s, value)
        call expect(value == 20, 'products of real32')
    end subroutine products

    subroutine statuses()
        type(cured_sum_t) :: s
        real(real64) :: value
        integer :: stat
        integer(int64) :: short(5), pack(cured_sum_f64_numbers)
        call cured_sum_begin(s, 9, cured_sum_f64, stat)
        call expect(stat == cured_sum_bad_op, 'an op that is none')
        call cured_sum_begin(s, cured_sum_values, cured_sum_f64, stat)
        call expect(stat == cured_sum_ok, 'a sum')
        call cured_sum_add(s, [1.0, 2.0], stat)
        call expect(stat == cured_sum_bad_type, 'elements of another type')
        call cured_sum_add_products(s, x(1:2, 1), x(1:3, 1), stat)
        call expect(stat == cured_sum_bad_place, 'products of arrays of two lengths')
        call cured_sum_pack(s, short, stat)
        call expect(stat == cured_sum_bad_place, 'a pack that is too short')
        pack = 0
        pack(1) = -1
        call cured_sum_finish(cured_sum_values, cured_sum_f64, pack, value, stat)
        call expect(stat == cured_sum_bad_pack, 'a pack that none gives')
        call expect(index(cured_sum_message(cured_sum_bad_pack), 'no elements give it') > 0, 'a sentence')
    end subroutine statuses

    subroutine requests()
        type(cured_sum_t) :: s
        integer(int64), asynchronous :: pack(cured_sum_f64_numbers)
        integer :: request(1)
        real(real64) :: value
        call expect(cured_sum_requests(int(size(pack), int64)) == 1, 'one request')
        call expect(cured_sum_requests(2_int64**31 + 5) == 3, 'requests beyond 2^31')
        call cured_sum_begin(s, cured_sum_values, cured_sum_f64)
        call cured_sum_add(s, x(first + 1:first + own, 2))
        call cured_sum_pack(s, pack)
        call cured_sum_iallreduce(pack, MPI_COMM_WORLD, request)
        call MPI_Waitall(1, request, MPI_STATUSES_IGNORE, error)
        call cured_sum_finish(cured_sum_values, cured_sum_f64, pack, value)
        call expect(value == whole(x(:, 2)), 'MPI_Iallreduce')
    end subroutine requests

    ! With every argument that shr_reprosum_calc has.
    subroutine reprosum(comm)
        integer, intent(in) :: comm
        real(real64) :: sums(fields), largest(fields), difference(2, fields)
        integer :: levels(fields), most, stats(6), f
        stats = 0
        call shr_reprosum_calc(x(first + 1:, :), sums, own, cells - first, fields, allow_infnan=.false., ddpdd_sum=.false., &
                               arr_gbl_max=[1.0_real64, 1.0_real64, 1.0_real64], arr_gbl_max_out=largest, &
                               arr_max_levels=[1, 1, 1], arr_max_levels_out=levels, gbl_max_nsummands=1, &
                               gbl_max_nsummands_out=most, gbl_count=1, &
                               repro_sum_validate=.true., repro_sum_stats=stats, rel_diff=difference, commid=comm)
        do f = 1, fields
            call expect(sums(f) == whole(x(:, f)), 'a field of shr_reprosum_calc')
            call expect(largest(f) == maxval(abs(x(:, f))), 'arr_gbl_max_out')
        end do
        call expect(all(levels == 68) .and. all(difference == 0), 'arr_max_levels_out, rel_diff')
        call expect(most == (cells + ranks - 1)/ranks, 'gbl_max_nsummands_out')
        call expect(all(stats == [1, 0, 0, 0, 1, 0]), 'repro_sum_stats')
        call shr_reprosum_calc(x(first + 1:, :), largest, own, cells - first, fields)
        call expect(all(largest == sums), 'shr_reprosum_calc without options')
    end subroutine reprosum

    ! In a subcommunicator, of which the first rank has everything and the others nothing.
    subroutine reprosum_of_a_half()
        integer :: half, my
        real(real64) :: sums(fields)
        call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
        call MPI_Comm_rank(half, my, error)
        call shr_reprosum_calc(x, sums, merge(cells, 0, my == 0), cells, fields, commid=half)
        call expect(sums(3) == whole(x(:, 3)), 'a subcommunicator, and ranks with nothing')
        call MPI_Comm_free(half, error)
    end subroutine reprosum_of_a_half

    subroutine with_an_infinity(allowed)
        logical, intent(in) :: allowed
        real(real64) :: sums(2), y(4, 2)
        y = 1
        if (rank == 0) y(2, 1) = ieee_value(1.0_real64, ieee_positive_inf)
        if (rank + 1 == ranks) y(3, 2) = ieee_value(1.0_real64, ieee_quiet_nan)
        call shr_reprosum_calc(y, sums, 4, 4, 2, allow_infnan=allowed)
        call expect(sums(1) > huge(1.0_real64) .and. ieee_is_nan(sums(2)), 'allow_infnan')
    end subroutine with_an_infinity

end program hpc_sum
