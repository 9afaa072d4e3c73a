# cured_ladder_rows(OUT FOLDER): writes rows.cu, which has every row of ladder.def in a namespace of its own, to FOLDER; OUT becomes its
# name. One file, because most of what compiling a row takes is reading the headers.
function(cured_ladder_rows out folder)
  set(ladder ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  file(STRINGS ${ladder}/ladder.def rows REGEX "^CR_LADDER")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ladder}/ladder.def)
  list(TRANSFORM rows REPLACE "^CR_LADDER\\(([a-z0-9_]+),.*" "\\1")
  set(text "#include \"kernels/ladder/grid_stride.cuh\"\n#include \"kernels/ladder/row.cuh\"\n")
  foreach(row ${rows})
    string(APPEND text "namespace ${row} {\n#include \"kernels/ladder/${row}.cu\"\n}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/rows.cu CONTENT "${text}" @ONLY)
  set(${out} ${folder}/rows.cu PARENT_SCOPE)
endfunction()
