#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Two LANs and a default route, with network namespaces in place of machines:
#
#   lan1 10.1.0.2, 2001:db8:1::2 --- eth1
#   lan2 10.2.0.2, 2001:db8:2::2 --- eth2   router r1 (Millrace)
#   isp  10.3.0.2, 2001:db8:3::2 --- eth3
#
# The router is configured as one configures Linux: its ports are the interfaces eth1, eth2 and eth3 in the namespace `r1`, and
# everything is said with `ip`. The provider (isp) has the address 198.51.100.1, which the default route leads to.
#
# usage, as root: two-lans.sh up | down | shell NAMESPACE
#
#   examples/router/two-lans.sh up
#   ip netns exec lan1 ping 10.2.0.2
#   ip netns exec lan1 traceroute 198.51.100.1
#   millrace route show --socket /tmp/two-lans/millrace.sock
#   examples/router/two-lans.sh down
set -eu

MILLRACE=${MILLRACE:-$(dirname "$0")/../../build/millrace}
DIRECTORY=${DIRECTORY:-/tmp/two-lans}
PREFIX=${PREFIX:-}
ENDS="lan1 lan2 isp"

# A machine with one interface, whose other end is a port of the engine's.
machine() {
	name=$PREFIX$1 number=$2
	ip netns add "$name"
	ip -n "$name" link set lo up
	ip -n "${PREFIX}wires" link add "v$number" type veth peer name eth0 netns "$name"
	# a veth leaves checksums unfinished, which no card would finish here
	ip netns exec "$name" ethtool -K eth0 tx off >/dev/null
	ip netns exec "${PREFIX}wires" ethtool -K "v$number" tx off gro off >/dev/null
	ip netns exec "${PREFIX}wires" sysctl -qw "net.ipv6.conf.v$number.disable_ipv6=1"
	ip -n "${PREFIX}wires" link set "v$number" up
	ip -n "$name" link set eth0 up
	ip -n "$name" address add "10.$number.0.2/24" dev eth0
	ip -n "$name" address add "2001:db8:$number::2/64" dev eth0 nodad
	ip -n "$name" route add default via "10.$number.0.1"
	ip -n "$name" route add default via "2001:db8:$number::1"
}

configuration() {
	cat <<END
ports:
  - {name: p1, device: v1}
  - {name: p2, device: v2}
  - {name: p3, device: v3}
routers:
  - name: r1
    netns: ${PREFIX}r1
    ports:
      - {port: p1, name: eth1}
      - {port: p2, name: eth2}
      - {port: p3, name: eth3}
socket: $DIRECTORY/millrace.sock
END
}

# The commands that an administrator types.
router() {
	ip netns exec "${PREFIX}r1" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	for number in 1 2 3; do
		ip -n "${PREFIX}r1" link set "eth$number" up
		ip -n "${PREFIX}r1" address add "10.$number.0.1/24" dev "eth$number"
		ip -n "${PREFIX}r1" address add "2001:db8:$number::1/64" dev "eth$number" nodad
	done
	ip -n "${PREFIX}r1" route add default via 10.3.0.2
	ip -n "${PREFIX}r1" route add default via 2001:db8:3::2
}

wait_for() {
	for _ in $(seq 600); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	echo "two-lans.sh: the engine does not start:" >&2
	cat "$DIRECTORY/log" >&2
	return 1
}

up() {
	mkdir -p "$DIRECTORY"
	ip netns add "${PREFIX}wires"
	ip netns add "${PREFIX}r1"
	ip -n "${PREFIX}r1" link set lo up
	machine lan1 1
	machine lan2 2
	machine isp 3
	ip -n "${PREFIX}isp" address add 198.51.100.1/32 dev lo
	ip -n "${PREFIX}isp" address add 2001:db8:ffff::1/128 dev lo
	configuration >"$DIRECTORY/millrace.yaml"
	ip netns exec "${PREFIX}wires" "$MILLRACE" run --config "$DIRECTORY/millrace.yaml" \
		>"$DIRECTORY/log" 2>&1 &
	echo $! >"$DIRECTORY/pid"
	wait_for test -S "$DIRECTORY/millrace.sock"
	wait_for ip -n "${PREFIX}r1" link show eth3
	router
}

down() {
	if [ -f "$DIRECTORY/pid" ]; then
		pid=$(cat "$DIRECTORY/pid")
		kill "$pid" 2>/dev/null || true
		while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
	fi
	for name in $ENDS r1 wires; do
		ip netns delete "$PREFIX$name" 2>/dev/null || true
	done
	rm -rf "$DIRECTORY"
}

case ${1-} in
up) up ;;
down) down ;;
shell) exec ip netns exec "$PREFIX$2" "${SHELL:-/bin/sh}" ;;
*)
	echo "usage: two-lans.sh up | down | shell NAMESPACE" >&2
	exit 2
	;;
esac
