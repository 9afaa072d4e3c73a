# cured_enable_cuda(): what every CUDA target shares. The runtime is linked statically, so that the same binary starts where
# there is no driver; native code for the chips of GPU nodes in use, and PTX for those to come.
macro(cured_enable_cuda)
  if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual CACHE STRING "CUDA architectures")
  endif()
  if(CURED_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CURED_CCACHE})
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  # -fmad=false: as on the CPU, no product is fused behind our back; what is meant to be fused says __fma_rn.
  set(CURED_CUDA_OPTIONS -fmad=false -lineinfo --expt-relaxed-constexpr)
endmacro()
