# What every CUDA target shares: the toolkit, the chips, the flags. The runtime is linked statically, so that the same binary
# starts where there is no driver.
set(CURED_CUDA_TESTED 13.0)
# Native code for the chips of GPU nodes in use: A100, H100 and H200, B200, RTX 50 and PRO 6000. PTX for those to come.
set(CURED_CUDA_CHIPS 80-real 90-real 100-real 120-real 90-virtual)
# CPU-seconds of one entry of the list, for what configuring announces: 589 kernels and the ladder for sm_90 take 226.
set(CURED_CUDA_SECONDS_EACH 240)

# cured_cuda_look(COMPILER): asks nvcc what it is. Sets CURED_NVCC (its version) and CURED_NVCC_CHIPS (80 90 …). Fails where it
# is too old; says what a toolkit older than the tested one loses.
macro(cured_cuda_look compiler)
  execute_process(COMMAND ${compiler} --version OUTPUT_VARIABLE said ERROR_QUIET)
  string(REGEX REPLACE ".*release ([0-9]+\\.[0-9]+).*" "\\1" CURED_NVCC "${said}")
  if(NOT CURED_NVCC MATCHES "^[0-9]+\\.[0-9]+$")
    message(FATAL_ERROR "cured: ${compiler} does not say which CUDA toolkit it is of; -DCURED_CUDA=OFF builds without")
  endif()
  if(CURED_NVCC VERSION_LESS 12.0)
    message(FATAL_ERROR "cured: the CUDA toolkit is ${CURED_NVCC}, and the oldest that is taken is 12.0. "
                        "Take ${CURED_CUDA_TESTED}, the one that is tested, or build without: -DCURED_CUDA=OFF")
  endif()
  execute_process(COMMAND ${compiler} --list-gpu-code OUTPUT_VARIABLE said ERROR_QUIET)
  string(REGEX MATCHALL "sm_[0-9]+" CURED_NVCC_CHIPS "${said}")
  list(TRANSFORM CURED_NVCC_CHIPS REPLACE "sm_" "")
  if(CURED_NVCC VERSION_LESS 12.8)
    message(WARNING "cured: the CUDA toolkit is ${CURED_NVCC}; ${CURED_CUDA_TESTED} is the one that is tested. This one does "
                    "not compress kernels (programs are several times larger), does not know the chips 100 and 120, and "
                    "copies pieces one by one.")
  elseif(CURED_NVCC VERSION_LESS 13.0)
    message(WARNING "cured: the CUDA toolkit is ${CURED_NVCC}; ${CURED_CUDA_TESTED} is the one that is tested. With this one "
                    "pieces are copied one by one.")
  endif()
endmacro()

# cured_cuda_choose(OUT ASKED…): the chips to compile for: those asked for, all of which nvcc must know, or else those of
# CURED_CUDA_CHIPS that it knows.
function(cured_cuda_choose out)
  set(chosen ${ARGN})
  if(NOT chosen)
    set(chosen ${CURED_CUDA_CHIPS})
  endif()
  foreach(chip ${chosen})
    string(REGEX REPLACE "^([0-9]+).*" "\\1" number ${chip})
    if(NOT number MATCHES "^[0-9]+$" OR NOT CURED_NVCC_CHIPS OR number IN_LIST CURED_NVCC_CHIPS) # native, all: nvcc knows
      continue()
    endif()
    if(ARGN)
      list(JOIN CURED_NVCC_CHIPS " " known)
      message(FATAL_ERROR "cured: CUDAARCHS asks for ${chip}, which CUDA ${CURED_NVCC} does not know; it knows ${known}. "
                          "${CURED_CUDA_TESTED} is the toolkit that is tested.")
    endif()
    message(WARNING "cured: there will be no code for chip ${number}: CUDA ${CURED_NVCC} does not know it")
    list(REMOVE_ITEM chosen ${chip})
  endforeach()
  set(${out} ${chosen} PARENT_SCOPE)
endfunction()

# cured_cuda_announce(CHIP…): compiling takes long, so it is said before it begins.
function(cured_cuda_announce)
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  set(entries 0)
  foreach(chip ${ARGN})
    math(EXPR entries "${entries} + 1")
    if(chip MATCHES "^[0-9]+[a-z]?$") # both native code and PTX
      math(EXPR entries "${entries} + 1")
    endif()
  endforeach()
  math(EXPR minutes "(${entries} * ${CURED_CUDA_SECONDS_EACH} / ${cores} + 59) / 60")
  list(JOIN ARGN " " chips)
  message(STATUS "cured: the kernels will be compiled for the chips ${chips}: about ${minutes} minutes on ${cores} cores. "
                 "CUDAARCHS=90-real compiles for one chip, -DCURED_CUDA=OFF for none")
endfunction()

macro(cured_enable_cuda)
  cured_cuda_look(${CMAKE_CUDA_COMPILER})
  if(CMAKE_CUDA_ARCHITECTURES)
    cured_cuda_choose(chips ${CMAKE_CUDA_ARCHITECTURES})
  else()
    cured_cuda_choose(chips $ENV{CUDAARCHS})
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${chips} CACHE STRING "CUDA architectures")
  cured_cuda_announce(${CMAKE_CUDA_ARCHITECTURES})
  if(CURED_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CURED_CCACHE})
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O1 -DNDEBUG") # of the host's half, which only launches; kernels are always optimised
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  # -fmad=false: as on the CPU, no product is fused behind our back; what is meant to be fused says __fma_rn.
  # No -lineinfo: it makes the programs eight times larger. A profile that shows lines adds it: -DCMAKE_CUDA_FLAGS=-lineinfo.
  set(CURED_CUDA_OPTIONS -fmad=false --expt-relaxed-constexpr)
  if(CURED_NVCC VERSION_GREATER_EQUAL 12.8)
    list(LENGTH CMAKE_CUDA_ARCHITECTURES entries)
    if(entries GREATER 1)
      list(APPEND CURED_CUDA_OPTIONS --compress-mode=size)
    else() # somebody's own build: a third larger, and made in no time, where the other takes 2 s for kernels of 3 MB
      list(APPEND CURED_CUDA_OPTIONS --compress-mode=balance -Xfatbin=-compress-all)
    endif()
  endif()
endmacro()
