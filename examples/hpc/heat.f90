! heat: the rod of heat.c, in Fortran. The last line has the same energy and the same bits, for every number of ranks and threads.
!
!     mpicc -O2 -c cured_sum.c            (scripts/sum-file FOLDER writes it, and the modules)
!     mpifort -O2 -fopenmp cured_sum_mod.f90 cured_sum_mpi_mod.f90 heat.f90 cured_sum.o -o heat_f
!     OMP_NUM_THREADS=2 mpirun -n 3 ./heat_f [cells] [steps]
!
! Thread: MPI is called by the main thread alone. Owner: the program owns the rod.
program heat
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use mpi
    use cured_sum_mod
    use cured_sum_mpi_mod
    implicit none
    integer :: rank, ranks, error, threads
    integer(int64) :: cells, steps, first, own, i, t
    real(real64), allocatable :: now(:), next(:)
    real(real64) :: energy, squares, plain

    call MPI_Init_thread(MPI_THREAD_FUNNELED, threads, error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    cells = argument(1, 100000_int64)
    steps = argument(2, 300_int64)
    first = cells*rank/ranks
    own = cells*(rank + 1)/ranks - first
    if (own < 1) call MPI_Abort(MPI_COMM_WORLD, 1, error)
    allocate (now(0:own + 1), next(0:own + 1))
    do i = 1, own
        now(i) = at_first(first + i - 1)
    end do
    do t = 0, steps
        if (mod(t, 100_int64) == 0) then
            plain = plain_energy()
            call exact_energy(energy, squares)
            if (rank == 0) print '(a, i0, a, es24.16e3, a, z16.16)', 'step ', t, ' plain ', plain, ' ', transfer(plain, 0_int64)
        end if
        if (t < steps) call step()
    end do
    if (rank == 0) print '(a, es24.16e3, a, z16.16, a, z16.16)', 'exact ', energy, ' ', transfer(energy, 0_int64), ' squares ', &
        transfer(squares, 0_int64)
    call MPI_Finalize(error)

contains

    function argument(number, otherwise) result(value)
        integer, intent(in) :: number
        integer(int64), intent(in) :: otherwise
        integer(int64) :: value
        character(32) :: text
        value = otherwise
        if (command_argument_count() < number) return
        call get_command_argument(number, text)
        read (text, *) value
    end function argument

    ! As in heat.c.
    function at_first(cell) result(temperature)
        integer(int64), intent(in) :: cell
        real(real64) :: temperature, x
        x = real(cell, real64)/real(cells, real64)
        temperature = (300.0_real64 + (1e6_real64*x)*(1 - x)) &
                      + real(mod(cell*2654435761_int64 + 12345_int64, 1000003_int64), real64)*1e-7_real64
    end function at_first

    subroutine step()
        integer :: left, right
        integer(int64) :: k
        left = MPI_PROC_NULL
        right = MPI_PROC_NULL
        if (rank > 0) left = rank - 1
        if (rank + 1 < ranks) right = rank + 1
        now(0) = now(1)
        now(own + 1) = now(own)
        call MPI_Sendrecv(now(1), 1, MPI_DOUBLE_PRECISION, left, 0, now(own + 1), 1, MPI_DOUBLE_PRECISION, right, 0, &
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        call MPI_Sendrecv(now(own), 1, MPI_DOUBLE_PRECISION, right, 1, now(0), 1, MPI_DOUBLE_PRECISION, left, 1, &
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        !$omp parallel do
        do k = 1, own
            next(k) = now(k) + 0.2_real64*((now(k - 1) - 2*now(k)) + now(k + 1))
        end do
        call swap()
    end subroutine step

    subroutine swap()
        real(real64), allocatable :: last(:)
        call move_alloc(now, last)
        call move_alloc(next, now)
        call move_alloc(last, next)
    end subroutine swap

    function plain_energy() result(total)
        real(real64) :: total
        integer(int64) :: k
        total = 0
        !$omp parallel do reduction(+:total)
        do k = 1, own
            total = total + now(k)
        end do
        call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    end function plain_energy

    ! Each thread adds to sums of its own. Both sums go in one Allreduce.
    subroutine exact_energy(energy, squares)
        real(real64), intent(inout) :: energy, squares
        type(cured_sum_t) :: sums(2), mine(2)
        integer(int64) :: packs(cured_sum_f64_numbers + cured_sum_f64_product_numbers), block, last
        integer :: k
        call cured_sum_begin(sums(1), cured_sum_values, cured_sum_f64)
        call cured_sum_begin(sums(2), cured_sum_squares, cured_sum_f64)
        !$omp parallel private(mine, k, last)
        call cured_sum_begin(mine(1), cured_sum_values, cured_sum_f64)
        call cured_sum_begin(mine(2), cured_sum_squares, cured_sum_f64)
        !$omp do
        do block = 1, own, 1024
            last = min(block + 1023, own)
            do k = 1, 2
                call cured_sum_add(mine(k), now(block:last))
            end do
        end do
        !$omp critical
        do k = 1, 2
            call cured_sum_merge(sums(k), mine(k))
        end do
        !$omp end critical
        !$omp end parallel
        call cured_sum_pack(sums(1), packs(:cured_sum_f64_numbers))
        call cured_sum_pack(sums(2), packs(cured_sum_f64_numbers + 1:))
        call cured_sum_allreduce(packs, MPI_COMM_WORLD)
        call cured_sum_finish(cured_sum_values, cured_sum_f64, packs(:cured_sum_f64_numbers), energy)
        call cured_sum_finish(cured_sum_squares, cured_sum_f64, packs(cured_sum_f64_numbers + 1:), squares)
    end subroutine exact_energy

end program heat
