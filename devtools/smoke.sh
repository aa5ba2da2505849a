#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the smoke tests with build/millrace, and the driver of the simulated NIC in other people's
# programs: smoke.sh [--peers] [--simd LEVEL] [pytest argument...]; --peers: these alone, Open vSwitch
# and a virtual machine too; --simd: under that SIMD level instead of the best. They make
# network namespaces: root can; others can where they may have a user namespace, with less in it.
set -euo pipefail
. devtools/lib.sh

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

suites=(smoke peers)
# take hugepages, and packages that nobody else needs
without=(--ignore tests/peers/test_ovs.py --ignore tests/peers/test_bench_offload.py
	--ignore tests/peers/test_guest_igb.py)
while :; do
	case ${1-} in
	--peers)
		suites=(peers)
		without=()
		;;
	--simd)
		[[ ${2-} ]] || die "--simd wants a level after it: portable, sse42, avx2 or avx512"
		export MILLRACE_SIMD=$2
		# whatever is wrong with it, the program says so in one line
		said=$(build/millrace replay 2>&1) || true
		[[ $said != *MILLRACE_SIMD* ]] || die "--simd $2: ${said#millrace: }"
		shift
		;;
	*) break ;;
	esac
	shift
done

if ((${#without[@]} == 0)); then
	as_owner=()
	owner=$(stat -c %u .)
	((EUID != 0 || owner == 0)) ||
		as_owner=(setpriv --reuid="$owner" --regid="$(stat -c %g .)" --clear-groups)
	# what it lacks the tests say
	"${as_owner[@]}" devtools/guest.sh || true
fi

wrap=()
if ((EUID != 0)); then
	# not as root there: tcpdump would give up privileges, which it may not in such a place
	# shellcheck disable=SC2016 # the inner shell's own arguments
	wrap=(unshare --user --map-user=1000 --map-group=1000 --keep-caps --net --mount --pid --fork
		--mount-proc sh -c 'mount -t tmpfs none /run && exec "$0" "$@"')
	if "${wrap[@]}" true 2>/dev/null; then
		say "not root: in a user namespace, which lacks some of what the tests need"
	else
		say "not root, and no user namespace either: most tests will be skipped"
		wrap=()
	fi
fi

failed=0
results=()
for suite in "${suites[@]}"; do
	result=$directory/$suite.xml
	code=0
	# nothing is to be left in a checkout that may be another user's
	MILLRACE=$PWD/build/millrace PYTHONDONTWRITEBYTECODE=1 "${wrap[@]}" \
		"$PYTHON" -m pytest -q --durations=5 --junit-xml="$result" "${without[@]}" "tests/$suite" "$@" \
		>&2 || code=$?
	# 5: options like -k chose no test of this suite, and perhaps of the other
	((code == 5 && $# > 0)) && continue
	((code == 0)) || failed=1
	results+=("$result")
done
((${#results[@]} > 0)) || die "no test was chosen"
devtools/sum-results "${results[@]}" || failed=1
exit "$failed"
