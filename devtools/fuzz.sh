#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the fuzzers and runs them, two at a time: fuzz.sh [--long] [NAME...]
set -euo pipefail
. devtools/lib.sh

seconds=60
if [[ ${1-} == --long ]]; then
	seconds=600
	shift
fi

all=()
for source in tests/fuzz/fuzz_*.c; do
	name=${source##*/fuzz_}
	all+=("${name%.c}")
done
[[ $# -gt 0 ]] || set -- "${all[@]}"
for name; do
	[[ " ${all[*]} " == *" $name "* ]] || die "no fuzzer '$name'; there are ${all[*]}"
done
wanted=("$@")

CC=clang-19 build_in build-fuzz -Dtests=false -Dfuzz=true \
	-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Dc_args=-fsanitize=fuzzer-no-link

# Those of the simulated NIC are built where that is.
set --
for name in "${wanted[@]}"; do
	if [[ -x build-fuzz/tests/fuzz/fuzz_$name ]]; then
		set -- "$@" "$name"
	else
		printf '%-15s skipped, not built here\n' "$name"
	fi
done

say "making seeds"
rm -rf build-fuzz/seeds
captures=${MILLRACE_CAPTURES-../shared/captures}
"$PYTHON" tests/fuzz/make-seeds.py build-fuzz/seeds "$captures"

# A fuzzer that reads files of a kind begins with such files, every other one with frames.
seeds_of() {
	case $1 in
	capture*) echo captures ;;
	blocks) echo blocks ;;
	export) echo exports ;;
	config) echo configs ;;
	http) echo http ;;
	routes) echo routes ;;
	rules) echo rules ;;
	control) echo requests ;;
	*) echo frames ;;
	esac
}

run_one() {
	local name=$1 corpus=build-fuzz/corpus/$1 log=build-fuzz/logs/$1.log
	mkdir -p "$corpus" build-fuzz/artifacts build-fuzz/logs
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "build-fuzz/tests/fuzz/fuzz_$name" \
		-max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="build-fuzz/artifacts/$name-" \
		"$corpus" "build-fuzz/seeds/$(seeds_of "$name")" >"$log" 2>&1
}

# One line for each: what ran, or what failed and where to look.
tell() {
	local name=$1 code=$2 log=build-fuzz/logs/$1.log runs cover
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	cover=$(sed -n 's/.*\(cov: [0-9]*\).*/\1/p' "$log" | tail -n 1)
	if ((code == 0)); then
		printf '%-15s ok      %s runs in %d s, %s\n' "$name" "${runs:-?}" "$seconds" "$cover"
		return
	fi
	printf '%-15s FAILED  see %s\n' "$name" "$log"
	grep -E '^(SUMMARY|.*runtime error|.*Test unit written)' "$log" | head -n 5 || tail -n 5 "$log"
	failed=1
}

failed=0
while (($#)); do
	pair=("${@:1:2}")
	shift "${#pair[@]}"
	say "fuzzing ${pair[*]}, $seconds s"
	pids=()
	for name in "${pair[@]}"; do
		run_one "$name" &
		pids+=($!)
	done
	for i in "${!pair[@]}"; do
		code=0
		wait "${pids[i]}" || code=$?
		tell "${pair[i]}" "$code"
	done
done
exit "$failed"
