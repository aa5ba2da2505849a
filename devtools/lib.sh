# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the verbs of ./dev share. Sourced with the checkout as working directory.

# An ordinary user's PATH may lack these.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH

# Debian's own, which sees Debian's modules; another python3 may stand before it in PATH.
# shellcheck disable=SC2034 # used by those who source this file
PYTHON=/usr/bin/python3

# The packages, by what needs them.
declare -A PACKAGES=(
	[build]="gcc libc6-dev meson ninja-build pkg-config xz-utils
		libdpdk-dev libpcap-dev libjansson-dev libedit-dev libcyaml-dev libyaml-dev libmnl-dev
		libssl-dev librdkafka-dev libncurses-dev libmicrohttpd-dev libsystemd-dev python3-scapy"
	[test]="libcmocka-dev openssl python3-pytest python3-pytest-xdist python3-scapy dpdk-dev
		iproute2 procps tmux prometheus"
	[page]="chromium"
	[peers]="openvswitch-switch-dpdk softflowd pmacct"
	[smoke]="iproute2 iputils-ping iputils-tracepath traceroute procps iperf3 curl ethtool nftables tcpdump nfdump pmacct tshark
		nmap dnsmasq-base frr
		python3-scapy default-jre-headless maven kcat golang-go libfixbuf-tools"
	[lint]="clang-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev codespell shellcheck"
	[bare]="debootstrap"
	[cover]="gcovr"
	[arm64]="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
)

# Progress and notes go to stderr, so that stdout holds results alone.
say() {
	printf '==> %s\n' "$*" >&2
}

die() {
	printf 'dev: %s\n' "$*" >&2
	exit 1
}

# in_view WHAT COMMAND...: runs the command and says every 10 s how far it is, by the last line that it
# printed. When it fails all that it printed is shown. On a terminal it prints for itself.
in_view() {
	local what=$1 log pid code=0 started=$SECONDS
	shift
	say "$what"
	if [[ -t 2 ]]; then
		"$@" >&2
		return
	fi
	log=$(mktemp)
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	while timeout 10 tail --pid="$pid" -s 0.1 -f /dev/null || (($? == 124)); do
		kill -0 "$pid" 2>/dev/null || break
		say "$what: $((SECONDS - started)) s, $(tail -n 1 "$log" | tr -d '\r' | cut -c 1-90)"
	done
	wait "$pid" || code=$?
	((code == 0)) || cat "$log" >&2
	rm -f "$log"
	return "$code"
}

# Prints those of the named packages that are not installed.
missing_packages() {
	local package
	for package; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || printf '%s\n' "$package"
	done
}

# What Debian's packages ask whether they may start services.
POLICY=/usr/sbin/policy-rc.d

# Installs what the named groups still lack. Nothing missing: no root, no network.
need() {
	local group wanted=() missing line
	if ! command -v dpkg-query >/dev/null; then
		say "this is no Debian: taking it for granted that the packages are there"
		return
	fi
	for group; do
		[[ ${PACKAGES[$group]-} ]] || die "no package group '$group'; there are: ${!PACKAGES[*]}"
		read -rd '' -a words <<<"${PACKAGES[$group]}" || true
		wanted+=("${words[@]}")
	done
	missing=$(missing_packages "${wanted[@]}" | sort -u | xargs)
	[[ $missing ]] || return 0

	say "to install: $missing"
	line="apt-get update && apt-get install -y --no-install-recommends $missing"
	# these packages start what they bring, unless the machine's policy says no; tests start their own
	[[ $missing != *openvswitch* && $missing != *prometheus* || -e $POLICY ]] || line="trap 'rm -f $POLICY' EXIT
    printf '#!/bin/sh\\nexit 101\\n' >$POLICY && chmod 755 $POLICY && $line"
	if ((EUID == 0)); then
		install_packages "$line"
	elif command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
		install_packages "$line" sudo
	else
		die "these packages are missing, and installing them takes root; as root, run:
    $line
Then start this again: with the packages there it needs neither root nor the network."
	fi
}

# Runs the line of apt-get, by sudo where $2 says so; its output goes to stderr.
install_packages() {
	local started=$SECONDS
	# shellcheck disable=SC2086 # nothing where root needs no sudo
	in_view "installing" ${2-} env DEBIAN_FRONTEND=noninteractive sh -c "$1" ||
		die "installing failed; the line was: $1"
	say "installed in $((SECONDS - started)) s"
}

# Root in somebody else's checkout goes on as its owner: git and later builds want it so.
become_owner() {
	local owner
	owner=$(stat -c %u .)
	if ((EUID == 0 && owner != 0)); then
		exec setpriv --reuid="$owner" --regid="$(stat -c %g .)" --clear-groups ./dev "$@"
	fi
	[[ -w . ]] || die "this checkout belongs to $(stat -c %U .), who alone can build in it"
}

# DPDK wants a runtime directory of one's own; where the session has none, one in build/ is made.
private_runtime_dir() {
	[[ ${XDG_RUNTIME_DIR-} && -w ${XDG_RUNTIME_DIR-} ]] && return
	mkdir -p build
	XDG_RUNTIME_DIR=$(mktemp -d "$PWD/build/run.XXXXXX")
	export XDG_RUNTIME_DIR
	trap 'rm -rf "$XDG_RUNTIME_DIR"' EXIT
}

# DPDK's private headers, of which the simulated NIC is made. Where they are not to be had, that is
# said, and everything else goes on.
driver_headers() {
	devtools/driver-headers "$@" || true
}

# build_in DIRECTORY [meson option...] [-- target...]: sets up once, and anew where the set-up broke (another
# compiler, another DPDK) or the options are others; then compiles all, or the targets.
build_in() {
	local dir=$1 options=()
	shift
	while [[ $# -gt 0 && $1 != -- ]]; do
		options+=("$1")
		shift
	done
	local targets=("${@:2}")
	set -- "${options[@]}"
	# said also where it is the default, so that headers which come later are noticed
	set -- "$@" "-Ddriver_headers=$(devtools/driver-headers --where)"
	if [[ ! -f $dir/build.ninja ]]; then
		setup_build "$dir" "$@"
	elif [[ "$*" != "$(cat "$dir/dev-options" 2>/dev/null)" ]]; then
		setup_build "$dir" --reconfigure "$@"
	elif ! ninja -C "$dir" build.ninja >/dev/null 2>&1; then
		rm -rf "$dir"/{build.ninja,meson-info,meson-private}
		setup_build "$dir" "$@"
	fi
	in_view "building in $dir" ninja -C "$dir" "${targets[@]}" || die "the build in $dir failed"
}

setup_build() {
	local dir=$1
	shift
	say "setting up $dir"
	meson setup "$dir" "$@" >&2 ||
		die "setting up $dir failed (more in $dir/meson-logs/meson-log.txt)"
	[[ $1 != --reconfigure ]] || shift
	printf '%s\n' "$*" >"$dir/dev-options"
}

# The build that everybody uses: with the tests where what they need is there. The benches are named, since the demo
# may have set the build up without them.
build_default() {
	local tests=false
	! pkg-config --exists cmocka || tests=true
	build_in build "-Dtests=$tests" -Dbench=true
}

# What the demo shows, and nothing else. A build that is there already keeps its options.
build_demo() {
	local options=(-Dtests=false -Dbench=false) targets=(millrace)
	[[ ! -f build/dev-options ]] ||
		read -ra options < <(sed 's/ *-Ddriver_headers=.*//' build/dev-options)
	[[ ! $(devtools/driver-headers --where) ]] || targets+=(drivers/flowsim/librte_net_flowsim.so)
	build_in build "${options[@]}" -- "${targets[@]}"
}
