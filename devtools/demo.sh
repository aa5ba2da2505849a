#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo after the build: a capture made, replayed and shown.
set -euo pipefail
. devtools/lib.sh

capture=build/demo/office.pcap
records=build/demo/office.json
mkdir -p build/demo

say "making the capture of a small office: $capture"
"$PYTHON" devtools/make-demo-capture.py "$capture"

say "replaying it: build/millrace replay --output $records $capture"
summary=$(build/millrace replay --output "$records" "$capture" 2>&1) ||
	die "the replay failed: $summary"

cat <<TEXT

The first of $(wc -l <"$records") flow records, one conversation each, both directions in one:

$(head -n 3 "$records")

The summary:

$summary

What to do next:

  build/millrace replay CAPTURE...       your own captures (pcap or pcapng)
  build/millrace replay --help           what can be set
  build/millrace run --wire eth1,eth2    between two interfaces, as root; docs/ports.md
  less build/demo/office.json            all records of the demo
  ./dev test                             the tests
  docs/design.md                         how it works
TEXT
