# wheel: the parts of the wheel (scripts/wheel) that differ from the build's own: the extension and cured-client with zlib and cJSON linked
# in, so that both need glibc alone. Nothing here is built unless the target wheel_parts is asked for; its first build fetches the sources.
set(wheel ${CMAKE_BINARY_DIR}/wheel)
set(zlib ${wheel}/sources/zlib)
set(cjson ${wheel}/sources/cjson)
# What inflating takes, and no more: nothing of ours deflates.
set(zlib_sources ${zlib}/adler32.c ${zlib}/crc32.c ${zlib}/inffast.c ${zlib}/inflate.c ${zlib}/inftrees.c ${zlib}/zutil.c)
add_custom_command(
  OUTPUT ${zlib_sources} ${cjson}/cJSON.c
  COMMAND ${PROJECT_SOURCE_DIR}/scripts/wheel-sources ${wheel}/sources
  DEPENDS ${PROJECT_SOURCE_DIR}/scripts/wheel-sources
  COMMENT "Fetching the sources of zlib and cJSON"
  VERBATIM)
add_library(cured_wheel_libraries STATIC EXCLUDE_FROM_ALL ${zlib_sources} ${cjson}/cJSON.c)
set_target_properties(cured_wheel_libraries PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden
                      ARCHIVE_OUTPUT_DIRECTORY ${wheel})
target_compile_options(cured_wheel_libraries PRIVATE -w) # others' code

# The archives by their files: as targets they would bring the shared libz along.
add_library(cured_wheel_python MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:cured_python>)
set_target_properties(cured_wheel_python PROPERTIES
  PREFIX "" OUTPUT_NAME _cured SUFFIX .abi3.so LINKER_LANGUAGE C LIBRARY_OUTPUT_DIRECTORY ${wheel}/cured)
target_link_options(cured_wheel_python PRIVATE -Wl,--exclude-libs,ALL)
target_link_libraries(cured_wheel_python PRIVATE $<TARGET_FILE:cured_weights> cured_wheel_libraries cured_client_static)
add_dependencies(cured_wheel_python cured_python)

add_executable(cured_wheel_client EXCLUDE_FROM_ALL $<TARGET_OBJECTS:cured-client>)
set_target_properties(cured_wheel_client PROPERTIES
  OUTPUT_NAME cured-client LINKER_LANGUAGE C RUNTIME_OUTPUT_DIRECTORY ${wheel}/cured)
target_link_libraries(cured_wheel_client PRIVATE
  $<TARGET_FILE:cured_cli> $<TARGET_FILE:cured_weights> cured_wheel_libraries cured_client_static)
add_dependencies(cured_wheel_client cured-client)

add_custom_target(wheel_parts DEPENDS cured_wheel_python cured_wheel_client)
