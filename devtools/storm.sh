#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The long forms of the tests of rules under traffic: storm.sh
set -euo pipefail
. devtools/lib.sh

(($# == 0)) || die "storm: no option '$1'; see ./dev storm --help"
say "replacing rules under traffic, for two minutes"
MILLRACE_STORM=long build/tests/path/test_storm
say "comparing 100,000 conversations with nf_tables"
MILLRACE_CONVERSATIONS=100000 devtools/smoke.sh -k test_nf_tables
