#!/usr/bin/env bash
# test_skipped: what scripts/test says of tests that could not run, and what .ci/run says of those that ran nowhere.
set -euo pipefail
. "$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/common.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/cured-skipped.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
expect() { # WHAT WANTED
    diff <(echo "$2") <(cat) || fail "$1: other lines than wanted (<)"
}
# log BUILD: a run of ctest from lines "TEST|OUTPUT", as LastTest.log has it: there a test that exits with 77 has passed.
log() {
    local folder=$1/Testing/Temporary number=0 name output
    mkdir -p "$folder"
    while IFS='|' read -r name output; do
        number=$((number + 1))
        printf '%d/9 Testing: %s\n%d/9 Test: %s\nCommand: "x"\nOutput:\n----\n%b\n<end of output>\nTest time = 1 sec\n----\nTest Passed.\n' \
            $number "$name" $number "$name" "$output"
    done >"$folder/LastTest.log"
    skipped_in "$folder/LastTest.log" >"$1/skipped"
}

log user <<'LOG'
users|skipped: needs root
silent|skipped: no reason to speak of
fuse|..s.skipped: Silent.test_a: mounting needs root\nskipped: Silent.test_a: mounting needs root
names|..skipped: setUpClass (Names): needs root: really\nskipped: Names.test_b (i=1): no room
lint|skipped: no doxygen
good|the word skipped: does not begin this line
LOG
expect "what a user skips" "users: needs root
silent: no reason to speak of
fuse: Silent.test_a: mounting needs root
names: setUpClass (Names): needs root: really
names: Names.test_b (i=1): no room
lint: no doxygen" <user/skipped

# Root runs one half here, and the other there.
log one <<'LOG'
users|
fuse|skipped: Silent.test_a: no FUSE
LOG
log other <<'LOG'
names|skipped: Names.test_b (i=1): no room
silent|skipped: still
LOG
skipped_by_all user/skipped one other missing | expect "what ran nowhere" "silent: no reason to speak of
fuse: Silent.test_a: mounting needs root
names: Names.test_b (i=1): no room
lint: no doxygen"
# A part of it that was skipped does not make a test that ran one that did not.
log one <<'LOG'
users|skipped: Users.test_c: no IPv6
LOG
skipped_by_all user/skipped one | head -n 1 | expect "a part" "silent: no reason to speak of"
# A block of a document ran where any test ran its document, and did not leave that block out. It is told once.
log user <<'LOG'
docs|skipped: docs/GRPC.md:54: not all of it is here: type node\ndocs/GRPC.md: 1 blocks run\nskipped: docs/RECIPES.md:85: not all of it is here: type go\nskipped: docs/TEXT.md:9: no awk
docs_clients|skipped: docs/GRPC.md:54: not all of it is here: type node\nskipped: docs/RECIPES.md:85: not all of it is here: type go
LOG
log one <<'LOG'
docs_clients|docs/GRPC.md: 5 blocks run\nskipped: docs/RECIPES.md:85: not all of it is here: type go\ndocs/RECIPES.md: 4 blocks run
LOG
skipped_by_all user/skipped one | expect "blocks of documents" "docs: docs/RECIPES.md:85: not all of it is here: type go
docs: docs/TEXT.md:9: no awk"
log other <<'LOG'
docs|docs/TEXT.md: no block ran, because it failed\ndocs/RECIPES.md: 9 blocks run
LOG
skipped_by_all user/skipped one other | expect "blocks that another build ran" "docs: docs/TEXT.md:9: no awk"
[ -z "$(skipped_in nowhere)" ] || fail "tests of no log"
echo "skipped tests are told, with their reasons"
