#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the smoke tests with build/millrace: smoke.sh [pytest argument...]. They make network
# namespaces: root can; others can where they may have a user namespace, with less in it.
set -euo pipefail
. devtools/lib.sh

result=$(mktemp)
trap 'rm -f "$result"' EXIT

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
# nothing is to be left in a checkout that may be another user's
MILLRACE=$PWD/build/millrace PYTHONDONTWRITEBYTECODE=1 "${wrap[@]}" \
	"$PYTHON" -m pytest -q --durations=5 --junit-xml="$result" tests/smoke "$@" >&2 || failed=1
devtools/sum-results "$result" || failed=1
exit "$failed"
