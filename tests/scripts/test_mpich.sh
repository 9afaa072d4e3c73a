#!/usr/bin/env bash
# test_mpich: the programs of test_hpc.py with MPICH, in a bare Debian 12 root of its own, because its headers conflict with Open MPI's.
# Exit status 77: no bare root can be made here.
# Usage: tests/scripts/test_mpich.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/cured-mpich.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
status=0
"$root/scripts/bare-root" "$work/root" || status=$?
[ $status = 0 ] || exit $status
"$root/scripts/in-root" "$work/root" 'apt-get update -q && apt-get install -q -y --no-install-recommends gcc gfortran libc6-dev mpich libmpich-dev' \
    >"$work/log" 2>&1 </dev/null || { tail -n 20 "$work/log" && fail "MPICH cannot be installed there"; }
python3 "$root/scripts/sum-file" "$work/root/sum"
cp "$root"/examples/hpc/heat.* "$root"/tests/integration/hpc_sum.* "$work/root/sum"

"$root/scripts/in-root" "$work/root" '
    set -e
    cd /sum
    mpichversion | head -n 1
    gcc -O2 -c cured_sum.c
    for name in heat hpc_sum; do
        mpicc.mpich -O2 -std=c99 -fopenmp -I. $name.c cured_sum.o -lm -o $name
        mpifort.mpich -O2 -fopenmp cured_sum_mod.f90 cured_sum_mpi_mod.f90 $name.f90 cured_sum.o -o ${name}_f
    done
    for ranks in 1 2 5; do
        mpirun.mpich -n $ranks ./hpc_sum
        mpirun.mpich -n $ranks ./hpc_sum_f
    done
    for ranks in 1 2 3 4 5 6 7; do
        for program in heat heat_f; do
            OMP_NUM_THREADS=$((ranks % 4 + 1)) mpirun.mpich -n $ranks ./$program 4000 100 | tail -n 1
        done
    done | tr A-F a-f | sed "s/^e*xact  *[^ ]*/exact/" | sort | uniq -c' </dev/null 2>&1 | grep -vE '\[hwloc/linux\]|UCX +ERROR' | tee "$work/out"
[ "$(grep -c '^ *14 exact [0-9a-f]\{16\} squares [0-9a-f]\{16\}$' "$work/out")" = 1 ] || fail "heat has several answers"
[ "$(grep -c ' 0 faults$' "$work/out")" = 6 ] || fail "hpc_sum found faults"
say "test_mpich: MPICH gives the bits of Open MPI"
