# Options, languages and compiler flags: what holds for every target of the tree.
set(CURED_CUDA "AUTO" CACHE STRING "Build the CUDA lane: AUTO (when a CUDA compiler is found), ON, OFF")
set_property(CACHE CURED_CUDA PROPERTY STRINGS AUTO ON OFF)
set(CURED_SANITIZE "" CACHE STRING "Sanitizers for every target: empty, address,undefined or thread")
option(CURED_WERROR "Treat compiler warnings as errors" OFF)
option(CURED_TESTS "Build the tests" ON)
option(CURED_EMBEDDED "Let libcured answer in the caller's process (embedded:) with the CPU's folds" ON)
option(CURED_STATIC_DEPS "Link the static archives of dependencies into programs where there is one" OFF)

# The daemon's and the client's --version, HELLO and WELCOME; the number itself stands in project() alone.
add_compile_definitions(CURED_VERSION="${PROJECT_VERSION}" _GNU_SOURCE)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, RelWithDebInfo or Release" FORCE)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the lower rooms go into libcured.so as well
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(CURED_SANITIZE STREQUAL "thread")
  # Asserts stay, for what only a sanitizer's threads may find. A debugger knows lines, and in the preset dev variables too.
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
elseif(CURED_SANITIZE)
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
else()
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g -DNDEBUG")
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# -ffp-contract=off: an answer is the same bits on every instruction set, so no product is fused behind our back.
# Only for C: what the CUDA compiler takes stands in cuda.cmake.
function(cured_c_options)
  foreach(option ${ARGN})
    add_compile_options($<$<COMPILE_LANGUAGE:C>:${option}>)
  endforeach()
endfunction()
cured_c_options(-Wall -Wextra -Wshadow -Wvla -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes
                -ffp-contract=off -fno-math-errno)
# A new op, type, family or kind has to be thought of at each switch: scripts/check-layers allows few a default. The kernels are
# C++ on the emulated GPU, where this sees their switches too.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Werror=switch>)
if(CURED_WERROR)
  cured_c_options(-Werror)
endif()
if(CURED_SANITIZE)
  cured_c_options(-fsanitize=${CURED_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CURED_SANITIZE})
  # UBSan's places are data with addresses, half a million in the daemon. Those of a program at a fixed address are not relocated at
  # each of its starts.
  if(CURED_SANITIZE MATCHES "undefined" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
  # CURED_LARGE_OPTIONS: for the few files, the folds above all, whose compile is most of a sanitizer's.
  set(CURED_LARGE_OPTIONS -O1 -g1)
  if(CURED_SANITIZE MATCHES "undefined")
    list(APPEND CURED_LARGE_OPTIONS -fno-sanitize=null,object-size) # ASan sees both where memory is touched; a sixth of the compile
  endif()
  # ASan looks at each access in a function it calls, and finds the same, where a function has 50 accesses. By itself gcc calls it
  # from 7,000 on, and compiles twice as long. Were it called everywhere, small loops would run twice as long.
  if(CURED_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND CURED_LARGE_OPTIONS --param=asan-instrumentation-with-call-threshold=50)
  endif()
else()
  cured_c_options(-fstack-protector-strong $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  add_link_options(-Wl,-z,relro,-z,now)
endif()

# The system's libstdc++ wants a newer glibc than a bundle may; what CUDA and C++ programs need of it comes along.
if(CURED_STATIC_DEPS)
  add_link_options(-static-libstdc++ -static-libgcc)
  # A build id is made of the debugging information too, which names folders. Without it the stripped programs are the same bytes
  # wherever they are built.
  add_link_options(-Wl,--build-id=none)
endif()

# How clang's objects would be linked was not tried.
set(gcc OFF)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set(gcc ON)
endif()
option(CURED_LTO "Optimise the daemon as one program when it is linked, if what links it can" ${gcc})

find_program(CURED_CCACHE ccache)
if(CURED_CCACHE)
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${CURED_CCACHE})
    endif()
  endforeach()
endif()

# CURED_HAVE_CUDA tells the rooms whether a CUDA compiler is to be used.
set(CURED_HAVE_CUDA OFF)
if(CURED_CUDA STREQUAL "OFF")
  message(STATUS "cured: CUDA off, as asked: the CPU lane does all the work")
else()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CURED_HAVE_CUDA ON)
    message(STATUS "cured: CUDA compiler ${CMAKE_CUDA_COMPILER} found: the GPU lane is built")
  elseif(CURED_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CURED_CUDA=ON, but no CUDA compiler was found (put nvcc on PATH or set CUDACXX)")
  else()
    message(STATUS "cured: no CUDA compiler found: the CPU lane does all the work")
  endif()
endif()
