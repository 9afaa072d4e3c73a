#!/usr/bin/env bash
# test_version: a package of a later commit has a greater version, in dpkg's order, and the same commit has the same one in every
# clone. Where git cannot say, the version is plain. All places that show the version show the one of CMakeLists.txt. Exit status
# 77: skipped, with the reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
for tool in git dpkg; do
    command -v $tool >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/cured-version.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "test_version: $*" >&2 && exit 1; }
export HOME=$work GIT_CONFIG_NOSYSTEM=1
unset CURED_PACKAGE_VERSION SOURCE_DATE_EPOCH

number=$("$root/scripts/version")
for shown in "CMakeLists.txt:project(cured VERSION $number " "README.md:cured/$number answers" "README.md:version $number" \
    "Dockerfile:ARG VERSION=$number" "client/node/package.json:\"version\": \"$number\"" "CHANGELOG.md:## [$number] - " "client/include/cured/cured.h:\"$number\"" \
    "docs/INSTALL.md:find_package(cured ${number%.*} REQUIRED)" \
    "tests/scripts/test_install.sh:find_package(cured ${number%.*} REQUIRED)" "proto/cured.proto:\"cured/$number\""; do
    grep -qF "${shown#*:}" "$root/${shown%%:*}" || fail "${shown%%:*} does not show ${shown#*:}"
done

git init -q "$work/tree" && cd "$work/tree"
git config user.name tester && git config user.email tester@localhost
mkdir scripts && cp "$root/scripts/version" "$root/scripts/common.sh" scripts/
cp "$root/CMakeLists.txt" "$root/CHANGELOG.md" .
git add -A && git commit -qm "Begin"
before=$number # a release, or what was built without git
for i in $(seq 12); do
    [ "$i" = 1 ] || git commit -q --allow-empty -m "Go on, $i"
    now=$(scripts/version --package)
    dpkg --validate-version "$now"
    dpkg --compare-versions "$now" gt "$before" || fail "$now is not later than $before"
    before=$now
done
[ "$now" = "$number+git12.g$(git rev-parse HEAD | cut -c 1-7)" ] || fail "$now"
[ "$(scripts/version --epoch)" = "$(git log -1 --format=%ct)" ] || fail "the time is not the commit's"
git clone -q --no-hardlinks . "$work/again"
[ "$("$work/again/scripts/version" --package)" = "$now" ] || fail "another clone has another version"

echo "# changed" >>scripts/common.sh
dirty=$(scripts/version --package)
[ "$dirty" = "$now.dirty" ] || fail "changed files: $dirty"
git commit -qam "Change"
dpkg --compare-versions "$dirty" gt "$now" || fail "$dirty is not later than $now"
dpkg --compare-versions "$dirty" lt "$(scripts/version --package)" || fail "$dirty is not earlier than the next commit"
# A release replaces all that was built on the way to it.
dpkg --compare-versions "$(scripts/version --package)" lt "${number%.*}.$((${number##*.} + 1))" || fail "the next release is not later"

plain() { # FOLDER WHY
    [ "$("$1/scripts/version" --package 2>"$work/said")" = "$number" ] || fail "$2: $("$1/scripts/version" --package)"
    grep -q "$2" "$work/said" || fail "$(cat "$work/said")"
}
git clone -q --depth 1 "file://$work/tree" "$work/shallow"
plain "$work/shallow" shallow
mkdir "$work/tree/unpacked" && cp -R scripts CMakeLists.txt CHANGELOG.md unpacked/
plain "$work/tree/unpacked" "no history"
[ "$(TZ=Asia/Tokyo unpacked/scripts/version --epoch)" = "$(unpacked/scripts/version --epoch)" ] || fail "the time hangs on the place"
[ "$(CURED_PACKAGE_VERSION=7 scripts/version --package)" = 7 ] || fail "CURED_PACKAGE_VERSION is not taken"
echo "from $number+git1 to $now, and without git $number"
