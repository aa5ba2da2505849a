#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Two ways to 203.0.113.0/24, which BGP tells of: the machines of two-lans.sh, with FRR on the router and on both ends that have the network.
# The provider (isp) has the shorter way; when it withdraws the network, the one by lan2 is taken.
#
# usage, as root: bgp.sh up | withdraw | announce | down
#
#   examples/router/bgp.sh up
#   millrace route show lookup 203.0.113.1 --socket /tmp/two-lans/millrace.sock
#   ip netns exec lan1 ping 203.0.113.1
#   examples/router/bgp.sh withdraw
#   examples/router/bgp.sh down
set -eu

HERE=$(dirname "$0")
DIRECTORY=${DIRECTORY:-/tmp/two-lans}
PREFIX=${PREFIX:-}
FRR=${FRR:-/usr/lib/frr}
export DIRECTORY PREFIX

# FRR's configuration of a machine: its own number, and those of its neighbours behind the addresses.
configuration() {
	case $1 in
	r1) cat <<END ;;
router bgp 65000
 bgp router-id 10.3.0.1
 no bgp ebgp-requires-policy
 neighbor 10.3.0.2 remote-as 65001
 neighbor 10.2.0.2 remote-as 65002
END
	isp) cat <<END ;;
router bgp 65001
 bgp router-id 10.3.0.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 10.3.0.1 remote-as 65000
 address-family ipv4 unicast
  network 203.0.113.0/24
 exit-address-family
END
	lan2) cat <<END ;;
route-map LONG permit 10
 set as-path prepend 65002 65002
router bgp 65002
 bgp router-id 10.2.0.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 10.2.0.1 remote-as 65000
 address-family ipv4 unicast
  network 203.0.113.0/24
  neighbor 10.2.0.1 route-map LONG out
 exit-address-family
END
	esac
}

# The daemons of a machine; their directory is theirs.
daemons() {
	place=$DIRECTORY/frr-$1
	mkdir -p "$place"
	configuration "$1" >"$place/frr.conf"
	chown -R frr:frr "$place"
	for daemon in zebra bgpd; do
		ip netns exec "$PREFIX$1" "$FRR/$daemon" -d -f "$place/frr.conf" -z "$place/zserv.api" \
			-i "$place/$daemon.pid" --vty_socket "$place" -A 127.0.0.1 >/dev/null 2>&1
	done
}

up() {
	"$HERE/two-lans.sh" up
	chmod 755 "$DIRECTORY"
	for name in isp lan2; do
		ip -n "$PREFIX$name" address add 203.0.113.1/32 dev lo
	done
	for name in r1 isp lan2; do
		daemons "$name"
	done
}

# Says something to the provider's bgpd.
provider() {
	vtysh --vty_socket "$DIRECTORY/frr-isp" -d bgpd -c 'configure terminal' -c 'router bgp 65001' \
		-c 'address-family ipv4 unicast' -c "$1" >/dev/null
}

down() {
	for file in "$DIRECTORY"/frr-*/*.pid; do
		[ -f "$file" ] || continue
		pid=$(cat "$file")
		kill "$pid" 2>/dev/null || true
		while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
	done
	"$HERE/two-lans.sh" down
}

case ${1-} in
up) up ;;
withdraw) provider 'no network 203.0.113.0/24' ;;
announce) provider 'network 203.0.113.0/24' ;;
down) down ;;
*)
	echo "usage: bgp.sh up | withdraw | announce | down" >&2
	exit 2
	;;
esac
