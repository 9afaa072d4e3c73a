# shellcheck shell=bash disable=SC2034
# common.sh: what the scripts share; sourced, never run. Sets `root` to the top of the source tree.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '\n== %s\n' "$*"; }
fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
# How many compilers to run at once: one a core, and no more than memory for them (about 1 GiB each) allows.
jobs_at_once() {
    local cores memory
    cores=$(nproc 2>/dev/null || echo 1)
    memory=$(awk '/^MemAvailable:/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || echo 1)
    [ "${memory:-0}" -ge 1 ] || memory=1
    echo $((cores < memory ? cores : memory))
}
# debian_sources RELEASE: "URI SUITE COMPONENT" of every source of Debian's own for the release, as apt has it configured here.
# shellcheck disable=SC2016 # apt's placeholders
debian_sources() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
        awk -v c="$1" '$2 == c || index($2, c "-") == 1' | sort -u
}
# Runs as root: directly, or with sudo.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        fail "this needs root, and there is no sudo; run as root: $*"
    fi
}
# for_this_machine [tests]: sets preset_here. Kernels take minutes to compile: only where there is a GPU to run them, and only for that
# one. For tests there is PTX, too, which the test gpu_ptx runs.
for_this_machine() {
    preset_here=release
    have nvcc || return 0
    if ! nvidia-smi -L >/dev/null 2>&1; then
        preset_here=cpu-only
    elif [ "${1:-}" = tests ]; then
        export CUDAARCHS=${CUDAARCHS:-$(chips_and_ptx)}
    else
        export CUDAARCHS=${CUDAARCHS:-native}
    fi
}
# chips_and_ptx: native code for each GPU of this machine, and PTX that all of them run; "native" where a tool does not know a chip.
chips_and_ptx() {
    local chips chip known list=
    known=" $(nvcc --list-gpu-code 2>/dev/null | tr '\n' ' ')"
    chips=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d ' .' | sort -nu) || chips=unknown
    for chip in $chips; do
        case $known in *" sm_$chip "*) list="$list$chip-real;" ;; *) list= && break ;; esac
    done
    case $list in
    '') echo native ;;
    *';'*';'*) echo "$list${list%%-*}-virtual" ;;
    *) echo "${list%%-*}" ;;
    esac
}
# ccache_conf CACHE SOURCE: a configuration with which builds of the same files in several places share their objects.
ccache_conf() {
    cat <<CONF
cache_dir = $1
base_dir = $2
hash_dir = false
compiler_check = content
ignore_options = -Werror
sloppiness = locale
CONF
}
# Where CI says so (CURED_TEST_OBJECTS) a bare root takes the objects that a build of the same files has made elsewhere: the same
# compiler with the same flags makes the same object. -Werror makes none other, but an object made without it may hide a
# warning, so CI compiles with it first. share_objects ROOT SOURCE: SOURCE is the source's folder in ROOT.
share_objects() {
    "$root/scripts/in-root" "$1" 'apt-get update -q && apt-get install -q -y --no-install-recommends ccache' >"$1.log" 2>&1 </dev/null ||
        { cat "$1.log" && fail "ccache cannot be installed"; }
    rm -f "$1.log"
    ccache_conf /var/cache/ccache "$2" >"$1/etc/ccache.conf"
}
# skipped_in LOG: of ctest's LastTest.log, a line for each test that could not run, "TEST: WHY", or part of one, "TEST: Class.test_part:
# WHY". Tests print "skipped: " before that, and unittest may have dots before it.
skipped_in() {
    [ ! -e "$1" ] || awk '/^[0-9]+\/[0-9]+ Test: / { name = $3 }
        /^[.sEFxu]*skipped: / { line = name ": " substr($0, index($0, "skipped: ") + 9); if (!seen[line]++) print line }' "$1"
}
# skipped_by_all FILE BUILD...: the lines of FILE (from skipped_in) whose tests did not run in any of these builds either. A part of a test
# counts by itself, and a block of a document ("docs/GRPC.md:54") with whichever test ran its document.
skipped_by_all() {
    local file=$1 build ran=()
    shift
    for build in "$@"; do
        [ ! -e "$build/skipped" ] || ran+=("$build/Testing/Temporary/LastTest.log" "$build/skipped")
    done
    awk -F ': ' -v file="$file" '
        function is_block() { return $2 ~ /^[A-Za-z0-9_.\/-]+\.md:[0-9]+$/ }
        function key() { return is_block() ? $2 : $2 ~ /^[A-Za-z_]+( \(|\.)[A-Za-z_]/ ? $1 ": " $2 : $1 }
        function what() { return is_block() ? substr($2, 1, match($2, /:[0-9]+$/) - 1) : $1 }
        FILENAME ~ /LastTest.log$/ {
            if (/^[0-9]+\/[0-9]+ Test: /) runs[substr($0, index($0, "Test: ") + 6)]++
            if (/\.md: [0-9]+ blocks run$/) runs[$1]++
            next
        }
        FILENAME == file { if (runs[what()] <= lacks[key()] && !(is_block() && told[$2]++)) print; next }
        { lacks[key()]++ }' "${ran[@]}" "$file"
}
