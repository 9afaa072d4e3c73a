#!/usr/bin/env bash
# test_packages: what becomes of the Debian packages. lintian has no remarks; in a bare Debian 12 they are installed, do the main
# job, are upgraded while a call is under way, and are purged without a trace but the user. systemctl has a stand-in there, because
# no systemd runs: it does what the unit says. Run by scripts/fresh-root with the packages that the pages make, not by ctest.
# usage: test_packages.sh FOLDER (of the packages)     Exit status 77: skipped, with the reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(cd "${1:?usage: test_packages.sh FOLDER}" && pwd)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/cured-packages.XXXXXX")
exec </dev/null
trap 'rm -rf --one-file-system "$work"' EXIT
fail() { echo "test_packages: $*" >&2 && exit 1; }
in_root() { "$root/scripts/in-root" "$work/root" "$1"; }
quiet() { in_root "$1" >"$work/log" 2>&1 || { cat "$work/log" && fail "$2"; }; }
"$root/scripts/in-root" / true 2>/dev/null || { echo "skipped: namespaces may not be made here, or this is not root" && exit 77; }
command -v lintian >/dev/null || { echo "skipped: lintian is not installed" && exit 77; }
names='cured cured-client cured-bench libcured0 libcured-dev python3-cured'
[ ! -e "$(find "$folder" -name 'libcured-cuda0_*.deb')" ] || names="$names libcured-cuda0" # made where there is nvcc
[ ! -e "$(find "$folder" -name 'cured-mpi_*.deb')" ] || names="$names cured-mpi" # made where there is an MPI

for name in $names; do
    [ "$(find "$folder" -name "${name}_*.deb" | wc -l)" = 1 ] || fail "$folder has not one package $name"
done
# Made in a clone: the commit is in the version, so that a later one upgrades it, and in that of all of them.
version=$(dpkg-deb -f "$folder"/cured_*.deb Version)
grep -qE "^$("$root/scripts/version")\+git[0-9]+\.g[0-9a-f]{7}(\.dirty)?\$" <<<"$version" || fail "the version is $version"
for name in $names; do
    [ "$(dpkg-deb -f "$folder/${name}"_*.deb Version)" = "$version" ] || fail "$name is not $version"
done
echo "version: $version"
remarks=$(lintian --allow-root --profile debian --fail-on none "$folder"/*.deb 2>&1 | grep -v '^N:' || true)
[ -z "$remarks" ] || fail "lintian: $remarks"
echo "lintian: no remarks on $(find "$folder" -name '*.deb' | wc -l) packages"
mkdir "$work/files"
# Links of a page lead somewhere within its own package; each program has a man page.
for name in $names; do
    dpkg-deb -x "$folder/${name}"_*.deb "$work/files/$name"
    while IFS= read -r page; do
        while IFS= read -r target; do
            [ -e "$(dirname "$page")/$target" ] || fail "${page#"$work"/files/} links to $target, which $name lacks"
        done < <(sed '/^ *```/,/^ *```/d' "$page" | grep -o '](\([^)#]*\)' | cut -c 3- | grep -v '^[a-z]*:' | grep . || true)
    done < <(find "$work/files/$name" -name '*.md')
    for program in "$work/files/$name"/usr/bin/*; do
        [ ! -x "$program" ] || [ -n "$(find "$work/files/$name/usr/share/man" -name "${program##*/}.[18].gz")" ] || fail "${program##*/} has no page"
    done
done
# What the unit calls lies in the daemon's package, or in one that it depends on.
needs=$(dpkg-deb -f "$folder"/cured_*.deb Depends)
while IFS= read -r program; do
    owner=$(cd "$work/files" && ls -d ./*/"$program" | cut -d / -f 2)
    [ "$owner" = cured ] || grep -qE "(^|, )$owner( |,|\$)" <<<"$needs" || fail "the unit calls $program of $owner, on which cured does not depend"
done < <(sed -n 's/^Exec[A-Za-z]*=\([^ ]*\).*/\1/p' "$work/files/cured/usr/lib/systemd/system/cured.service")

"$root/scripts/bare-root" "$work/root"
echo "$names" >"$work/root/names"
mkdir "$work/root/debs" && cp "$folder"/*.deb "$work/root/debs/"
# What they need goes first, so that what they leave can be told from what that leaves.
export DEBIAN_FRONTEND=noninteractive
quiet "apt-get update -q && apt-get install -q -y --no-install-recommends \$(
    apt-get install -s --no-install-recommends /debs/*.deb | awk '/^Inst/ {print \$2}' | grep -vxF \"\$(printf '%s\\n' $names)\")" "what they need"
# systemd's stand-in: the daemon as the unit has it; SIGTERM ends it. apt gives scripts a PATH without /usr/local.
quiet "dpkg-divert --rename --divert /usr/bin/systemctl.real /usr/bin/systemctl" "the stand-in"
cat >"$work/root/usr/bin/systemctl" <<'STAND_IN'
#!/bin/sh
unit=/usr/lib/systemd/system/cured.service
echo "systemctl $*" >>/var/log/systemctl
start() {
    setsid setpriv --reuid cured --regid cured --init-groups env $(sed -n 's/^Environment=//p' $unit) $(sed -n 's/^ExecStart=//p' $unit) \
        </dev/null >>/var/log/daemon 2>&1 &
    echo $! >/var/log/daemon.pid
}
stop() {
    pid=$(cat /var/log/daemon.pid) && kill "$pid" || return 0
    while readlink "/proc/$pid/exe" >/dev/null 2>&1; do sleep 0.05; done
}
case " $* " in
*" --root=/ "*) exec systemctl.real "$@" ;;
*" is-enabled "*) exec systemctl.real --root=/ is-enabled cured.service ;;
*" is-active "*) readlink "/proc/$(cat /var/log/daemon.pid)/exe" >/dev/null 2>&1 ;;
*" restart cured.service "*) stop && start ;;
*" start cured.service "*) start ;;
*" stop cured.service "*) stop ;;
esac
STAND_IN
chmod +x "$work/root/usr/bin/systemctl"
# Every file with its size, but for what packages and their tools keep for themselves.
state() {
    in_root "cd / && find . -xdev \\( -path ./proc -o -path ./sys -o -path ./dev -o -path ./debs -o -path ./names -o -path ./var/cache \\
        -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/log -o -path './etc/passwd*' -o -path './etc/group*' \\
        -o -path './etc/shadow*' -o -path './etc/gshadow*' -o -path ./etc/ld.so.cache -o -path ./etc/.pwd.lock \\
        -o -path ./run/systemd -o -path ./job \\) -prune -o -type d -print -o -printf '%p %s\\n' | sort"
}
# For a package that is upgraded: the same with a later version.
dpkg-deb -R "$folder"/cured_*.deb "$work/later"
sed -i 's/^Version: .*/&+later/' "$work/later/DEBIAN/control"
dpkg-deb -b --root-owner-group "$work/later" "$work/root/debs/later" >/dev/null

state >"$work/before"
cat >"$work/root/job" <<'JOB'
set -e
export DEBIAN_FRONTEND=noninteractive
say() { echo "packages: $*"; }
fail() { say "$*" >&2 && cat /var/log/systemctl /var/log/daemon >&2 && exit 1; }
mkdir -p /run/systemd/system
apt-get install -q -y --no-install-recommends /debs/*.deb >/var/log/install 2>&1 || { cat /var/log/install && fail "installing"; }
! grep -iE '^(dpkg: |W:|warning)' /var/log/install || fail "the install has remarks"
id cured
systemd-analyze verify --man=no --recursive-errors=no /usr/lib/systemd/system/cured.* 2>&1 | grep -F cured && fail "the unit"
say "the units are verified"

cd /tmp
for i in $(seq 600); do cured-client --connect unix:/run/cured/cured.sock ping >/dev/null 2>&1 && break; sleep 0.1; done
cured-client --connect unix:/run/cured/cured.sock ping || fail "the daemon does not answer"
[ "$(stat -c %U "/proc/$(cat /var/log/daemon.pid)")" = cured ] || fail "whose daemon?"
printf '\000\000\200\077\000\000\000\100' >two.bin # 1.0, 2.0
[ "$(cured-client --connect unix:/run/cured/cured.sock sum two.bin)" = 3 ] || fail "the sum"
python3 -c 'import array, cured; print("python:", cured.__version__); assert cured.sum(array.array("f", [1e8, 0.5, 0.25, -1e8])) == 0.75'
[ -e /usr/lib/python3/dist-packages/cured/__pycache__ ] || fail "the modules are not compiled"
cured-bench --help >/dev/null
bash -c 'set -e; for f in /usr/share/bash-completion/completions/cured*; do . "$f"; done'
ldconfig -p | grep -F libcured.so.0 >/dev/null || fail "the linker does not know libcured"
LD_PRELOAD=libcured.so.0 true
say "the main job is done"

# A call that is under way is answered by the daemon that is replaced. One that stalls for a second ends, so a busy machine has
# three tries.
call() {
    (for i in 1 2 3 4 5 6 7 8; do head -c 2097152 /tmp/ones && sleep 0.2; done) |
        cured-client --connect unix:/run/cured/cured.sock sum - --dtype u8 >answer 2>&1
}
head -c 2097152 /dev/zero | tr '\000' '\001' >/tmp/ones
drained=no
for try in 1 2 3; do
    apt-get install -q -y --allow-downgrades /debs/cured_*.deb >/var/log/install 2>&1 || fail "going back"
    for i in $(seq 600); do cured-client --connect unix:/run/cured/cured.sock ping >/dev/null 2>&1 && break; sleep 0.1; done
    old=$(cat /var/log/daemon.pid)
    call & caller=$!
    sleep 0.4
    echo '{"log_level": "warn"}' >/etc/cured/cured.json # of the machine's owner: an upgrade keeps it
    dpkg -i /debs/later >/var/log/install 2>&1 </dev/null || { cat /var/log/install && fail "the upgrade"; }
    [ "$(cat /var/log/daemon.pid)" != "$old" ] || fail "the upgrade does not restart the daemon"
    wait $caller && [ "$(cat answer)" = 16777216 ] && drained=yes && break
    cat answer
done
[ $drained = yes ] || fail "no call survives an upgrade"
[ "$(cat /etc/cured/cured.json)" = '{"log_level": "warn"}' ] || fail "the upgrade changes the configuration"
for i in $(seq 600); do cured-client --connect unix:/run/cured/cured.sock ping >/dev/null 2>&1 && break; sleep 0.1; done
[ "$(cured-client --connect unix:/run/cured/cured.sock sum two.bin)" = 3 ] || fail "the sum after the upgrade"
say "upgraded, with a call under way"

apt-get purge -q -y $(cat /names) >/var/log/purge 2>&1 || { cat /var/log/purge && fail "the purge"; }
! grep -iE '^(dpkg: |W:|warning)' /var/log/purge || fail "the purge has remarks"
if readlink "/proc/$(cat /var/log/daemon.pid)/exe"; then fail "the daemon still runs"; fi
id cured
rmdir /run/systemd/system
rm -f /tmp/two.bin /tmp/ones /tmp/answer
JOB
in_root 'sh /job' || fail "the job failed"
state >"$work/after"
diff "$work/before" "$work/after" || fail "the purge leaves the files above"
echo "purged: nothing is left but the user"
