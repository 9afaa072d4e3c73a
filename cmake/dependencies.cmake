# The libraries cured stands on, each looked for once (docs/DEPENDENCIES.md says why these). Rooms link the targets
# cured_llhttp, PkgConfig::LIBUV, PkgConfig::NGHTTP2, PkgConfig::OPENSSL, PkgConfig::CJSON, PkgConfig::ZLIB and, in tests, PkgConfig::CHECK and PkgConfig::PROTOBUFC.
#
# With CURED_STATIC_DEPS the first three and those of tests stand for the static archives: what scripts/bundle builds. Debian's archives are
# not PIC, so libcured.so cannot be built that way; Debian has no archive of cJSON, so that one and zlib stay shared.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET GLOBAL libcjson>=1.7)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET GLOBAL zlib>=1.2)
if(CURED_STATIC_DEPS)
  pkg_check_modules(LIBUV REQUIRED IMPORTED_TARGET GLOBAL libuv-static>=1.44)
  pkg_check_modules(NGHTTP2 REQUIRED libnghttp2>=1.52)
  find_library(CURED_NGHTTP2_ARCHIVE NAMES libnghttp2.a HINTS ${NGHTTP2_LIBRARY_DIRS} ${NGHTTP2_LIBDIR} REQUIRED)
  add_library(PkgConfig::NGHTTP2 STATIC IMPORTED GLOBAL)
  set_target_properties(PkgConfig::NGHTTP2 PROPERTIES IMPORTED_LOCATION ${CURED_NGHTTP2_ARCHIVE}
                        INTERFACE_INCLUDE_DIRECTORIES "${NGHTTP2_INCLUDE_DIRS}")
  pkg_check_modules(OPENSSL REQUIRED libssl>=3.0 libcrypto>=3.0)
  find_library(CURED_SSL_ARCHIVE NAMES libssl.a HINTS ${OPENSSL_LIBRARY_DIRS} ${OPENSSL_LIBDIR} REQUIRED)
  find_library(CURED_CRYPTO_ARCHIVE NAMES libcrypto.a HINTS ${OPENSSL_LIBRARY_DIRS} ${OPENSSL_LIBDIR} REQUIRED)
  add_library(PkgConfig::OPENSSL STATIC IMPORTED GLOBAL)
  set_target_properties(PkgConfig::OPENSSL PROPERTIES IMPORTED_LOCATION ${CURED_SSL_ARCHIVE}
                        INTERFACE_INCLUDE_DIRECTORIES "${OPENSSL_INCLUDE_DIRS}"
                        INTERFACE_LINK_LIBRARIES "${CURED_CRYPTO_ARCHIVE};dl;Threads::Threads")
else()
  pkg_check_modules(LIBUV REQUIRED IMPORTED_TARGET GLOBAL libuv>=1.44)
  pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET GLOBAL libnghttp2>=1.52)
  pkg_check_modules(OPENSSL REQUIRED IMPORTED_TARGET GLOBAL libssl>=3.0 libcrypto>=3.0)
endif()

# llhttp is a library where the system has one (Debian 13, Fedora, Arch, Alpine). Debian 12 has its sources in C instead, in
# the package node-llhttp: they are compiled as they are.
find_path(CURED_LLHTTP_SOURCES llhttp.c PATHS /usr/share/llhttp NO_DEFAULT_PATH DOC "The folder of llhttp's sources")
find_path(CURED_LLHTTP_HEADER llhttp.h PATHS /usr/share/include/llhttp NO_DEFAULT_PATH DOC "The folder of llhttp.h beside them")
if(CURED_LLHTTP_SOURCES AND CURED_LLHTTP_HEADER)
  add_library(cured_llhttp STATIC ${CURED_LLHTTP_SOURCES}/api.c ${CURED_LLHTTP_SOURCES}/http.c ${CURED_LLHTTP_SOURCES}/llhttp.c)
  target_compile_options(cured_llhttp PRIVATE -w)
  target_include_directories(cured_llhttp SYSTEM PUBLIC ${CURED_LLHTTP_HEADER})
else()
  pkg_check_modules(LLHTTP REQUIRED IMPORTED_TARGET GLOBAL libllhttp>=6)
  add_library(cured_llhttp INTERFACE)
  target_link_libraries(cured_llhttp INTERFACE PkgConfig::LLHTTP)
endif()

if(CURED_TESTS AND CURED_STATIC_DEPS)
  pkg_check_modules(CHECK REQUIRED check>=0.15)
  find_library(CURED_CHECK_ARCHIVE NAMES libcheck_pic.a libcheck.a HINTS ${CHECK_LIBRARY_DIRS} ${CHECK_LIBDIR} REQUIRED)
  find_library(CURED_SUBUNIT_ARCHIVE NAMES libsubunit.a HINTS ${CHECK_LIBRARY_DIRS} ${CHECK_LIBDIR})
  add_library(PkgConfig::CHECK STATIC IMPORTED GLOBAL)
  set_target_properties(PkgConfig::CHECK PROPERTIES IMPORTED_LOCATION ${CURED_CHECK_ARCHIVE}
                        INTERFACE_INCLUDE_DIRECTORIES "${CHECK_INCLUDE_DIRS}"
                        INTERFACE_LINK_LIBRARIES "$<$<BOOL:${CURED_SUBUNIT_ARCHIVE}>:${CURED_SUBUNIT_ARCHIVE}>;rt;m")
  pkg_check_modules(PROTOBUFC REQUIRED libprotobuf-c>=1.4)
  find_library(CURED_PROTOBUFC_ARCHIVE NAMES libprotobuf-c.a HINTS ${PROTOBUFC_LIBRARY_DIRS} ${PROTOBUFC_LIBDIR} REQUIRED)
  add_library(PkgConfig::PROTOBUFC STATIC IMPORTED GLOBAL)
  set_target_properties(PkgConfig::PROTOBUFC PROPERTIES IMPORTED_LOCATION ${CURED_PROTOBUFC_ARCHIVE}
                        INTERFACE_INCLUDE_DIRECTORIES "${PROTOBUFC_INCLUDE_DIRS}")
elseif(CURED_TESTS)
  pkg_check_modules(CHECK IMPORTED_TARGET GLOBAL check>=0.15)
  pkg_check_modules(PROTOBUFC IMPORTED_TARGET GLOBAL libprotobuf-c>=1.4)
  if(NOT CHECK_FOUND OR NOT PROTOBUFC_FOUND)
    message(FATAL_ERROR "Check or protobuf-c (packages check, libprotobuf-c-dev) is missing: install them with "
                        "scripts/bootstrap --tests, or build without tests: -DCURED_TESTS=OFF")
  endif()
endif()
