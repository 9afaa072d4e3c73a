# embed: writes a file's bytes as a C array. cmake -DINPUT=FILE -DOUTPUT=FILE.c -DNAME=SYMBOL -P embed.cmake
file(READ ${INPUT} bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR length "${digits} / 2")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <stddef.h>
#include <stdint.h>
extern const uint8_t ${NAME}[];
extern const size_t ${NAME}_bytes;
const uint8_t ${NAME}[] = {${bytes}};
const size_t ${NAME}_bytes = ${length};
")
