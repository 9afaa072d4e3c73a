# The Debian packages, one for each component of `cmake --install`. scripts/packages makes them; deploy/debian has what only
# packages hold: maintainer scripts, the configuration, copyright, changelog, and what lintian is told.
option(CURED_PACKAGES "Install what the Debian packages hold, under /usr (scripts/packages)" OFF)
if(NOT CURED_PACKAGES)
  return()
endif()
set(CURED_PACKAGE_VERSION ${PROJECT_VERSION} CACHE STRING "Of the packages; scripts/packages gives what scripts/version says")
set(CURED_PACKAGE_MAINTAINER "cured authors <cured@localhost>" CACHE STRING "Who answers for the packages: NAME <ADDRESS>")
set(debian ${PROJECT_SOURCE_DIR}/deploy/debian)
set(made ${CMAKE_BINARY_DIR}/debian)
set(CURED_PACKAGE_NAMES cured cured-client cured-bench libcured0 libcured-dev python3-cured)
if(TARGET cured_cuda_library)
  list(APPEND CURED_PACKAGE_NAMES libcured-cuda0)
endif()
if(TARGET cured-mpi) # where libopenmpi-dev is: it is bound to one MPI
  list(APPEND CURED_PACKAGE_NAMES cured-mpi)
endif()

install(FILES ${debian}/cured.json DESTINATION /etc/cured COMPONENT cured)
# The protocol, and what it links to.
list(TRANSFORM CURED_PROTOCOL_PAGES PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE protocol)
install(FILES ${protocol}
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libcured-dev COMPONENT libcured-dev)
install(TARGETS cured_python LIBRARY DESTINATION lib/python3/dist-packages/cured COMPONENT python3-cured)
file(GLOB modules ${PROJECT_SOURCE_DIR}/client/python/cured/*.py* ${PROJECT_SOURCE_DIR}/client/python/cured/py.typed)
install(FILES ${modules} DESTINATION lib/python3/dist-packages/cured COMPONENT python3-cured)

# As Debian has them: compressed, and without a date inside.
configure_file(${debian}/changelog.in ${made}/changelog @ONLY)
execute_process(COMMAND gzip -9nc ${made}/changelog OUTPUT_FILE ${made}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)
foreach(name ${CURED_PACKAGE_NAMES})
  install(FILES ${debian}/copyright ${made}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${name})
  file(READ ${debian}/lintian-overrides overrides)
  if(EXISTS ${debian}/${name}/lintian-overrides)
    file(READ ${debian}/${name}/lintian-overrides own)
    string(APPEND overrides ${own})
  endif()
  file(WRITE ${made}/overrides/${name} ${overrides})
  install(FILES ${made}/overrides/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${name})
  install(CODE "
    file(GLOB pages \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man*/*.[1-8])
    foreach(page \${pages})
      execute_process(COMMAND gzip -9nf \${page} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    set(root \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX})
    file(GLOB programs \${root}/bin/* \${root}/${CMAKE_INSTALL_LIBDIR}/*.so.*.* \${root}/lib/python3/dist-packages/cured/*.so)
    foreach(program \${programs})
      execute_process(COMMAND strip --strip-unneeded --remove-section=.comment \${program} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()" COMPONENT ${name})
endforeach()
install(CODE "file(GLOB archives \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libcured*.a)
  execute_process(COMMAND strip --strip-debug --remove-section=.comment \${archives} COMMAND_ERROR_IS_FATAL ANY)" COMPONENT libcured-dev)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_VERSION ${CURED_PACKAGE_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_COMPONENTS_ALL ${CURED_PACKAGE_NAMES})
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${CURED_PACKAGE_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SOURCE cured)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# cured_package(NAME SECTION section SUMMARY line TEXT paragraph [DEPENDS …] [RECOMMENDS …] [SUGGESTS …] [BREAKS …] [SCRIPTS file…])
macro(cured_package name)
  cmake_parse_arguments(P "" "SECTION;SUMMARY;DEPENDS;RECOMMENDS;SUGGESTS;BREAKS" "TEXT;SCRIPTS" ${ARGN})
  string(TOUPPER ${name} upper)
  list(JOIN P_TEXT "\n" P_TEXT)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${P_SECTION})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${P_SUMMARY}\n${P_TEXT}")
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${P_SUMMARY}\n${P_TEXT}")
  foreach(field DEPENDS RECOMMENDS SUGGESTS BREAKS)
    if(P_${field})
      set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${P_${field}}")
    endif()
  endforeach()
  if(P_SCRIPTS)
    set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${P_SCRIPTS}")
  endif()
endmacro()

set(exact "Every answer is the true value, rounded once: the same bits on a CPU and"
    "on a GPU, on every machine and in every split.")
set(scripts ${debian}/cured)
# The GPU's kernels, of the daemon's version: an upgrade that starts it again has both in place then.
set(kernels "")
if(TARGET cured_cuda_library)
  set(kernels "libcured-cuda0 (= ${CURED_PACKAGE_VERSION})")
endif()
cured_package(cured SECTION science SUMMARY "daemon that reduces arrays exactly for all programs of a machine"
  TEXT "Sums, averages and searches arrays that programs send, pass as descriptors" "or share with it, on the CPU and on CUDA devices."
       ${exact}
  DEPENDS "cured-client, systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles" # systemctl reload asks by it
  RECOMMENDS ${kernels} BREAKS "libcured-cuda0 (<< ${CURED_PACKAGE_VERSION}), libcured-cuda0 (>> ${CURED_PACKAGE_VERSION})"
  SCRIPTS ${scripts}/conffiles ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)
cured_package(cured-client SECTION science SUMMARY "exact reductions of arrays from the command line"
  TEXT "Sums, averages and searches arrays in files, by the daemon cured or" "without it." ${exact}
  RECOMMENDS libssl3 SUGGESTS cured)
cured_package(cured-bench SECTION science SUMMARY "measurements of the reduction daemon cured"
  TEXT "Measures the folds, the lanes and the daemon of cured on this machine, each" "beside its floor." SUGGESTS cured)
cured_package(cured-mpi SECTION science SUMMARY "exact reductions of arrays by the ranks of an MPI job"
  TEXT "Every rank reduces its slice of the files, and one of them merges what they" "found." ${exact}
  DEPENDS openmpi-bin SUGGESTS cured)
cured_package(libcured0 SECTION libs SUMMARY "exact reductions of arrays, shared library"
  TEXT "Asks the daemon cured, or answers in the caller's own process." ${exact}
  RECOMMENDS libssl3 SUGGESTS "cured, libcured-cuda0" SCRIPTS ${made}/shlibs ${debian}/libcured0/triggers)
cured_package(libcured-cuda0 SECTION libs SUMMARY "exact reductions of arrays in GPU memory, shared library"
  TEXT "Has the kernels of CUDA devices: the daemon cured loads it, and so do libcured" "and Python when a program first reduces memory of such a device." ${exact}
  DEPENDS "libcured0 (= ${CURED_PACKAGE_VERSION}) | python3-cured (= ${CURED_PACKAGE_VERSION}) | cured (= ${CURED_PACKAGE_VERSION})"
  SCRIPTS ${made}/cuda/shlibs ${debian}/libcured-cuda0/triggers)
cured_package(libcured-dev SECTION libdevel SUMMARY "exact reductions of arrays, for building programs"
  TEXT "The header and the archive of libcured, its files for pkg-config and CMake," "and the protocol of the daemon cured." ${exact}
  DEPENDS "libcured0 (= ${CURED_PACKAGE_VERSION})" SUGGESTS cured)
set(scripts ${debian}/python3-cured)
cured_package(python3-cured SECTION python SUMMARY "exact reductions of arrays from Python"
  TEXT "Reduces NumPy's arrays, tensors, buffers and files, in the process or by the" "daemon cured." ${exact}
  DEPENDS "python3 (>= 3.11)" RECOMMENDS "python3-numpy, libssl3" SUGGESTS "cured, cured-client, libcured-cuda0" SCRIPTS ${scripts}/postinst ${scripts}/prerm)
# Every version may add functions, so programs want the version that they were built with, or a later one.
file(WRITE ${made}/cuda/shlibs "libcured-cuda ${PROJECT_VERSION_MAJOR} libcured-cuda0 (>= ${CURED_PACKAGE_VERSION})\n")
file(WRITE ${made}/shlibs "libcured ${PROJECT_VERSION_MAJOR} libcured0 (>= ${CURED_PACKAGE_VERSION})\n")
include(CPack)
