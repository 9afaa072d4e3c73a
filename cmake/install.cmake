# What `cmake --install` puts where: the daemon, the client, libcured (shared and static, pkg-config and CMake package
# files), systemd's files and the documents a user needs. Everything is relocatable but the unit, which names the daemon.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# A component has the name of the package that holds it (packages.cmake).
foreach(program cured cured-client cured-bench)
  install(TARGETS ${program} RUNTIME COMPONENT ${program})
endforeach()
if(TARGET cured-mpi)
  install(TARGETS cured-mpi RUNTIME COMPONENT cured-mpi)
endif()
install(TARGETS cured_client_static ARCHIVE COMPONENT libcured-dev)
if(TARGET cured_client_shared)
  install(TARGETS cured_client_shared LIBRARY COMPONENT libcured0 NAMELINK_COMPONENT libcured-dev)
endif()
if(TARGET cured_cuda_library) # nobody links with it: it is loaded by the name that its version has
  install(TARGETS cured_cuda_library LIBRARY COMPONENT libcured-cuda0 NAMELINK_SKIP)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/client/include/cured/cured.h ${PROJECT_SOURCE_DIR}/client/include/cured/cuda.h ${PROJECT_SOURCE_DIR}/client/include/cured/strided.h ${PROJECT_SOURCE_DIR}/client/include/cured/by_key.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cured
        COMPONENT libcured-dev)

if(TARGET cured_sum)
  install(TARGETS cured_sum ARCHIVE COMPONENT libcured-dev)
  install(FILES ${CURED_SUM_DIR}/cured_sum.h ${CURED_SUM_DIR}/cured_sum_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cured
          COMPONENT libcured-dev)
  install(DIRECTORY ${CURED_SUM_DIR}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/cured/sum COMPONENT libcured-dev)
endif()

# The way from the package files' folders back to the prefix, so that a moved tree still works.
file(RELATIVE_PATH CURED_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/cured.pc.in ${CMAKE_BINARY_DIR}/install/cured.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/install/cured.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT libcured-dev)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/cured)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/curedConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/install/curedConfig.cmake INSTALL_DESTINATION ${package}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/install/curedConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/install/curedConfig.cmake ${CMAKE_BINARY_DIR}/install/curedConfigVersion.cmake
        DESTINATION ${package} COMPONENT libcured-dev)

# Written when it is installed, because `cmake --install --prefix` may name another place than the configure step did.
set(unit_code [[
  set(CURED_BINDIR ${CMAKE_INSTALL_PREFIX}/@CMAKE_INSTALL_BINDIR@)
  set(CURED_DOCDIR ${CMAKE_INSTALL_PREFIX}/@CMAKE_INSTALL_DOCDIR@)
  foreach(name cured.service cured.socket)
    set(unit ${CMAKE_INSTALL_PREFIX}/lib/systemd/system/${name})
    message(STATUS "Installing: $ENV{DESTDIR}${unit}")
    configure_file(@PROJECT_SOURCE_DIR@/deploy/systemd/${name}.in $ENV{DESTDIR}${unit} @ONLY)
  endforeach()
]])
string(CONFIGURE "${unit_code}" unit_code @ONLY)
install(CODE "${unit_code}" COMPONENT cured)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/sysusers.conf DESTINATION lib/sysusers.d RENAME cured.conf
        COMPONENT cured)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME cured.conf
        COMPONENT cured)

# The pages lie as in the source, so that their links lead somewhere. What was measured, what measured it and the ladder stay in the
# source: a page that is installed names those files, and has no link to them.
set(CURED_PROTOCOL_PAGES proto/PROTOCOL.md proto/cured.proto proto/limits.h proto/status.def)
set(pages ${CURED_PROTOCOL_PAGES} LICENSE NOTICE README.md CHANGELOG.md CONTRIBUTING.md config/cured.json config/cured.schema.json client/include/cured/cured.h client/include/cured/cuda.h client/include/cured/strided.h client/include/cured/by_key.h client/sum/cured_sum.h
          deploy/compose.yml deploy/kubernetes/cpu.yaml deploy/kubernetes/gpu.yaml deploy/kubernetes/client.yaml
          deploy/kubernetes/podmonitor.yaml deploy/prometheus/prometheus.yml deploy/prometheus/cured.rules.yml deploy/grafana/cured.json)
file(GLOB more RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS docs/*.md docs/*.svg docs/*.webp docs/bench/*.svg examples/*.md
     examples/*.c examples/*.py examples/grpc/* examples/hpc/* examples/checkpoint/*.safetensors examples/checkpoint/sharded/*)
foreach(page ${pages} ${more})
  get_filename_component(folder ${page} DIRECTORY)
  set(installed ${PROJECT_SOURCE_DIR}/${page})
  if(page MATCHES "^docs/.*[.]md$")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${installed})
    file(READ ${installed} text)
    string(REGEX REPLACE "\\[([^][]*)\\]\\((bench/[^)]*[.](txt|json|log))\\)" "\\1 (docs/\\2 in the source)" text "${text}")
    string(REGEX REPLACE "\\[([^][]*)\\]\\([.][.]/((bench|kernels)/[^)]*)\\)" "\\1 (\\2 in the source)" text "${text}")
    set(installed ${CMAKE_BINARY_DIR}/install/${page})
    file(WRITE ${installed} "${text}")
  endif()
  install(FILES ${installed} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT cured)
endforeach()
