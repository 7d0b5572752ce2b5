#!/bin/sh
# Prints the instructions per call of the small benchmarks, counted by callgrind after the first calls. Other load on the machine does not change the counts.
# Valgrind cannot run AVX-512, hence the level and the core type.
#
#     [BUILD=build/release] bench/instructions.sh [NAME…]
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
names=${*:-add add_batched add_number add_recorded add_bias add_transposed softmax select view transpose zeros sum mm item backward training_step training_step_optimizer}
program=$build/bench/bench_micro
command -v valgrind > /dev/null || { echo "valgrind is missing"; exit 1; }
[ -n "${BUILD:-}" ] || cmake --build "$build" --target bench_micro > /dev/null
[ -x "$program" ] || { echo "$program is missing"; exit 1; }
export GRADUS_ISA=v3 OPENBLAS_CORETYPE=Haswell GRADUS_NUM_THREADS=1

calls=200
for name in $names; do
    total=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='repeat*' "$program" --count $calls "$name" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p')
    printf '%-16s%8d\n' "$name" $((total / calls))
done
