# aarch64: a toolchain file for builds on x86_64, whose programs run under qemu-user. scripts/aarch64 unpacks the root of arm64 libraries,
# CURED_AARCH64_ROOT, and uses this file. Generators and other tools of the build are this machine's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CURED_AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root CACHE PATH "The root of arm64 libraries")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CURED_AARCH64_ROOT)
get_filename_component(root ${CURED_AARCH64_ROOT} REALPATH)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT ${root})
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH) # llhttp's sources are the same for every machine
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(ENV{PKG_CONFIG_LIBDIR} ${root}/usr/lib/aarch64-linux-gnu/pkgconfig:${root}/usr/lib/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${root})
add_compile_definitions(CHECK_EMULATED)

# Python and MPI of that root are not looked for.
set(CURED_PYTHON_EXTENSION OFF CACHE STRING "Build the Python extension: AUTO (where Python's headers are), ON, OFF")
set(CURED_MPI OFF CACHE STRING "Build cured-mpi: AUTO (where there is an MPI for C), ON, OFF")
set(CURED_CUDA OFF CACHE STRING "Build the CUDA lane: AUTO (when a CUDA compiler is found), ON, OFF")
