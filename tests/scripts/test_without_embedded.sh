#!/usr/bin/env bash
# test_without_embedded: libcured.so is no larger than it may be; built with CURED_EMBEDDED=OFF it is without the folds, and a program
# that asks for them is told so.
set -euo pipefail
build=$(dirname "${CURED_TEST_BIN:?the build is named by CURED_TEST_BIN}")
source=${CURED_TEST_SOURCE:?the source is named by CURED_TEST_SOURCE}
most=4500000 # bytes of the stripped library, of which the folds are nine tenths: room for segments and keys
work=$(mktemp -d "${TMPDIR:-/tmp}/cured-without.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "test_without_embedded: $*" >&2 && exit 1; }

if [ -n "${CURED_TEST_SANITIZE:-}" ]; then
    echo "skipped: sanitizers make the library larger"
    exit 77
fi
if [ ! -e "$build/lib/libcured.so" ]; then
    echo "skipped: this build has no shared library"
    exit 77
fi
strip -o "$work/with.so" "$build/lib/libcured.so"
with=$(stat -c %s "$work/with.so")
[ "$with" -le $most ] || fail "libcured.so has $with bytes, the limit is $most"

cmake -S "$source" -B "$work/build" -G Ninja -DCURED_CUDA=OFF -DCURED_EMBEDDED=OFF -DCURED_TESTS=OFF >"$work/log"
cmake --build "$work/build" -j 2 --target cured-client cured_client_shared >>"$work/log" || fail "it does not build: $(tail -n 20 "$work/log")"
strip -o "$work/without.so" "$work/build/lib/libcured.so"
without=$(stat -c %s "$work/without.so")
[ $((without * 5)) -le "$with" ] || fail "without the folds libcured.so has $without bytes, with them $with"
printf '\0\0\200\077' >"$work/one.bin"
status=0
"$work/build/bin/cured-client" sum "$work/one.bin" --connect embedded: 2>"$work/said" || status=$?
[ $status -eq 69 ] || fail "the exit status is $status, not 69"
grep -q CURED_EMBEDDED=OFF "$work/said" || fail "it says: $(cat "$work/said")"
status=0
XDG_RUNTIME_DIR=$work "$work/build/bin/cured-client" sum "$work/one.bin" --connect unix:/nowhere/s 2>/dev/null || status=$?
[ $status -eq 69 ] || fail "without a daemon the exit status is $status, not 69"
echo "test_without_embedded: $with bytes with the folds, $without without"
