#!/usr/bin/env bash
# test_versions: clients and daemons of two versions work together: every command of the older client asks the newer daemon, and the
# other way round, with the same answers; partials that one writes the other merges. Run by hand before a release, because it
# builds the older version. Exit status 77: skipped, with the reason.
# usage: test_versions.sh [COMMIT]     (the older version: the last release by default; the newer one is CURED_TEST_BIN, or
#                                       build/release/bin)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
new=${CURED_TEST_BIN:-$root/build/release/bin}
commit=${1:-$(git -C "$root" describe --tags --abbrev=0 2>/dev/null || true)}
[ -n "$commit" ] || { echo "skipped: there is no release yet; name a commit" && exit 77; }
work=$(mktemp -d "${TMPDIR:-/var/tmp}/cured-versions.XXXXXX")
daemon=''
clean_up() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap clean_up EXIT
fail() { echo "test_versions: $*" >&2 && exit 1; }

git clone -q --no-hardlinks "$root" "$work/old" && git -C "$work/old" checkout -q "$commit"
(cd "$work/old" && cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCURED_CUDA=OFF -DCURED_TESTS=OFF &&
    cmake --build build --target cured cured-client) >"$work/log" 2>&1 || { cat "$work/log" && fail "$commit cannot be built"; }
old=$work/old/build/bin
git -C "$root" log -1 --format='older: %h %s' "$commit"

head -c 4000000 "$root/README.md" >"$work/text" && for _ in 1 2 3 4 5 6; do cat "$work/text" "$work/text" >"$work/more" && mv "$work/more" "$work/text"; done
truncate -s 1048576 "$work/text" # 262,144 float32 values, or bytes
export CURED_CONNECT=unix:$work/s
ask() { # CLIENT: what it answers to everything
    local client=$1
    "$client" ping >/dev/null && "$client" info --json >/dev/null
    for op in sum mean min max argmin argmax prod count_nonzero var norm2; do
        "$client" "$op" "$work/text" --dtype u8 --result-dtype f64 2>/dev/null || "$client" "$op" "$work/text" --dtype u8
    done
    "$client" describe "$work/text" --raw
    "$client" sum - --dtype i32 <"$work/text"
    "$client" reduce "$work/text" --dtype u8 --shape 1024,1024 --axis 0 --ops sum,max | md5sum
    "$client" reduce "$work/text" --raw --ops sum,max --nan skip
    "$client" sum "$work/none" || echo "status $?"
}
both() { # NAME DAEMON CLIENT
    "$2/cured" --listen "$CURED_CONNECT" >"$work/daemon.log" 2>&1 & daemon=$!
    for _ in $(seq 200); do "$3/cured-client" ping >/dev/null 2>&1 && break || sleep 0.05; done
    ask "$3/cured-client" >"$work/$1" 2>&1 || { cat "$work/$1" && fail "$1"; }
    "$3/cured-client" reduce "$work/text" --raw --count 131072 --ops sum,max --partial --output "$work/$1.crp"
    kill "$daemon" && wait "$daemon" || fail "$1: the daemon ended with status $?"
    daemon=''
    echo "$1: $(wc -l <"$work/$1") lines"
}
both old-old "$old" "$old"
both old-client-new-daemon "$new" "$old"
both new-client-old-daemon "$old" "$new"
both new-new "$new" "$new"
for pair in old-client-new-daemon new-client-old-daemon new-new; do
    diff "$work/old-old" "$work/$pair" || fail "$pair: the answers differ"
done
"$new/cured-client" reduce "$work/text" --raw --offset 524288 --ops sum,max --partial --first 131072 --output "$work/rest.crp" --connect embedded:
for client in "$old" "$new"; do
    for half in old-old new-new; do "$client/cured-client" merge "$work/$half.crp" "$work/rest.crp" --ops sum,max --local; done
done | sort | uniq -c | awk '$1 != 4 {bad = 1} END {exit bad}' || fail "partials of two versions merge to two answers"
echo "the versions work together"
