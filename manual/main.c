/* cured_manual VERSION FOLDER: writes man pages and completions of all programs into FOLDER.
 *
 * Thread: one. */
#include "manual/manual.h"

static bool opened(FILE **file, const char *folder, const char *format, const char *name, int section) {
    char path[4096], leaf[64];
    snprintf(leaf, sizeof leaf, format, name, section);
    snprintf(path, sizeof path, "%s/%s", folder, leaf);
    *file = fopen(path, "we");
    if (*file == NULL) perror(path);
    return *file != NULL;
}

static bool closed(FILE *file) {
    const bool good = ferror(file) == 0;
    return fclose(file) == 0 && good;
}

static bool write_shell(const manual_program *p, const char *folder, const char *format,
                        void (*put)(const manual_program *, FILE *)) {
    FILE *file;
    if (!opened(&file, folder, format, p->name, 0)) return false;
    put(p, file);
    return closed(file);
}

static bool write_all(const manual_program *p, const char *version, const char *folder) {
    FILE *file;
    if (!opened(&file, folder, "%s.%d", p->name, p->section)) return false;
    manual_man(p, version, file);
    return closed(file) && write_shell(p, folder, "%s.bash", manual_bash) &&
           write_shell(p, folder, "_%s", manual_zsh) && write_shell(p, folder, "%s.fish", manual_fish);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: cured_manual VERSION FOLDER\n");
        return 64;
    }
    for (const manual_program *const *p = manual_programs(); *p != NULL; p++)
        if (!write_all(*p, argv[1], argv[2])) return 74;
    return 0;
}
