/* Configuration: the weight of each source, what each refuses and in which words, --print-config and --help. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/config_layer.h"
#include "tests/unit/check_main.h"

enum { MOST = 24 };

static char folder[] = "/tmp/cured-config-XXXXXX";
static char file_path[64];

/* Space-separated arguments after "cured". */
static cr_status load(const char *arguments, char *const *env, cr_config *config, cr_config_action *action,
                      cr_error *error) {
    static char text[2048];
    static char name[] = "cured";
    char *argv[MOST + 1] = {name};
    int argc = 1;
    snprintf(text, sizeof text, "%s", arguments);
    for (char *word = strtok(text, " "); word && argc < MOST; word = strtok(NULL, " ")) argv[argc++] = word;
    return cr_config_load(argc, argv, env, config, action, error);
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file_path, sizeof file_path, "%s/cured.json", folder);
    cr_config_default_file = file_path; /* so that the machine's own file plays no part */
}

static void remove_folder(void) {
    unlink(file_path);
    rmdir(folder);
}

static char *const no_env[] = {(char[]){"XDG_RUNTIME_DIR=/run/user/1"}, NULL};

START_TEST(defaults) {
    cr_config c;
    cr_config_action action;
    cr_error e;
    ck_assert_msg(load("", no_env, &c, &action, &e) == CR_OK, "%s", e.text);
    ck_assert_int_eq(action, CR_CONFIG_RUN);
    ck_assert_uint_eq(c.listen.count, 1);
    ck_assert_str_eq(c.listen.items[0], geteuid() == 0 ? "unix:/run/cured/cured.sock" : "unix:/run/user/1/cured.sock");
    ck_assert_uint_eq(c.socket_mode, 0660);
    ck_assert_uint_eq(c.max_input_bytes, 1ull << 50);
    ck_assert_str_eq(cr_config_word(&c, "log_level"), "info");
    ck_assert_str_eq(cr_config_word(&c, "backend"), "auto");
    ck_assert_str_eq(cr_config_word(&c, "slabs"), "unknown");
    for (size_t i = 0; i < cr_option_count; i++) ck_assert_int_eq(c.origin[i], CR_FROM_DEFAULT);
}
END_TEST

START_TEST(every_default_is_within_its_limits) {
    for (size_t i = 0; i < cr_option_count; i++) {
        const cr_option *o = &cr_options[i];
        if (o->kind != CR_OPT_UINT && o->kind != CR_OPT_OCTAL) continue;
        ck_assert_msg(o->min <= o->def && o->def <= o->max, "%s", o->key);
    }
}
END_TEST

START_TEST(later_sources_outweigh_earlier_ones) {
    char *const env[] = {(char[]){"CURED_SLABS=8"}, (char[]){"CURED_MAX_JOBS=9"}, NULL};
    cr_config c;
    cr_config_action action;
    cr_error e;
    write_file(file_path,
               "{\"slabs\": 7, \"max_jobs\": 7, \"files_threads\": 7, \"listen\": [\"unix:/a\", \"unix:/b\"]}");
    ck_assert_msg(load("--max-jobs=10 --listen unix:/c", env, &c, &action, &e) == CR_OK, "%s", e.text);
    ck_assert_uint_eq(c.files_threads, 7);
    ck_assert_uint_eq(c.slabs, 8);
    ck_assert_uint_eq(c.max_jobs, 10);
    ck_assert_uint_eq(c.listen.count, 1);
    ck_assert_str_eq(c.listen.items[0], "unix:/c");
    ck_assert_int_eq(c.origin[cr_option_find("files_threads")], CR_FROM_FILE);
    ck_assert_int_eq(c.origin[cr_option_find("slabs")], CR_FROM_ENV);
    ck_assert_int_eq(c.origin[cr_option_find("max_jobs")], CR_FROM_FLAG);
    ck_assert_int_eq(c.origin[cr_option_find("listen")], CR_FROM_FLAG);
    ck_assert_int_eq(c.origin[cr_option_find("spin_us")], CR_FROM_DEFAULT);
}
END_TEST

START_TEST(every_kind_from_every_source) {
    char *const env[] = {(char[]){"CURED_LISTEN=unix:/a,tcp:[::1]:80"},
                         (char[]){"CURED_INSECURE=true"},
                         (char[]){"CURED_BACKEND=cpu"},
                         (char[]){"CURED_SOCKET_MODE=600"},
                         (char[]){"CURED_MAX_INPUT_BYTES=4611686018427387904"},
                         (char[]){"CURED_CONNECT=unix:/x"},
                         (char[]){"CURED_PORT=tcp://10.0.0.1:80"},
                         (char[]){"PATH=/bin"},
                         NULL};
    cr_config c;
    cr_config_action action;
    cr_error e;
    ck_assert_msg(load("", env, &c, &action, &e) == CR_OK, "%s", e.text);
    ck_assert_uint_eq(c.listen.count, 2);
    ck_assert_str_eq(c.listen.items[1], "tcp:[::1]:80");
    ck_assert(c.insecure);
    ck_assert_uint_eq(c.backend, CR_BACKEND_CPU);
    ck_assert_uint_eq(c.socket_mode, 0600);
    ck_assert_uint_eq(c.max_input_bytes, 1ull << 62);

    write_file(file_path,
               "{\"insecure\": true, \"backend\": \"cuda\", \"socket_mode\": \"0666\", \"slabs\": 4,\n"
               " \"max_input_bytes\": \"4611686018427387903\", \"listen\": [\"tcp:0.0.0.0:1\"], \"spin_us\": 1e3}");
    ck_assert_msg(load("", NULL, &c, &action, &e) == CR_OK, "%s", e.text);
    ck_assert(c.insecure);
    ck_assert_uint_eq(c.backend, CR_BACKEND_CUDA);
    ck_assert_uint_eq(c.socket_mode, 0666);
    ck_assert_uint_eq(c.max_input_bytes, (1ull << 62) - 1);
    ck_assert_uint_eq(c.spin_us, 1000);

    unlink(file_path);
    ck_assert_msg(
        load("--listen unix:/a --listen=unix:/b --insecure=false --cpu-isa avx2 --socket-mode=0000 --insecure=false",
             no_env, &c, &action, &e) == CR_INVALID_ARGUMENT,
        "repeated flag");
    ck_assert_msg(load("--listen unix:/a --listen=unix:/b --insecure --cpu-isa avx2 --socket-mode=0000", no_env, &c,
                       &action, &e) == CR_OK,
                  "%s", e.text);
    ck_assert_uint_eq(c.listen.count, 2);
    ck_assert(c.insecure);
    ck_assert_str_eq(cr_config_word(&c, "cpu_isa"), "avx2");
    ck_assert_uint_eq(c.socket_mode, 0);
}
END_TEST

START_TEST(units_in_every_source) {
    char *const env[] = {(char[]){"CURED_MAX_STATE_BYTES=64MiB"}, (char[]){"CURED_LISTEN=unix:/a"}, NULL};
    cr_config c;
    cr_config_action action;
    cr_error e;
    write_file(
        file_path,
        "{\"$schema\": \"x\", \"max_answer_bytes\": \"3EiB\", \"stall_timeout_ms\": \"30s\", \"spin_us\": \"1ms\",\n"
        " \"drain_timeout_ms\": \"0s\"}");
    ck_assert_msg(
        load("--hello-timeout-ms 1h --max-region-bytes=5TiB --gpu-min-bytes 7B", env, &c, &action, &e) == CR_OK, "%s",
        e.text);
    ck_assert_uint_eq(c.max_state_bytes, 64ull << 20);
    ck_assert_uint_eq(c.max_answer_bytes, 3ull << 60);
    ck_assert_uint_eq(c.stall_timeout_ms, 30000);
    ck_assert_uint_eq(c.spin_us, 1000);
    ck_assert_uint_eq(c.drain_timeout_ms, 0);
    ck_assert_uint_eq(c.hello_timeout_ms, 3600000);
    ck_assert_uint_eq(c.max_region_bytes, 5ull << 40);
    ck_assert_uint_eq(c.gpu_min_bytes, 7);
}
END_TEST

/* config/cured.json shows every option with its default (and the address of a daemon run by root). */
START_TEST(the_example_is_the_defaults) {
    const char *source = getenv("CURED_TEST_SOURCE");
    cr_config example, plain;
    cr_config_action action;
    cr_error e;
    if (source) ck_assert_int_eq(chdir(source), 0); /* its name may hold spaces, and load() splits at them */
    ck_assert_msg(load("--config config/cured.json", no_env, &example, &action, &e) == CR_OK, "%s", e.text);
    ck_assert_msg(load("--listen unix:/run/cured/cured.sock", no_env, &plain, &action, &e) == CR_OK, "%s", e.text);
    for (size_t i = 0; i < cr_option_count; i++) {
        const cr_option *o = &cr_options[i];
        ck_assert_msg(example.origin[i] == CR_FROM_FILE, "config/cured.json lacks %s", o->key);
        ck_assert_msg(memcmp((char *)&example + o->offset, (char *)&plain + o->offset, o->size) == 0,
                      "config/cured.json: %s is not the default", o->key);
    }
}
END_TEST

START_TEST(files_named_by_flag_and_variable) {
    char other[80], variable[100], arguments[100];
    snprintf(other, sizeof other, "%s/other.json", folder);
    snprintf(variable, sizeof variable, "CURED_CONFIG=%s", other);
    snprintf(arguments, sizeof arguments, "--config %s", other);
    char *const env[] = {variable, (char[]){"XDG_RUNTIME_DIR=/run"}, NULL};
    cr_config c;
    cr_config_action action;
    cr_error e;
    write_file(file_path, "{\"slabs\": 5}");
    write_file(other, "{\"slabs\": 6}");
    ck_assert_int_eq(load("", no_env, &c, &action, &e), CR_OK);
    ck_assert_uint_eq(c.slabs, 5);
    ck_assert_int_eq(load("", env, &c, &action, &e), CR_OK);
    ck_assert_uint_eq(c.slabs, 6);
    unlink(file_path);
    ck_assert_int_eq(load(arguments, no_env, &c, &action, &e), CR_OK);
    ck_assert_uint_eq(c.slabs, 6);
    unlink(other);
    ck_assert_int_eq(load(arguments, no_env, &c, &action, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "other.json: No such file"));
    ck_assert_int_eq(load("", env, &c, &action, &e), CR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(actions) {
    cr_config c;
    cr_config_action action;
    cr_error e;
    write_file(file_path, "not JSON");
    ck_assert_int_eq(load("--help --nonsense", no_env, &c, &action, &e), CR_OK);
    ck_assert_int_eq(action, CR_CONFIG_HELP);
    ck_assert_int_eq(load("-h", no_env, &c, &action, &e), CR_OK);
    ck_assert_int_eq(action, CR_CONFIG_HELP);
    ck_assert_int_eq(load("--version", no_env, &c, &action, &e), CR_OK);
    ck_assert_int_eq(action, CR_CONFIG_VERSION);
    ck_assert_int_eq(load("--check-config", no_env, &c, &action, &e), CR_INVALID_ARGUMENT);
    write_file(file_path, "{}");
    ck_assert_int_eq(load("--check-config", no_env, &c, &action, &e), CR_OK);
    ck_assert_int_eq(action, CR_CONFIG_CHECK);
    ck_assert_int_eq(load("--slabs 9 --print-config", no_env, &c, &action, &e), CR_OK);
    ck_assert_int_eq(action, CR_CONFIG_PRINT);
}
END_TEST

static const struct {
    const char *arguments, *words;
} bad_flags[] = {
    {"start", "\"start\" is not a flag"},
    {"--", "is not a flag"},
    {"-x", "is not a flag"},
    {"--nonsense", "--nonsense: no such flag; --help lists them"},
    {"--lisen=unix:x", "--lisen: no such flag (did you mean --listen?)"},
    {"--log-lvel=info", "(did you mean --log-level?)"},
    {"--log_level=info", "--log_level: no such flag"},
    {"--worker 2", "--worker: no such flag (did you mean --cpu-workers?)"},
    {"--level info", "(did you mean --log-level?)"},
    {"--hosts x", "--hosts: no such flag; --help lists them"},
    {"--timeout-ms 5", "--timeout-ms: no such flag; --help lists them"}, /* of five */
    {"--slabs", "--slabs: needs a value"},
    {"--slabs 3", "--slabs: 3 is outside 4 to 65536"},
    {"--slabs 65537", "--slabs: 65537 is outside 4 to 65536"},
    {"--slabs -5", "--slabs: \"-5\" is not a whole number"},
    {"--slabs +5", "--slabs: \"+5\" is not"},
    {"--slabs 0x10", "--slabs: \"0x10\" is not"},
    {"--slabs 64k", "--slabs: \"64k\" is not"},
    {"--slabs=", "--slabs: \"\" is not"},
    {"--max-input-bytes 18446744073709551616", "--max-input-bytes: \"18446744073709551616\" is not"},
    {"--max-input-bytes 18446744073709551615", "--max-input-bytes: 18446744073709551615B is outside 1B to 4EiB"},
    {"--slabs 64KiB", "--slabs: \"64KiB\" is not a whole number of decimal digits"},
    {"--max-input-bytes 64MB", "--max-input-bytes: \"64MB\" is not a size: a whole number of bytes, or of KiB"},
    {"--max-input-bytes 1.5GiB", "is not a size"},
    {"--max-input-bytes KiB", "is not a size"},
    {"--max-input-bytes 16EiB", "is not a size"},
    {"--max-input-bytes 5EiB", "--max-input-bytes: 5EiB is outside 1B to 4EiB"},
    {"--stall-timeout-ms 50us", "--stall-timeout-ms: \"50us\" is not a time: a whole number of ms, or of s, min or h"},
    {"--stall-timeout-ms 2h", "--stall-timeout-ms: 2h is outside 10ms to 1h"},
    {"--spin-us 1min", "--spin-us: \"1min\" is not a time: a whole number of us, or of ms or s"},
    {"--slabs 5 --slabs 5", "--slabs: given twice"},
    {"--backend gpu", "--backend: \"gpu\" is not one of auto|cpu|cuda"},
    {"--backend=", "--backend: \"\" is not one of"},
    {"--backend auto|cpu", "--backend: \"auto|cpu\" is not one of"},
    {"--insecure=yes", "--insecure: \"yes\" is not true or false"},
    {"--socket-mode 0888", "--socket-mode: \"0888\" is not octal"},
    {"--socket-mode 1777", "--socket-mode: 1777 is outside 0000 to 0777"},
    {"--config", "--config: needs a value"},
    {"--config a --config a", "--config: given twice"},
    {"--listen nowhere", "--listen: \"nowhere\": an address is"},
    {"--listen unix:/a --listen unix:/a", "--listen: \"unix:/a\" is given twice"},
    {"--listen unix:1 --listen unix:2 --listen unix:3 --listen unix:4 --listen unix:5 --listen unix:6 --listen unix:7 "
     "--listen unix:8 --listen unix:9",
     "--listen: \"unix:9\" is one too many, the limit is 8"},
    {"--listen tcp:0.0.0.0:80", "listen: \"tcp:0.0.0.0:80\" may be reached from other machines"},
    {"--listen tcp:0.0.0.0:80 --insecure=false", "--insecure"},
    {"--help=1", "--help: no such flag"},
};

START_TEST(flags_that_are_refused) {
    cr_config c;
    cr_config_action action;
    cr_error e;
    ck_assert_msg(load(bad_flags[_i].arguments, no_env, &c, &action, &e) != CR_OK, "%s", bad_flags[_i].arguments);
    ck_assert_msg(strstr(e.text, bad_flags[_i].words) != NULL, "%s: \"%s\" lacks \"%s\"", bad_flags[_i].arguments,
                  e.text, bad_flags[_i].words);
}
END_TEST

static const struct {
    const char *text, *words;
} bad_files[] = {
    {"", "not valid JSON at line 1, column 1"},
    {"{\"slabs\": 5,}", "not valid JSON at line 1"},
    {"{\n  \"slabs\": 5,\n  oops\n}", "not valid JSON at line 3"},
    {"{} {}", "not valid JSON"},
    {"{\"slabs\": 5} trailing", "not valid JSON"},
    {"[]", "must hold one JSON object"},
    {"5", "must hold one JSON object"},
    {"{\"slab\": 5}", "key \"slab\": no such option"},
    {"{\"lisen\": 5}", "key \"lisen\": no such option (did you mean listen?)"},
    {"{\"wokers\": 5}", "key \"wokers\": no such option (did you mean cpu_workers?)"},
    {"{\"Slabs\": 5}", "key \"Slabs\": no such option"},
    {"{\"log-level\": \"info\"}", "key \"log-level\": no such option"},
    {"{\"\\u0007\": 5}", "key \"\\x07\": no such option"},
    {"{\"slabs\": 5, \"slabs\": 5}", "key \"slabs\": given twice"},
    {"{\"listen\": [\"unix:/a\"], \"listen\": [\"unix:/b\"]}", "key \"listen\": given twice"},
    {"{\"slabs\": 3}", "key \"slabs\": 3 is outside 4 to 65536"},
    {"{\"slabs\": -5}", "key \"slabs\": -5 is outside"},
    {"{\"slabs\": 5.5}", "key \"slabs\": 5.5 is not a whole number"},
    {"{\"slabs\": 1e400}", "key \"slabs\": inf is outside"},
    {"{\"max_input_bytes\": 9007199254740993}", "larger ones go as a string"},
    {"{\"gpu_chunk_bytes\": \"16mib\"}", "key \"gpu_chunk_bytes\": \"16mib\" is not a size"},
    {"{\"$schema\": 5}", "key \"$schema\": no such option"},
    {"{\"slabs\": true}", "key \"slabs\": must be a number"},
    {"{\"slabs\": null}", "key \"slabs\": must be a number"},
    {"{\"slabs\": [5]}", "key \"slabs\": must be a number"},
    {"{\"insecure\": 1}", "key \"insecure\": must be true or false"},
    {"{\"insecure\": \"true\"}", "key \"insecure\": must be true or false"},
    {"{\"backend\": 1}", "key \"backend\": must be a string"},
    {"{\"backend\": \"gpu\"}", "key \"backend\": \"gpu\" is not one of"},
    {"{\"socket_mode\": 660}", "key \"socket_mode\": permissions are given as a string"},
    {"{\"listen\": \"unix:/a\"}", "key \"listen\": must be a list of strings"},
    {"{\"listen\": [5]}", "key \"listen\": every entry of the list must be a string"},
    {"{\"listen\": [\"unix:/a\\u0000b\"]}", "a string holds \\u0000"},
    {"{\"backend\": \"\\\\\\u0000\"}", "a string holds \\u0000"},
    {"{\"slabs\\u0000\": 5}", "a string holds \\u0000"},
    {"{\"listen\": []}", "key \"listen\": the list is empty"},
    {"{\"listen\": [\"unix:/a\", \"unix:/a\"]}", "\"unix:/a\" is given twice"},
    {"{\"listen\": [\"tcp:1.2.3.4:5\"]}", "may be reached from other machines"},
};

START_TEST(files_that_are_refused) {
    cr_config c;
    cr_config_action action;
    cr_error e;
    write_file(file_path, bad_files[_i].text);
    ck_assert_msg(load("", no_env, &c, &action, &e) != CR_OK, "%s", bad_files[_i].text);
    ck_assert_msg(strstr(e.text, bad_files[_i].words) != NULL, "%s: \"%s\" lacks \"%s\"", bad_files[_i].text, e.text,
                  bad_files[_i].words);
    bool about_the_file = strstr(e.text, file_path) != NULL;
    ck_assert_msg(about_the_file || strstr(e.text, "other machines"), "\"%s\" does not name the file", e.text);
}
END_TEST

START_TEST(files_that_are_no_files) {
    cr_config c;
    cr_config_action action;
    cr_error e;
    char arguments[100];
    snprintf(arguments, sizeof arguments, "--config %s", folder);
    ck_assert_int_eq(load(arguments, no_env, &c, &action, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "regular file"));
    snprintf(arguments, sizeof arguments, "--config /dev/null");
    ck_assert_int_eq(load(arguments, no_env, &c, &action, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "/dev/null: it must be a regular file"));

    FILE *f = fopen(file_path, "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite("{}\0\n", 1, 4, f), 4);
    fclose(f);
    ck_assert_int_eq(load("", no_env, &c, &action, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "holds a NUL byte"));

    f = fopen(file_path, "we");
    ck_assert_ptr_nonnull(f);
    fputs("{}", f);
    for (int i = 0; i < 64 * 1024 - 1; i++) fputc(' ', f);
    fclose(f);
    ck_assert_int_eq(load("", no_env, &c, &action, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "larger than 65536 bytes"));
}
END_TEST

/* Nobody writes to it, so whoever opened it as usual would wait, and this test would hang. */
START_TEST(a_fifo_is_refused_at_once) {
    cr_config c;
    cr_config_action action;
    cr_error e;
    ck_assert_int_eq(mkfifo(file_path, 0600), 0);
    ck_assert_int_eq(load("", no_env, &c, &action, &e), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(e.text, "it must be a regular file"));
}
END_TEST

/* Two backslashes are one that is meant; what follows is text. */
START_TEST(an_escaped_backslash_is_no_nul) {
    cr_config c;
    cr_config_action action;
    cr_error e;
    write_file(file_path, "{\"listen\": [\"unix:/a\\\\u0000\"]}");
    ck_assert_msg(load("", no_env, &c, &action, &e) == CR_OK, "%s", e.text);
    ck_assert_str_eq(c.listen.items[0], "unix:/a\\u0000");
}
END_TEST

static const struct {
    const char *variable, *words;
} bad_env[] = {
    {"CURED_SLABS=", "CURED_SLABS: \"\" is not"},
    {"CURED_SLABS=3", "CURED_SLABS: 3 is outside 4 to 65536"},
    {"CURED_BACKEND=CPU", "CURED_BACKEND: \"CPU\" is not one of"},
    {"CURED_INSECURE=1", "CURED_INSECURE: \"1\" is not true or false"},
    {"CURED_LISTEN=", "CURED_LISTEN: \"\": an address is"},
    {"CURED_LISTEN=unix:/a,", "CURED_LISTEN: \"\": an address is"},
    {"CURED_LISTEN=unix:/a,unix:/a", "CURED_LISTEN: \"unix:/a\" is given twice"},
};

START_TEST(variables_that_are_refused) {
    char variable[100];
    char *const env[] = {variable, (char[]){"XDG_RUNTIME_DIR=/run"}, NULL};
    cr_config c;
    cr_config_action action;
    cr_error e;
    snprintf(variable, sizeof variable, "%s", bad_env[_i].variable);
    ck_assert_msg(load("", env, &c, &action, &e) != CR_OK, "%s", variable);
    ck_assert_msg(strstr(e.text, bad_env[_i].words) != NULL, "%s: \"%s\" lacks \"%s\"", variable, e.text,
                  bad_env[_i].words);
}
END_TEST

START_TEST(printed_with_origins) {
    char *const env[] = {(char[]){"CURED_BACKEND=cpu"}, NULL};
    cr_config c;
    cr_config_action action;
    cr_error e;
    char *text = NULL;
    size_t length = 0;
    write_file(file_path, "{\"slabs\": 7}");
    ck_assert_int_eq(load("--listen unix:/a --listen unix:/b", env, &c, &action, &e), CR_OK);
    FILE *out = open_memstream(&text, &length);
    cr_config_print(&c, out);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "listen                   unix:/a,unix:/b  (flag)\n"));
    ck_assert_ptr_nonnull(strstr(text, "slabs                    7  (file)\n"));
    ck_assert_ptr_nonnull(strstr(text, "backend                  cpu  (environment)\n"));
    ck_assert_ptr_nonnull(strstr(text, "socket_mode              0660  (default)\n"));
    ck_assert_ptr_nonnull(strstr(text, "insecure                 false  (default)\n"));
    size_t lines = 0;
    for (char *p = text; *p; p++) lines += *p == '\n';
    ck_assert_uint_eq(lines, cr_option_count);
    free(text);
}
END_TEST

START_TEST(help_names_every_option) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    cr_config_help(out);
    fclose(out);
    for (size_t i = 0; i < cr_option_count; i++) {
        char flag[CR_OPTION_ROOM], wanted[CR_OPTION_ROOM + 8];
        snprintf(wanted, sizeof wanted, "\n  --%s ", cr_option_flag(i, flag));
        ck_assert_msg(strstr(text, wanted) != NULL, "%s", wanted);
    }
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        ck_assert_msg(end - line <= 120, "%.*s", (int)(end - line), line);
    }
    free(text);
}
END_TEST

CR_CHECK_MAIN("base/config") {
    tcase_add_checked_fixture(tc, make_folder, remove_folder);
    tcase_add_test(tc, defaults);
    tcase_add_test(tc, every_default_is_within_its_limits);
    tcase_add_test(tc, later_sources_outweigh_earlier_ones);
    tcase_add_test(tc, every_kind_from_every_source);
    tcase_add_test(tc, units_in_every_source);
    tcase_add_test(tc, the_example_is_the_defaults);
    tcase_add_test(tc, files_named_by_flag_and_variable);
    tcase_add_test(tc, actions);
    tcase_add_loop_test(tc, flags_that_are_refused, 0, sizeof bad_flags / sizeof *bad_flags);
    tcase_add_loop_test(tc, files_that_are_refused, 0, sizeof bad_files / sizeof *bad_files);
    tcase_add_test(tc, files_that_are_no_files);
    tcase_add_test(tc, a_fifo_is_refused_at_once);
    tcase_add_test(tc, an_escaped_backslash_is_no_nul);
    tcase_add_loop_test(tc, variables_that_are_refused, 0, sizeof bad_env / sizeof *bad_env);
    tcase_add_test(tc, printed_with_origins);
    tcase_add_test(tc, help_names_every_option);
}
