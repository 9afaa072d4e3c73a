/* kind: files that are recognised to be refused with a sentence that helps: pickles, however old, and HDF5.
 *
 * Thread: one. */
#include <string.h>

#include "client/weights/table.h"

enum { HEAD_BYTES = 64 };

/* Bytes of a Python name, also a dotted one, that a line feed ends; 0: it is none. */
static size_t name_line(const uint8_t *p, size_t left) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.0123456789";
    size_t n = 0;
    while (n < left && p[n] != '\0' && strchr(letters, p[n]) != NULL) n++;
    return n != 0 && n < left && p[n] == '\n' ? n + 1 : 0;
}

/* Protocols 0 and 1 have no magic: a dict, a list or a tuple that is kept, or a name that is looked up, and a dot at the end. */
static bool is_old_pickle(const uint8_t *head, size_t have, uint8_t last) {
    static const char *const starts[] = {"(dp", "(lp", "(tp", "}q", "]q"};
    if (last != '.' || have < 4) return false;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (memcmp(head, starts[i], strlen(starts[i])) == 0) return true;
    const size_t module = *head == 'c' ? name_line(head + 1, have - 1) : 0;
    return module != 0 && name_line(head + 1 + module, have - 1 - module) != 0;
}

/* A header of 640 bytes has the same first bytes as a pickle: the length must fit the file, and JSON follow it. */
static bool is_safetensors(const uint8_t *head, uint64_t size) {
    uint64_t length = 0;
    for (unsigned i = 8; i-- > 0;) length = length << 8 | head[i];
    return size > 8 && length <= size - 8 && head[8] == '{';
}

cured_status weights_refuse_pickle(const weights *w, const char *what, cured_error *error) {
    return weights_refuse_file(w, error,
                               "it is %s, which runs code where it is read: save it by "
                               "safetensors.torch.save_file()",
                               what);
}

cured_status weights_refuse_kind(const weights *w, bool shard, cured_error *error) {
    const uint64_t size = w->files[w->file_count - 1].size;
    uint8_t head[HEAD_BYTES] = {0}, last = 0;
    const size_t have = size < sizeof head ? (size_t)size : sizeof head;
    cured_status status = weights_read(w, 0, head, have, error);
    if (status == CURED_OK && have != 0) status = weights_read(w, size - 1, &last, 1, error);
    if (status != CURED_OK) return status;
    const bool pickle = have >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
    if ((pickle || is_old_pickle(head, have, last)) && !is_safetensors(head, size))
        return weights_refuse_pickle(w, "a pickle, as PyTorch saves them", error);
    if (shard && have >= 4 && memcmp(head, "PK\3\4", 4) == 0)
        return weights_refuse_pickle(w, "a ZIP archive, as torch.save() writes around a pickle", error);
    if (have >= 4 && memcmp(head, "\x89HDF", 4) == 0)
        return weights_refuse_file(w, error, "it is an HDF5 file, which is not read");
    return CURED_OK;
}
