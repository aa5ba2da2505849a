#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo after the build: a capture is made, replayed and shown, then a wire runs between two simulated NICs.
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

TEXT

# Live, without any network: two ports of simulated X710s, on which eight conversations arrive, one
# direction on either.
wire() {
	local directory line words='' engine said nic=profile=x710,flows=8,seed=1
	directory=$(mktemp -d)
	say "running a wire between two simulated NICs (docs/hardware.md)"
	exec {said}< <(exec build/millrace run --socket "$directory/socket" \
		--port "left=net_flowsim0,$nic,side=forward" \
		--port "right=net_flowsim1,$nic,side=reverse" --wire left,right 2>&1)
	engine=$!
	# shellcheck disable=SC2064 # those of now
	trap "kill $engine 2>/dev/null || true; rm -rf '$directory'" EXIT
	# its last line before it works names the socket
	while read -ru "$said" line && [[ $line != *"; socket "* ]]; do
		words=$line
	done
	[[ $line ]] || die "the wire does not run: $words"
	until build/millrace flow list --socket "$directory/socket" >"$directory/flows" &&
		(($(wc -l <"$directory/flows") > 8)); do
		kill -0 "$engine" || die "the engine has ended"
	done
	printf '\nThe flows of a running engine (millrace flow list), and where every packet went (wire show):\n\n'
	cat "$directory/flows"
	printf '\n'
	build/millrace wire show --socket "$directory/socket"
	kill -INT "$engine"
	wait "$engine" || die "the engine ended with exit code $?"
	printf '\nIts last words:\n\n'
	cat <&"$said"
	printf '\n'
}

if [[ -e build/drivers/flowsim/librte_net_flowsim.so ]]; then
	wire
else
	say "no wire is shown: the simulated NIC was not built, for want of DPDK's driver headers"
fi

cat <<TEXT
What to do next:

  build/millrace replay CAPTURE...       your own captures (pcap or pcapng)
  build/millrace replay --help           what can be set
  build/millrace run --wire eth1,eth2    between two interfaces, as root; docs/ports.md
  build/millrace run --help              what can be set; docs/hardware.md has the simulated NICs
  less build/demo/office.json            all records of the demo
  ./dev bench offload                    what a NIC that takes flows brings, measured on this machine:
                                         in software, marked, carried by the NIC (some five minutes)
  ./dev test                             the tests
  docs/design.md                         how it works

On a real NIC (docs/ports.md): build/millrace run --wire PCI-ADDRESS,PCI-ADDRESS --offload-mode full
TEXT
