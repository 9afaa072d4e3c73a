! cured_sum_mod: exact sums for Fortran 2008, over cured_sum.c. cured_sum.h says what an answer is and what a pack is.
!
!     type(cured_sum_t) :: s
!     integer(int64) :: pack(cured_sum_f64_numbers)
!     call cured_sum_begin(s, cured_sum_values, cured_sum_f64)
!     call cured_sum_add(s, x)                      ! x: of kind real64, of one to three dimensions, a section too
!     call cured_sum_pack(s, pack)
!     call cured_sum_allreduce(pack, comm)          ! cured_sum_mpi_mod
!     call cured_sum_finish(cured_sum_values, cured_sum_f64, pack, energy)
!
! Every procedure takes stat, as allocate does: 0, or a status of which cured_sum_message() has a sentence. Without stat a
! failure ends
! the program with that sentence.
!
! Thread: a sum is used by one thread at a time. Owner: the caller owns all that is passed. Licence: Apache-2.0.
module cured_sum_mod
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit, int64, real32, real64
    implicit none
    private
    public :: cured_sum_t, cured_sum_begin, cured_sum_add, cured_sum_add_products, cured_sum_merge, cured_sum_numbers, &
              cured_sum_pack, cured_sum_renormalise, cured_sum_finish, cured_sum_value, cured_sum_message

    ! As in cured_sum.h: what is added up, the elements' types, and how many int64 a pack has.
    integer(c_int), parameter, public :: cured_sum_values = 1, cured_sum_squares = 2, cured_sum_products = 3
    integer(c_int), parameter, public :: cured_sum_f32 = 12, cured_sum_f64 = 13
    integer, parameter, public :: cured_sum_f64_numbers = 72, cured_sum_f64_product_numbers = 138
    integer, parameter, public :: cured_sum_f32_numbers = 15, cured_sum_f32_product_numbers = 24
    integer(c_int), parameter, public :: cured_sum_ok = 0, cured_sum_bad_op = 1, cured_sum_bad_type = 2, &
                                         cured_sum_bad_place = 3, cured_sum_too_many = 4, cured_sum_bad_pack = 5

    ! A sum that is being taken: struct cured_sum.
    type, bind(c) :: cured_sum_t
        private
        integer(c_int32_t) :: op, type
        integer(c_int64_t) :: n, nans, pinfs, ninfs
        integer(c_int32_t) :: pending, spare
        integer(c_int64_t) :: limbs(cured_sum_f64_product_numbers - 4)
    end type cured_sum_t

    ! Adds the elements of an array.
    interface cured_sum_add
        module procedure add_f64_1, add_f64_2, add_f64_3, add_f32_1, add_f32_2, add_f32_3
    end interface cured_sum_add
    ! Adds x(i)*y(i); both have one size.
    interface cured_sum_add_products
        module procedure products_f64, products_f32
    end interface cured_sum_add_products

    interface
        function c_begin(s, op, type) bind(c, name='cured_sum_begin') result(status)
            import :: c_int, cured_sum_t
            type(cured_sum_t), intent(out) :: s
            integer(c_int), value :: op, type
            integer(c_int) :: status
        end function c_begin
        function c_add_f64(s, n, x, stride) bind(c, name='cured_sum_add_f64') result(status)
            import :: c_int, c_int64_t, c_ptr, cured_sum_t
            type(cured_sum_t), intent(inout) :: s
            integer(c_int64_t), value :: n, stride
            type(c_ptr), value :: x
            integer(c_int) :: status
        end function c_add_f64
        function c_add_f32(s, n, x, stride) bind(c, name='cured_sum_add_f32') result(status)
            import :: c_int, c_int64_t, c_ptr, cured_sum_t
            type(cured_sum_t), intent(inout) :: s
            integer(c_int64_t), value :: n, stride
            type(c_ptr), value :: x
            integer(c_int) :: status
        end function c_add_f32
        function c_products_f64(s, n, x, x_stride, y, y_stride) bind(c, name='cured_sum_add_products_f64') result(status)
            import :: c_int, c_int64_t, c_ptr, cured_sum_t
            type(cured_sum_t), intent(inout) :: s
            integer(c_int64_t), value :: n, x_stride, y_stride
            type(c_ptr), value :: x, y
            integer(c_int) :: status
        end function c_products_f64
        function c_products_f32(s, n, x, x_stride, y, y_stride) bind(c, name='cured_sum_add_products_f32') result(status)
            import :: c_int, c_int64_t, c_ptr, cured_sum_t
            type(cured_sum_t), intent(inout) :: s
            integer(c_int64_t), value :: n, x_stride, y_stride
            type(c_ptr), value :: x, y
            integer(c_int) :: status
        end function c_products_f32
        function c_merge(into, from) bind(c, name='cured_sum_merge') result(status)
            import :: c_int, cured_sum_t
            type(cured_sum_t), intent(inout) :: into
            type(cured_sum_t), intent(in) :: from
            integer(c_int) :: status
        end function c_merge
        function c_numbers(op, type) bind(c, name='cured_sum_numbers') result(numbers)
            import :: c_int, c_size_t
            integer(c_int), value :: op, type
            integer(c_size_t) :: numbers
        end function c_numbers
        function c_pack(s, pack) bind(c, name='cured_sum_pack') result(status)
            import :: c_int, c_int64_t, cured_sum_t
            type(cured_sum_t), intent(in) :: s
            integer(c_int64_t), intent(out) :: pack(*)
            integer(c_int) :: status
        end function c_pack
        function c_renormalise(op, type, pack) bind(c, name='cured_sum_renormalise') result(status)
            import :: c_int, c_int64_t
            integer(c_int), value :: op, type
            integer(c_int64_t), intent(inout) :: pack(*)
            integer(c_int) :: status
        end function c_renormalise
        function c_finish(op, type, pack, value) bind(c, name='cured_sum_finish') result(status)
            import :: c_double, c_int, c_int64_t
            integer(c_int), value :: op, type
            integer(c_int64_t), intent(in) :: pack(*)
            real(c_double), intent(inout) :: value
            integer(c_int) :: status
        end function c_finish
        function c_value(s, value) bind(c, name='cured_sum_value') result(status)
            import :: c_double, c_int, cured_sum_t
            type(cured_sum_t), intent(in) :: s
            real(c_double), intent(inout) :: value
            integer(c_int) :: status
        end function c_value
        function c_text(status) bind(c, name='cured_sum_text') result(text)
            import :: c_int, c_ptr
            integer(c_int), value :: status
            type(c_ptr) :: text
        end function c_text
        function c_length(text) bind(c, name='strlen') result(length)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function c_length
    end interface

contains

    ! A sentence about a status.
    function cured_sum_message(status) result(message)
        integer(c_int), intent(in) :: status
        character(:), allocatable :: message
        character(kind=c_char), pointer :: text(:)
        type(c_ptr) :: where_it_is
        integer :: i, length
        where_it_is = c_text(status)
        length = int(c_length(where_it_is))
        call c_f_pointer(where_it_is, text, [length])
        allocate (character(length) :: message)
        do i = 1, length
            message(i:i) = text(i)
        end do
    end function cured_sum_message

    subroutine tell(status, stat)
        integer(c_int), intent(in) :: status
        integer, intent(out), optional :: stat
        if (present(stat)) then
            stat = status
        else if (status /= cured_sum_ok) then
            write (error_unit, '(2a)') 'cured_sum: ', cured_sum_message(status)
            error stop 1
        end if
    end subroutine tell

    subroutine cured_sum_begin(s, op, type, stat)
        type(cured_sum_t), intent(out) :: s
        integer(c_int), intent(in) :: op, type
        integer, intent(out), optional :: stat
        call tell(c_begin(s, op, type), stat)
    end subroutine cured_sum_begin

    ! Elements from one address to the next: 1 where there is no second.
    pure function apart(first, second, bytes) result(stride)
        integer(c_intptr_t), intent(in) :: first, second
        integer, intent(in) :: bytes
        integer(c_int64_t) :: stride
        stride = int(second - first, c_int64_t)/bytes
    end function apart

    function stride_f64(x) result(stride)
        real(real64), intent(in), target :: x(:)
        integer(c_int64_t) :: stride
        stride = 1
        if (size(x, kind=c_int64_t) > 1) stride = apart(transfer(c_loc(x(1)), 0_c_intptr_t), transfer(c_loc(x(2)), 0_c_intptr_t), 8)
    end function stride_f64

    function stride_f32(x) result(stride)
        real(real32), intent(in), target :: x(:)
        integer(c_int64_t) :: stride
        stride = 1
        if (size(x, kind=c_int64_t) > 1) stride = apart(transfer(c_loc(x(1)), 0_c_intptr_t), transfer(c_loc(x(2)), 0_c_intptr_t), 4)
    end function stride_f32

    function one_f64(s, x) result(status)
        type(cured_sum_t), intent(inout) :: s
        real(real64), intent(in), target :: x(:)
        integer(c_int) :: status
        if (size(x, kind=c_int64_t) == 0) then
            status = c_add_f64(s, 0_c_int64_t, c_null_ptr, 1_c_int64_t)
        else
            status = c_add_f64(s, size(x, kind=c_int64_t), c_loc(x(1)), stride_f64(x))
        end if
    end function one_f64

    function one_f32(s, x) result(status)
        type(cured_sum_t), intent(inout) :: s
        real(real32), intent(in), target :: x(:)
        integer(c_int) :: status
        if (size(x, kind=c_int64_t) == 0) then
            status = c_add_f32(s, 0_c_int64_t, c_null_ptr, 1_c_int64_t)
        else
            status = c_add_f32(s, size(x, kind=c_int64_t), c_loc(x(1)), stride_f32(x))
        end if
    end function one_f32

    subroutine add_f64_1(s, x, stat)
        type(cured_sum_t), intent(inout) :: s
        real(real64), intent(in), target :: x(:)
        integer, intent(out), optional :: stat
        call tell(one_f64(s, x), stat)
    end subroutine add_f64_1

    subroutine add_f64_2(s, x, stat)
        type(cured_sum_t), intent(inout) :: s
        real(real64), intent(in), target :: x(:, :)
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        integer(c_int64_t) :: j
        status = cured_sum_ok
        if (is_contiguous(x) .and. size(x, kind=c_int64_t) > 0) then
            status = c_add_f64(s, size(x, kind=c_int64_t), c_loc(x(1, 1)), 1_c_int64_t)
        else
            do j = 1, size(x, 2, kind=c_int64_t)
                if (status == cured_sum_ok) status = one_f64(s, x(:, j))
            end do
        end if
        call tell(status, stat)
    end subroutine add_f64_2

    subroutine add_f64_3(s, x, stat)
        type(cured_sum_t), intent(inout) :: s
        real(real64), intent(in), target :: x(:, :, :)
        integer, intent(out), optional :: stat
        integer(c_int64_t) :: k
        integer :: status
        status = cured_sum_ok
        do k = 1, size(x, 3, kind=c_int64_t)
            if (status == cured_sum_ok) call add_f64_2(s, x(:, :, k), status)
        end do
        call tell(int(status, c_int), stat)
    end subroutine add_f64_3

    subroutine add_f32_1(s, x, stat)
        type(cured_sum_t), intent(inout) :: s
        real(real32), intent(in), target :: x(:)
        integer, intent(out), optional :: stat
        call tell(one_f32(s, x), stat)
    end subroutine add_f32_1

    subroutine add_f32_2(s, x, stat)
        type(cured_sum_t), intent(inout) :: s
        real(real32), intent(in), target :: x(:, :)
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        integer(c_int64_t) :: j
        status = cured_sum_ok
        if (is_contiguous(x) .and. size(x, kind=c_int64_t) > 0) then
            status = c_add_f32(s, size(x, kind=c_int64_t), c_loc(x(1, 1)), 1_c_int64_t)
        else
            do j = 1, size(x, 2, kind=c_int64_t)
                if (status == cured_sum_ok) status = one_f32(s, x(:, j))
            end do
        end if
        call tell(status, stat)
    end subroutine add_f32_2

    subroutine add_f32_3(s, x, stat)
        type(cured_sum_t), intent(inout) :: s
        real(real32), intent(in), target :: x(:, :, :)
        integer, intent(out), optional :: stat
        integer(c_int64_t) :: k
        integer :: status
        status = cured_sum_ok
        do k = 1, size(x, 3, kind=c_int64_t)
            if (status == cured_sum_ok) call add_f32_2(s, x(:, :, k), status)
        end do
        call tell(int(status, c_int), stat)
    end subroutine add_f32_3

    subroutine products_f64(s, x, y, stat)
        type(cured_sum_t), intent(inout) :: s
        real(real64), intent(in), target :: x(:), y(:)
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        status = cured_sum_bad_place
        if (size(x, kind=c_int64_t) == size(y, kind=c_int64_t)) then
            status = cured_sum_ok
            if (size(x, kind=c_int64_t) > 0) status = c_products_f64(s, size(x, kind=c_int64_t), c_loc(x(1)), &
                                                       stride_f64(x), c_loc(y(1)), stride_f64(y))
        end if
        call tell(status, stat)
    end subroutine products_f64

    subroutine products_f32(s, x, y, stat)
        type(cured_sum_t), intent(inout) :: s
        real(real32), intent(in), target :: x(:), y(:)
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        status = cured_sum_bad_place
        if (size(x, kind=c_int64_t) == size(y, kind=c_int64_t)) then
            status = cured_sum_ok
            if (size(x, kind=c_int64_t) > 0) status = c_products_f32(s, size(x, kind=c_int64_t), c_loc(x(1)), &
                                                       stride_f32(x), c_loc(y(1)), stride_f32(y))
        end if
        call tell(status, stat)
    end subroutine products_f32

    ! Adds the elements of another sum of the same op and type.
    subroutine cured_sum_merge(into, from, stat)
        type(cured_sum_t), intent(inout) :: into
        type(cured_sum_t), intent(in) :: from
        integer, intent(out), optional :: stat
        call tell(c_merge(into, from), stat)
    end subroutine cured_sum_merge

    ! How many int64 a pack has; 0 where op or type is none.
    function cured_sum_numbers(op, type) result(numbers)
        integer(c_int), intent(in) :: op, type
        integer :: numbers
        numbers = int(c_numbers(op, type))
    end function cured_sum_numbers

    ! pack: as many numbers as the sum's op and type have, or more.
    subroutine cured_sum_pack(s, pack, stat)
        type(cured_sum_t), intent(in) :: s
        integer(int64), intent(inout), contiguous :: pack(:)
        integer, intent(out), optional :: stat
        if (size(pack) < cured_sum_numbers(s%op, s%type)) then
            call tell(cured_sum_bad_place, stat)
        else
            call tell(c_pack(s, pack), stat)
        end if
    end subroutine cured_sum_pack

    subroutine cured_sum_renormalise(op, type, pack, stat)
        integer(c_int), intent(in) :: op, type
        integer(int64), intent(inout), contiguous :: pack(:)
        integer, intent(out), optional :: stat
        if (size(pack) < cured_sum_numbers(op, type)) then
            call tell(cured_sum_bad_place, stat)
        else
            call tell(c_renormalise(op, type, pack), stat)
        end if
    end subroutine cured_sum_renormalise

    ! The answer of a pack, or of a sum of packs.
    subroutine cured_sum_finish(op, type, pack, value, stat)
        integer(c_int), intent(in) :: op, type
        integer(int64), intent(in), contiguous :: pack(:)
        real(real64), intent(inout) :: value
        integer, intent(out), optional :: stat
        if (size(pack) < cured_sum_numbers(op, type)) then
            call tell(cured_sum_bad_place, stat)
        else
            call tell(c_finish(op, type, pack, value), stat)
        end if
    end subroutine cured_sum_finish

    ! The answer of a sum alone.
    subroutine cured_sum_value(s, value, stat)
        type(cured_sum_t), intent(in) :: s
        real(real64), intent(inout) :: value
        integer, intent(out), optional :: stat
        call tell(c_value(s, value), stat)
    end subroutine cured_sum_value

end module cured_sum_mod
