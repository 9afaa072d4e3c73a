#!/usr/bin/env bash
# test_api_reference: Doxygen writes the API reference from cured.h without a warning, with every function in it. Exit status 77:
# skipped, with the reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v doxygen >/dev/null || { echo "skipped: doxygen is not installed" && exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/cured-reference.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "test_api_reference: $*" >&2 && exit 1; }
cd "$root"
export CURED_VERSION=0 CURED_DOCS=$work
said=$(doxygen docs/Doxyfile 2>&1) || fail "$said"
[ -z "$said" ] || fail "$said"
page=$work/html/cured_8h.html
functions=$(grep -oE '^CURED_API .*\bcured_[a-z0-9_]+\(' client/include/cured/cured.h | grep -oE 'cured_[a-z0-9_]+\($' | tr -d '(' | sort -u)
for function in $functions; do
    grep -q ">$function<" "$page" || fail "$function is not in the reference"
done
# It would notice: a comment that names a parameter that is not there.
mkdir -p "$work/broken/client/include/cured"
sed 's,^CURED_API const char \*cured_version,/** \\param nothing no such */\n&,' client/include/cured/cured.h >"$work/broken/client/include/cured/cured.h"
if (cd "$work/broken" && doxygen "$root/docs/Doxyfile" >/dev/null 2>&1); then fail "a warning passes"; fi
echo "$(wc -w <<<"$functions") functions, no warning"
