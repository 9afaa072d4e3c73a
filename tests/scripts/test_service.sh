#!/usr/bin/env bash
# test_service: the systemd files as installed: the unit is verified and its exposure bounded, the user and the folders are
# made in an empty root. Exit status 77: skipped, no systemd tools here.
set -euo pipefail
build=$(dirname "${CURED_TEST_BIN:?the build to install is named by CURED_TEST_BIN}")
for tool in systemd-analyze systemd-sysusers systemd-tmpfiles; do
    command -v $tool >/dev/null || { echo "skipped: no $tool here" && exit 77; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/cured-service.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "test_service: $*" >&2 && exit 1; }

cmake --install "$build" --prefix "$work/usr" >/dev/null
unit=$work/usr/lib/systemd/system/cured.service

# Verified as a whole: unknown settings, bad values, a missing program. No other unit's faults count.
said=$(systemd-analyze verify --man=no --recursive-errors=no "$unit" "${unit%.service}.socket" 2>&1) || fail "verify: $said"
! grep -E 'cured\.(service|socket)' <<<"$said" || fail "verify has remarks"
! grep -q '^ProtectClock=' "$unit" || fail "ProtectClock hides /dev/nvidia* on older systemd"
grep -q "^Environment=CURED_ADMIN=unix:/run/cured/admin.sock$" "$unit" || fail "operators cannot look in"
echo "units verified"
# It would notice: the same unit with an unknown setting and without its program.
sed 's/^NoNewPrivileges=/NoNewPrivilege=/; s,^ExecStart=.*,ExecStart=/nonexistent/cured,' "$unit" >"$work/broken.service"
broken=$(systemd-analyze verify --man=no --recursive-errors=no "$work/broken.service" 2>&1 || true)
grep -q NoNewPrivilege <<<"$broken" && grep -q /nonexistent/cured <<<"$broken" || fail "a broken unit passes: $broken"

# 0 is sealed off, 10 is wide open; 20 is 2.0 on that scale.
systemd-analyze security --offline=yes --threshold=25 "$unit" >"$work/security" 2>&1 || { cat "$work/security" && fail "exposure"; }
tail -n 1 "$work/security"

# root's own tables for a root that has none. Only root gives files to others, so only root makes the folders.
mkdir -p "$work/root/etc"
systemd-sysusers --root="$work/root" "$work/usr/lib/sysusers.d/cured.conf" || fail "sysusers"
grep -q '^cured:' "$work/root/etc/passwd" && grep -q '^cured:' "$work/root/etc/group" || fail "no user cured"
[ "$(id -u)" = 0 ] || { echo "user made; the folders are root's to make: a run by root checks them" && exit 0; }
systemd-tmpfiles --root="$work/root" --create "$work/usr/lib/tmpfiles.d/cured.conf" || fail "tmpfiles"
[ -d "$work/root/run/cured" ] && [ -d "$work/root/etc/cured" ] || fail "no folders"
[ "$(stat -c %U:%a "$work/root/etc/cured")" = root:755 ] || fail "/etc/cured: $(stat -c %U:%a "$work/root/etc/cured")"
echo "user and folders made"
