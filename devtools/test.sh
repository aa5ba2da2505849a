#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the tests of a finished build: test.sh BUILD [SUITE...]. The last line is the sum of all.
set -euo pipefail
. devtools/lib.sh

build=$1
shift
[[ $# -gt 0 ]] || set -- unit path behaviour
for suite; do
	case $suite in
	unit | path | behaviour) ;;
	*) die "no suite '$suite'; there are unit, path and behaviour" ;;
	esac
done

# A sanitizer's first finding ends the program that it is found in.
export ASAN_OPTIONS=${ASAN_OPTIONS-abort_on_error=1:detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS-halt_on_error=1:abort_on_error=1:print_stacktrace=1}
tsan_options=halt_on_error=1:abort_on_error=1:atexit_sleep_ms=0:suppressions=$PWD/devtools/tsan.supp
export TSAN_OPTIONS=${TSAN_OPTIONS-$tsan_options}
# Programs under sanitizers are slower.
slower=1 which=
[[ $build == build ]] || slower=5 which="not unsanitized"

results=()
failed=0
times=()
for suite; do
	started=$SECONDS
	result=$build/results-$suite.xml
	rm -f "$result"
	say "$suite tests of $build"
	if [[ $suite == behaviour ]]; then
		# the names of DPDK's sockets have to fit into 108 bytes with the directories that they lie in
		directory=$(mktemp -d "${TMPDIR:-/tmp}/mr.XXX")
		# three at once, since they wait half of the time; each as slow as the others make it
		if MILLRACE=$PWD/$build/millrace MILLRACE_SLOWER=$((3 * slower)) "$PYTHON" -m pytest -q \
			-m "$which" -n 3 --basetemp="$directory/t" --junit-xml="$result" tests/behaviour >&2; then
			rm -rf "$directory"
		else
			failed=1
			say "what the tests left is in $directory"
		fi
	else
		# those of the path wait more than they work
		at_once=$(nproc)
		[[ $suite == path ]] && at_once=$((2 * at_once))
		meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier $((4 * slower)) \
			--num-processes "$at_once" --suite "$suite" >&2 || failed=1
		cp "$build/meson-logs/testlog.junit.xml" "$result" 2>/dev/null || true
	fi
	results+=("$result")
	times+=("$(printf '%5d s  %s' "$((SECONDS - started))" "$suite")")
done

say "what took the time:"
printf '%s\n' "${times[@]}" >&2
devtools/sum-results --slowest 15 "${results[@]}" >&2

devtools/sum-results "${results[@]}" || failed=1
exit "$failed"
