#!/usr/bin/env bash
# test_reproducible: the same commit, built in two folders whose names have two lengths, gives the same archive, byte for byte.
# Without kernels for GPUs. Run by .ci/run. Exit status 77: skipped, with the reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/cured-reproducible.XXXXXX")
exec </dev/null
trap 'rm -rf "$work"' EXIT
command -v git >/dev/null || { echo "skipped: git is not installed" && exit 77; }

export CURED_CUDA=OFF
for folder in one "another folder"; do
    git clone -q --no-hardlinks "$root" "$work/$folder/cured"
    # Objects come from ccache where it has them: then this is about linking and packing. CCACHE_DISABLE=1 compiles twice.
    (cd "$work/$folder/cured" && CCACHE_BASEDIR=$PWD scripts/bundle --programs-only --archive "$work/$folder/bundle") \
        >"$work/$folder/log" 2>&1 || { cat "$work/$folder/log" && exit 1; }
    (cd "$work/$folder" && sha256sum bundle.tar.gz && stat -c '%s bytes' bundle.tar.gz)
done
cmp "$work/one/bundle.tar.gz" "$work/another folder/bundle.tar.gz" || {
    for folder in one "another folder"; do
        (cd "$work/$folder/bundle" && find . -type f -exec sha256sum {} + | sort -k 2) >"$work/$folder/sums"
    done
    diff "$work/one/sums" "$work/another folder/sums" || true
    echo "test_reproducible: the files above differ" >&2 && exit 1
}
echo "two builds, the same bytes"
