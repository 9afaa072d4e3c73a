#!/usr/bin/env bash
# test_install: installs the build into an empty prefix, then builds one C program against it four ways (pkg-config and
# find_package, shared and static), from a moved copy of that prefix, and has each ask a daemon from the same prefix.
set -euo pipefail
build=$(dirname "${CURED_TEST_BIN:?the build to install is named by CURED_TEST_BIN}")
work=$(mktemp -d "${TMPDIR:-/tmp}/cured-install.XXXXXX")
daemon=''
clean_up() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap clean_up EXIT
fail() { echo "test_install: $*" >&2 && exit 1; }

cmake --install "$build" --prefix "$work/first" >"$work/log"
for file in bin/cured bin/cured-client bin/cured-bench include/cured/cured.h lib/libcured.a lib/libcured.so lib/systemd/system/cured.service lib/systemd/system/cured.socket \
    lib/libcured-sum.a include/cured/cured_sum.h share/cured/sum/cured_sum.c \
    lib/sysusers.d/cured.conf lib/tmpfiles.d/cured.conf share/doc/cured/NOTICE share/doc/cured/LICENSE share/doc/cured/proto/PROTOCOL.md \
    share/doc/cured/proto/cured.proto share/doc/cured/config/cured.json share/man/man8/cured.8 share/man/man1/cured-client.1 \
    share/man/man1/cured-bench.1 share/bash-completion/completions/cured-client share/zsh/vendor-completions/_cured-client \
    share/fish/vendor_completions.d/cured-client.fish; do
    [ -s "$work/first/$file" ] || fail "$file is not installed"
done
# Links of the installed pages lead somewhere.
while IFS= read -r page; do
    while IFS= read -r target; do
        [ -e "$(dirname "$page")/$target" ] || fail "${page#"$work"/first/} links to $target, which is not installed"
    done < <(sed '/^ *```/,/^ *```/d' "$page" | grep -o '](\([^)#]*\)' | cut -c 3- | grep -v '^[a-z]*:' | grep . || true)
done < <(find "$work/first/share/doc/cured" -name '*.md')
# What was measured and the ladder are the source's; pages name them.
if find "$work/first/share/doc/cured" -path '*/bench/*' ! -name '*.svg' -o -path '*/kernels/*' -o -name '*.cu' | grep .; then
    fail "the files above are not for who installs it"
fi
grep -q 'peers-h200.json. in git: .git show' "$work/first/share/doc/cured/docs/NUMERICS.md" || fail "NUMERICS does not say where its figures are"
# The files alone: how long a folder is depends on the file system.
bytes=$(find "$work/first/share/doc/cured" -type f -printf '%s\n' | awk '{sum += $1} END {print sum}')
[ "$bytes" -le 1000000 ] || fail "the pages take $bytes bytes, limit is 1 MB"
# Nothing of the tree that built it may be in what a user's build reads.
if grep -rl "$build" "$work"/first/lib/pkgconfig "$work"/first/lib/cmake "$work"/first/lib/systemd; then
    fail "the files above name the build folder"
fi
grep -q "^ExecStart=$work/first/bin/cured\$" "$work/first/lib/systemd/system/cured.service" || fail "the unit starts another file"
cp -a "$work/first" "$work/moved" && rm -rf "$work/first"
prefix=$work/moved

"$prefix/bin/cured" --listen "unix:$work/s" 2>"$work/daemon.log" &
daemon=$!
export CURED_CONNECT=unix:$work/s
for _ in $(seq 600); do
    ! "$prefix/bin/cured-client" ping >/dev/null 2>&1 || break
    sleep 0.1
done

cat >"$work/main.c" <<'C'
/* Sums four floats whose exact sum no order of float additions gives. */
#include <cured/cured.h>
#include <stdio.h>

int main(void) {
    const float array[] = {1e8f, 0.5f, 0.25f, -1e8f};
    const cured_op op = CURED_OP_SUM;
    cured_conn *conn = NULL;
    cured_call *call = NULL;
    cured_error error = {CURED_OK, 0, ""};
    char text[CURED_TEXT_BYTES] = "";
    if (!cured_connect(NULL, NULL, &conn, &error) &&
        !cured_reduce_buffer(conn, CURED_F32, &op, 1, array, 4, NULL, &call, &error) && !cured_wait(call, &error))
        cured_value_text(cured_call_value(call, 0), text, sizeof text);
    printf("%s%s\n", text, error.text);
    cured_call_free(call);
    cured_close(conn);
    return 0;
}
C
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'CMAKE'
# A user's project.
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(cured 0.2 REQUIRED)
foreach(kind cured cured_static)
  add_executable(with_${kind} ../main.c)
  target_link_libraries(with_${kind} PRIVATE cured::${kind})
endforeach()
CMAKE

# With sanitizers in the library, its users need their runtime at the link.
flags=(-std=c11 -Wall -Wextra -Werror)
[ -z "${CURED_TEST_SANITIZE:-}" ] || flags+=("-fsanitize=$CURED_TEST_SANITIZE")
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -ra compile <<<"$(pkg-config --cflags cured)"
read -ra shared <<<"$(pkg-config --libs cured)"
read -ra static <<<"$(pkg-config --static --libs cured)"
cc "${flags[@]}" "${compile[@]}" "$work/main.c" "${shared[@]}" -o "$work/pc_shared"
cc "${flags[@]}" "${compile[@]}" "$work/main.c" "${static[@]/-lcured/-l:libcured.a}" -o "$work/pc_static"
CFLAGS="${flags[*]}" cmake -G Ninja -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 ||
    { cat "$work/log" && fail "find_package"; }
cmake --build "$work/project/build" >"$work/log" 2>&1 || { cat "$work/log" && fail "build with find_package"; }

check() { # NAME PROGRAM needs|lacks
    local answer
    answer=$(LD_LIBRARY_PATH=$prefix/lib "$2") || fail "$1: ended with status $?"
    [ "$answer" = 0.75 ] || fail "$1: the sum is \"$answer\", not 0.75"
    answer=$(CURED_CONNECT=embedded: LD_LIBRARY_PATH=$prefix/lib "$2") || fail "$1: without a daemon it ended with status $?"
    [ "$answer" = 0.75 ] || fail "$1: without a daemon the sum is \"$answer\", not 0.75"
    local found=lacks
    ! readelf -d "$2" | grep -q 'NEEDED.*libcured\.so\.0' || found=needs
    [ $found = "$3" ] || fail "$1: $found libcured.so.0, expected: $3"
    echo "$1: $answer, $found libcured.so"
}
check "pkg-config, shared" "$work/pc_shared" needs
check "pkg-config, static" "$work/pc_static" lacks
check "find_package, shared" "$work/project/build/with_cured" needs
check "find_package, static" "$work/project/build/with_cured_static" lacks

# Only what cured.h declares is exported.
strangers=$(nm -D --defined-only "$prefix/lib/libcured.so" | awk '$3 !~ /^(cured_|CURED_[0-9]|_init$|_fini$)/ {print $3}')
[ -z "$strangers" ] || [ -n "${CURED_TEST_SANITIZE:-}" ] || fail "libcured.so exports $strangers"

kill "$daemon"
wait "$daemon" || fail "the daemon ended with status $?"
daemon=''
