/* expand: arguments that stand for several files: a folder for those in it, a pattern for the paths that match, a.npz:* for the arrays of
 * an archive. A file that has such a name is that file.
 *
 * Thread: one. Owner: the names are the process's: they live until it ends. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "client/cli/format.h"
#include "client/cli/npz.h"

static char **names;
static size_t count, room;

static int no_memory(void) { return cli_fail(EXIT_IO, "out of memory"); }

/* Adds a name that was allocated; NULL: it was not. */
static int take(char *name) {
    if (name != NULL && count == room) {
        const size_t more = 2 * room + 64;
        char **grown = realloc(names, more * sizeof *names);
        if (grown != NULL) {
            names = grown;
            room = more;
        }
    }
    if (name == NULL || count == room) {
        free(name);
        return no_memory();
    }
    names[count++] = name;
    return EXIT_OK;
}

/* "before", "middle" and "after" as one string; NULL: no memory. */
static char *join(const char *before, const char *middle, const char *after) {
    char *text;
    return asprintf(&text, "%s%s%s", before, middle, after) >= 0 ? text : NULL;
}

static bool is_pattern(const char *text) { return strpbrk(text, "*?[") != NULL; }

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* ---- Archives ---- */

typedef struct members {
    const char *archive, *pattern;
    int code;
} members;

static cured_status take_member(void *user, const char *name, size_t length, const npz_member *m, cured_error *error) {
    members *of = user;
    char text[256];
    (void)m;
    (void)error;
    if (length <= 4 || length >= sizeof text || memcmp(name + length - 4, ".npy", 4) != 0) return CURED_OK;
    if (memchr(name, '\0', length) != NULL) return CURED_OK;
    snprintf(text, sizeof text, "%.*s", (int)(length - 4), name);
    if (fnmatch(of->pattern, text, 0) == 0 && of->code == EXIT_OK) of->code = take(join(of->archive, ":", text));
    return CURED_OK;
}

/* The arrays of an archive whose names match, in its order. */
static int take_archive(const char *archive, const char *pattern) {
    members of = {archive, pattern, EXIT_OK};
    const size_t before = count;
    const char *name;
    bool inner;
    int fd;
    struct stat st;
    cured_error error;
    int code = cli_open(archive, &name, &fd, &inner, &st);
    if (code == EXIT_OK && npz_each(fd, (uint64_t)st.st_size, take_member, &of, &error) != CURED_OK)
        code = cli_fail(EXIT_DATA, "%s: %s", archive, error.text);
    if (fd >= 0) close(fd);
    if (code == EXIT_OK) code = of.code;
    if (code == EXIT_OK && count == before)
        code = cli_fail(EXIT_NOINPUT, "%s has no array that matches '%s'", archive, pattern);
    return code;
}

/* ---- Folders ---- */

/* The .npy files of a folder by their names, and the arrays of its .npz files; or every file. Neither hidden ones nor folders. */
static int take_folder(const char *folder, bool every) {
    const size_t length = strlen(folder), before = count;
    DIR *open = opendir(folder);
    if (open == NULL)
        return cli_fail(errno == EACCES ? EXIT_DENIED : EXIT_NOINPUT, "cannot read the folder %s: %s", folder,
                        strerror(errno));
    int code = EXIT_OK;
    for (const struct dirent *entry; code == EXIT_OK && (entry = readdir(open)) != NULL;) {
        struct stat st;
        if (entry->d_name[0] == '.' || fstatat(dirfd(open), entry->d_name, &st, 0) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (!every && !format_ends_with(entry->d_name, ".npy") && !format_ends_with(entry->d_name, ".npz")) continue;
        code = take(join(folder, length != 0 && folder[length - 1] == '/' ? "" : "/", entry->d_name));
    }
    closedir(open);
    if (code == EXIT_OK && count == before)
        code = cli_fail(EXIT_NOINPUT, "the folder %s has no %s", folder,
                        every ? "files" : ".npy and no .npz files (with --dtype every file counts, as raw elements)");
    const size_t found = count - before;
    if (code != EXIT_OK) return code;
    qsort(names + before, found, sizeof *names, compare);
    char **files = malloc(found * sizeof *files);
    if (files == NULL) return no_memory();
    memcpy(files, names + before, found * sizeof *files);
    count = before;
    for (size_t i = 0; i < found; i++) {
        const bool archive = format_ends_with(files[i], ".npz");
        if (code == EXIT_OK) code = archive ? take_archive(files[i], "*") : take(strdup(files[i]));
        free(files[i]);
    }
    free(files);
    return code;
}

/* ---- Patterns ---- */

/* The paths that match, sorted; of a.npz:x those of the archives, and their arrays. */
static int take_pattern(const char *pattern) {
    const char *member = npz_member_name(pattern);
    char *paths = member != NULL ? strndup(pattern, (size_t)(member - 1 - pattern)) : strdup(pattern);
    glob_t found;
    struct stat st;
    int code = EXIT_OK;
    if (paths == NULL) return no_memory();
    if (member != NULL && !is_pattern(paths)) {
        code = take_archive(paths, member);
        free(paths);
        return code;
    }
    const int result = glob(paths, 0, NULL, &found);
    free(paths);
    if (result == GLOB_NOSPACE) return no_memory();
    if (result != 0) return cli_fail(EXIT_NOINPUT, "no file matches %s", pattern);
    for (size_t i = 0; i < found.gl_pathc && code == EXIT_OK; i++) {
        const char *path = found.gl_pathv[i];
        if (member != NULL)
            code = take_archive(path, member);
        else if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
            code = take(strdup(path));
    }
    globfree(&found);
    return code;
}

typedef enum kind { PLAIN, FOLDER, PATTERN } kind;

static kind kind_of(const char *name) {
    struct stat st;
    if (strcmp(name, "-") == 0) return PLAIN;
    if (stat(name, &st) == 0) return S_ISDIR(st.st_mode) ? FOLDER : PLAIN;
    return npz_may_be(errno) && is_pattern(name) ? PATTERN : PLAIN;
}

int cli_expand(cli_options *o, bool every) {
    bool any = false;
    int code = EXIT_OK;
    for (size_t i = 0; i < o->file_count; i++) any = any || kind_of(o->files[i]) != PLAIN;
    for (size_t i = 0; any && code == EXIT_OK && i < o->file_count; i++) switch (kind_of(o->files[i])) {
            case PLAIN:
                code = take(strdup(o->files[i]));
                break;
            case FOLDER:
                code = take_folder(o->files[i], every);
                break;
            case PATTERN:
                code = take_pattern(o->files[i]);
                break;
        }
    if (!any || code != EXIT_OK) return code;
    if (count == 0) return cli_fail(EXIT_NOINPUT, "no file matches %s", o->file);
    o->files = names;
    o->file_count = count;
    o->file = names[0];
    return EXIT_OK;
}
