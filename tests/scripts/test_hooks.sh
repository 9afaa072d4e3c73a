#!/usr/bin/env bash
# test_hooks: git with core.hooksPath makes a commit that is as CONTRIBUTING has it, and no other. Exit status 77: skipped.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v git >/dev/null || { echo "skipped: git is not installed" && exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/cured-hooks.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "test_hooks: $*" >&2 && exit 1; }
export HOME=$work GIT_CONFIG_NOSYSTEM=1
git init -q "$work/tree" && cd "$work/tree"
git config user.name tester && git config user.email tester@localhost
git config core.hooksPath scripts/hooks
mkdir scripts && cp -R "$root/scripts/hooks" "$root/scripts/check-layers" "$root/scripts/format" "$root/scripts/common.sh" scripts/
cp "$root/.clang-format" .
git add -A && git commit -qm "scripts: Begin" || fail "a good commit is refused"
long="scripts: $(printf 'x%.0s' $(seq 52))"
! git commit -q --allow-empty -m "$long" 2>said || fail "a subject of 61 columns is taken"
grep -q "61 columns, the limit is 60" said || fail "$(cat said)"
! git commit -q --allow-empty -m "scripts: Subject
and no empty line" 2>/dev/null || fail "a body right below the subject is taken"
git commit -q --allow-empty -m "${long%?}" -m "Why." || fail "a subject of 60 columns is refused"
printf 'echo no comment\n' >scripts/bad.sh && git add scripts/bad.sh
! git commit -qm "scripts: Add a script" >said 2>&1 || fail "a file without a comment is taken"
grep -q "does not open with a comment" said || fail "$(cat said)"
git rm -qf scripts/bad.sh
for subject in "No area" "nowhere: Change it" "scripts:Change it" "scripts:" "scripts, nowhere: Change it"; do
    ! scripts/hooks/commit-msg <(echo "$subject") 2>said || fail "\"$subject\" is taken"
    grep -qE "must begin with its area|is no folder and no word" said || fail "$subject: $(cat said)"
done
for subject in "hooks: Change it" "scripts, scripts/hooks: Change it" "ci: Change it" "fixup! scripts: Begin"; do
    scripts/hooks/commit-msg <(echo "$subject") || fail "\"$subject\" is refused"
done
git commit -q --allow-empty --no-verify -m "Older than the rule"
scripts/hooks/commit-msg --subjects HEAD~1..HEAD >said || fail "an old subject fails"
grep -q "must begin with its area" said || fail "an old subject is not told: $(cat said)"
# Without the pinned clang-format a commit is made all the same, and it is said that nobody looked at the layout.
mkdir "$work/bin" tests
for name in clang-format clang-format-14; do
    printf '#!/bin/sh\necho "clang-format version 99.0"\n' >"$work/bin/$name" && chmod +x "$work/bin/$name"
done
printf '/* badly: laid out. */\nint   x  ;\n' >tests/bad.c && git add tests/bad.c
PATH=$work/bin:$PATH git commit -m "tests: Add a file" >said 2>&1 || fail "without clang-format 14 nobody can commit: $(cat said)"
grep -q "skipped: clang-format 14 is not here" said || fail "$(cat said)"
if [ "$(scripts/format --check >/dev/null 2>&1; echo $?)" != 77 ]; then
    printf 'int   y  ;\n' >>tests/bad.c && git add tests/bad.c
    ! git commit -qm "tests: Add to it" >said 2>&1 || fail "a file that is laid out otherwise is taken"
fi
echo "commits tried, with clang-format 14 and without"
