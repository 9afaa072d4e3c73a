# How a test joins the build: cured_add_check_test for a C program on Check, cured_add_script_test for anything else.

set(CURED_TESTS_WITHOUT "" CACHE STRING "Labels (a regular expression) of tests that are neither built nor run")

# A test with the label integration or values takes long under a sanitizer, so CI runs it under one of the two at most. The commit and the
# test's name draw which quarter it is of: one is for TSan, one for ASan, and the others are those of other commits. The label values is
# for unit tests of many answers, whose threads and memory are those of other tests, which run under both.
set(CURED_TESTS_QUARTER "" CACHE STRING "0 to 3: run only this quarter of the tests with the label integration or values")
set(CURED_TESTS_DRAW 1 CACHE STRING "What draws the quarters")

# Whether a test of these labels is wanted.
function(cured_test_wanted result)
  set(wanted ON)
  foreach(label ${ARGN})
    if(CURED_TESTS_WITHOUT AND label MATCHES "^(${CURED_TESTS_WITHOUT})$")
      set(wanted OFF)
    endif()
  endforeach()
  set(${result} ${wanted} PARENT_SCOPE)
endfunction()

# What programs for another machine run by: CMake sees to those that ctest starts, scripts ask the environment.
string(REPLACE ";" " " CURED_TEST_EMULATOR "${CMAKE_CROSSCOMPILING_EMULATOR}")

# Set in every test; the daemon ignores CURED_TEST_*. A sanitizer's finding ends the program with a failure, and leaks count. malloc asks for
# huge pages, because page faults are half of what a test of large arrays takes in a virtual machine; a daemon that is tested does not.
set(CURED_TEST_ENVIRONMENT
    "ASAN_OPTIONS=abort_on_error=0:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"
    "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
    "CURED_TEST_BIN=${CMAKE_BINARY_DIR}/bin"
    "CURED_TEST_DIR=${CMAKE_BINARY_DIR}/tests"
    "CURED_TEST_SOURCE=${PROJECT_SOURCE_DIR}"
    "CURED_TEST_SANITIZE=${CURED_SANITIZE}"
    "CURED_TEST_EMULATOR=${CURED_TEST_EMULATOR}"
    "PYTHONDONTWRITEBYTECODE=1")

# CURED_PYTHON: a Python that has NumPy where there is one (test oracles use it), any Python otherwise.
function(cured_find_python)
  if(CURED_PYTHON MATCHES "^(ON|YES|TRUE|Y|1)$")
    message(FATAL_ERROR "CURED_PYTHON=${CURED_PYTHON}: it names the Python that runs tests, as /usr/bin/python3. "
                        "For the extension, -DCURED_PYTHON_EXTENSION=ON")
  elseif(CURED_PYTHON)
    return()
  endif()
  foreach(candidate python3 /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import sys, numpy; print(sys.executable)" OUTPUT_VARIABLE found
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      set(CURED_PYTHON ${found} CACHE FILEPATH "Python used by tests")
      return()
    endif()
  endforeach()
  message(STATUS "cured: no Python with NumPy found: the tests that need one will say that they are skipped")
  find_program(CURED_PYTHON python3)
endfunction()

# cured_add_check_test(NAME SOURCES file… [LIBS target…] [INCLUDES dir…] [DEFINES name=value…] [ENVIRONMENT var=value…]
#                      [LABELS label…] [TIMEOUT seconds] [NO_FORK])
# Builds NAME into build/<preset>/tests/ and registers it. NO_FORK sets CK_FORK=no.
function(cured_add_check_test name)
  cmake_parse_arguments(T "NO_FORK" "TIMEOUT" "SOURCES;LIBS;INCLUDES;DEFINES;ENVIRONMENT;LABELS" ${ARGN})
  if(T_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cured_add_check_test(${name}): unknown arguments ${T_UNPARSED_ARGUMENTS}")
  endif()
  cured_test_wanted(wanted ${T_LABELS})
  if(NOT wanted)
    return()
  endif()
  set(working_directory ${CMAKE_CURRENT_BINARY_DIR})
  if(CURED_STATIC_DEPS)
    # A bundle's tests find their data from where run-tests starts them, wherever the bundle lies.
    string(REPLACE "${PROJECT_SOURCE_DIR}/" "./" T_DEFINES "${T_DEFINES}") # with the slash: /cured stands in /cured/proto/cured.proto twice
    set(working_directory ${PROJECT_SOURCE_DIR})
  endif()
  add_executable(${name} ${T_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${T_INCLUDES})
  target_compile_definitions(${name} PRIVATE ${T_DEFINES})
  # Check's macros compare with themselves and shadow; START_TEST has no prototype.
  target_compile_options(${name} PRIVATE -Wno-missing-prototypes)
  target_link_libraries(${name} PRIVATE ${T_LIBS} PkgConfig::CHECK Threads::Threads)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${working_directory})
  set(environment ${CURED_TEST_ENVIRONMENT} "CK_DEFAULT_TIMEOUT=300" ${T_ENVIRONMENT})
  if(T_NO_FORK)
    list(APPEND environment "CK_FORK=no")
  endif()
  cured_test_properties(${name} "${environment}" "${T_LABELS}" "${T_TIMEOUT}")
endfunction()

# cured_add_script_test(NAME COMMAND word… [ENVIRONMENT var=value…] [LABELS label…] [TIMEOUT seconds])
# Exit code 77 means skipped, with the reason on standard output. A COMMAND that is a .py file runs under CURED_PYTHON.
function(cured_add_script_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "COMMAND;ENVIRONMENT;LABELS" ${ARGN})
  if(T_UNPARSED_ARGUMENTS OR NOT T_COMMAND)
    message(FATAL_ERROR "cured_add_script_test(${name}): COMMAND is missing or arguments are unknown")
  endif()
  cured_test_wanted(wanted ${T_LABELS})
  if(NOT wanted)
    return()
  endif()
  list(GET T_COMMAND 0 program)
  if(program MATCHES "(\\.py|/check-(layers|headers))$")
    cured_find_python()
    if(NOT CURED_PYTHON)
      set(T_COMMAND sh -c "echo 'skipped: no python3'; exit 77")
    else()
      list(PREPEND T_COMMAND ${CURED_PYTHON})
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${T_COMMAND} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  cured_test_properties(${name} "${CURED_TEST_ENVIRONMENT};${T_ENVIRONMENT}" "${T_LABELS}" "${T_TIMEOUT}")
endfunction()

# Tests that take long, the longest first: ctest starts them first, so that none of them runs alone at the end.
set(CURED_LONG_TESTS property axis_property test_axis docs sum_file without_embedded emulated_offsets bench_load hpc
    integration_gpu_lane client_cli_weights integration_gpu_axis_faults fault_allocations integration_gpu_outputs
    python_cuda_here double_caller_faults integration_fuzz emulated_axis integration_uploads python_extension
    python_programs cuda_axis_plan test_server_conn test_engine_feed integration_answers integration_axis
    integration_crowd integration_lifecycle integration_regions emulated_folds emulated_ladder test_client_text
    integration_hostile_memory integration_axis_products)

function(cured_test_properties name environment labels timeout)
  if(NOT timeout)
    set(timeout 600)
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}" LABELS "${labels}" TIMEOUT ${timeout}
                       SKIP_RETURN_CODE 77)
  if(NOT CURED_TESTS_QUARTER STREQUAL "" AND labels MATCHES "(^|;)(integration|values)(;|$)")
    string(MD5 drawn "${CURED_TESTS_DRAW} ${name}")
    string(SUBSTRING ${drawn} 0 6 drawn)
    math(EXPR drawn "0x${drawn} % 4")
    if(NOT drawn EQUAL CURED_TESTS_QUARTER)
      set_tests_properties(${name} PROPERTIES DISABLED ON) # ctest says so
    endif()
  endif()
  list(FIND CURED_LONG_TESTS ${name} place)
  if(NOT place EQUAL -1)
    math(EXPR cost "1000 - ${place}")
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
endfunction()
