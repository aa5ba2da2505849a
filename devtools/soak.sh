#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The soak of the offload engine, for a minute: soak.sh [--long] [--seconds N] [--seed N]
set -euo pipefail
. devtools/lib.sh

seconds=60
is_number() {
	[[ ${2-} =~ ^[0-9]+$ ]] || die "soak: $1 wants a number after it"
}
while (($#)); do
	case $1 in
	--long) seconds=600 ;;
	--seconds)
		is_number "$@"
		seconds=$2
		shift
		;;
	--seed)
		is_number "$@"
		export MILLRACE_SOAK_SEED=$2
		shift
		;;
	*) die "soak: no option '$1'; see ./dev soak --help" ;;
	esac
	shift
done

program=build/tests/path/test_offload_soak
log=build/soak.txt
if [[ ! -x $program ]]; then
	printf 'soak skipped: the simulated NIC is not built here\n'
	exit
fi
say "soaking for $seconds s; the log is $log"
MILLRACE_SOAK_S=$seconds "$program" 2>&1 | tee "$log"
