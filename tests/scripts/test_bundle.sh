#!/usr/bin/env bash
# test_bundle: makes the bundle, puts it into a bare root that has none of its libraries, and runs the C tests, the daemon
# and the client there. Run by .ci/run, not by ctest: it is a build of its own. Exit status 77: skipped, with the reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/cured-bundle.XXXXXX")
exec </dev/null
trap 'rm -rf --one-file-system "$work"' EXIT
fail() { echo "test_bundle: $*" >&2 && exit 1; }
"$root/scripts/in-root" / true 2>/dev/null || { echo "skipped: namespaces may not be made here, or this is not root" && exit 77; }

# One waits, the other computes.
"$root/scripts/bare-root" "$work/root" &
status=0 bare=0
"$root/scripts/bundle" "$work/bundle" || status=$?
wait $! || bare=$?
[ $status = 0 ] || exit $status
[ $bare = 0 ] || exit $bare
if find "$work/root/usr/lib" -name "lib*" | grep -E "libuv|libcjson|libprotobuf-c|libnghttp2|libssl|libcheck"; then fail "this root is not bare"; fi

# As docs/INSTALL.md shows it after scripts/bundle /tmp/cured. Some of the tests: that they start here is what is new, and all of them run
# in the bare root of scripts/fresh-root.
mv "$work/bundle" "$work/root/tmp/cured"
"$root/scripts/in-root" "$work/root" "/tmp/cured/run-tests 4"
# From another folder than the one it was made in, whose name wants quoting.
place='opt/a bundle'
mkdir -p "$work/root/opt" && mv "$work/root/tmp/cured" "$work/root/$place"
"$root/scripts/in-root" "$work/root" "
    cd /tmp && PATH='/$place/bin':\$PATH && export CURED_CONNECT=unix:/tmp/s
    cured --listen \$CURED_CONNECT & daemon=\$!
    for i in \$(seq 600); do cured-client ping >/dev/null 2>&1 && break; sleep 0.1; done
    printf '\000\000\200\077\000\000\000\100' >two.bin # 1.0, 2.0
    answer=\$(cured-client sum two.bin) && echo \"sum: \$answer\" && [ \"\$answer\" = 3 ] && kill \$daemon && wait \$daemon" ||
    fail "the daemon and the client do not work in a bare root"
# The client speaks TLS by the bundle's own OpenSSL.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$work/root/tmp/key.pem" -out "$work/root/tmp/cert.pem" 2>/dev/null || fail "openssl makes no certificate"
"$root/scripts/in-root" "$work/root" "
    cd /tmp && PATH='/$place/bin':\$PATH && export CURED_CONNECT=tls:127.0.0.1:7757 CURED_TLS_CA=cert.pem
    cured --listen tcp:127.0.0.1:7757 --tls-certificate cert.pem --tls-key key.pem & daemon=\$!
    for i in \$(seq 600); do cured-client ping >/dev/null 2>&1 && break; sleep 0.1; done
    answer=\$(cured-client sum two.bin) && echo \"sum over TLS: \$answer\" && [ \"\$answer\" = 3 ] && kill \$daemon && wait \$daemon" ||
    fail "the client of the bundle speaks no TLS in a bare root"
