/* text: see text.h. Thread: any. Owner: the caller's buffer. */
#include "proto/text.h"

#include <stdarg.h>
#include <stdio.h>

void cr_text_put(cr_text *t, const char *format, ...) {
    const size_t left = t->cap - t->used;
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(t->at + t->used, left, format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= left) {
        t->full = true;
        t->used = t->cap - 1;
    } else {
        t->used += (size_t)n;
    }
}
