/* count: a plugin of qemu-user that counts the instructions which a program executes. At each call of getppid, which does nothing else,
 * the plugin writes to standard error how many there were since the last one. Debian has no header for plugins, so what is used of
 * version 1 of their interface (docs/devel/tcg-plugins.rst of qemu) is declared here.
 *
 * It is compiled for the machine that runs qemu. Thread: the program's one thread. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct qemu_plugin_tb;
typedef uint64_t plugin_id;
enum { PLUGIN_ADD = 0, GETPPID = 173 };

int qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*translated)(plugin_id, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int op, void *to, uint64_t value);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id id,
                                          void (*called)(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
                                                         uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

static uint64_t executed, before;

static void block(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, PLUGIN_ADD, &executed, qemu_plugin_tb_n_insns(tb));
}

static void called(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                   uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)cpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number != GETPPID) return;
    fprintf(stderr, "%llu\n", (unsigned long long)(executed - before));
    before = executed;
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, block);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
