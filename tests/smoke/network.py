# SPDX-License-Identifier: BSD-3-Clause
"""Three network namespaces of a test's own, joined by the engine in the middle one.

    left (10.77.0.1, fd77::1) -- a [engine] b -- right (10.77.0.2, fd77::2)

A namespace here has no name: it is an open descriptor, so that nothing of it can be left behind,
however the tests end. No packet passes that no test has asked for: addresses without detection of
duplicates, neighbours that are known, no multicast; and with their offloads off the ends send what
a capture shows.
"""
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import socket
import struct
import subprocess

SET_INTERFACE_NAME = 0x8923
NEW_NETWORK = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)

# Drivers that a wire is made of here.
AF_PACKET, AF_XDP, TAP = "af_packet", "af_xdp", "tap"
VLAN = 77
# The engine's two interfaces; its ports are called a and b.
INTERFACES = ("va", "vb")


def checked(result):
    """What a function of libc's says with -1, as an exception."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def own_namespace():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Namespace:
    """A network namespace. What happens inside `with entered():` happens there, in this thread."""

    def __init__(self, name):
        self.name = name
        before = own_namespace()
        try:
            checked(LIBC.unshare(NEW_NETWORK))
            self.fd = own_namespace()
        finally:
            checked(LIBC.setns(before, NEW_NETWORK))
            os.close(before)
        self.set("ipv6/conf/all/disable_ipv6", 1)
        self.set("ipv6/conf/default/disable_ipv6", 1)
        self.ip("link set lo up")

    def close(self):
        os.close(self.fd)

    @contextlib.contextmanager
    def entered(self):
        before = own_namespace()
        checked(LIBC.setns(self.fd, NEW_NETWORK))
        try:
            yield
        finally:
            checked(LIBC.setns(before, NEW_NETWORK))
            os.close(before)

    @property
    def path(self):
        """A name that `ip link set ... netns` takes."""
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    def set(self, key, value):
        with self.entered(), open(f"/proc/sys/net/{key}", "w", encoding="ascii") as file:
            file.write(str(value))

    def run(self, *command, timeout=60, check=True):
        """Runs a program to its end; what it said is in the exception when it fails."""
        with self.entered():
            done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: {' '.join(map(str, command))}: exit code "
                                 f"{done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def popen(self, *command, **more):
        with self.entered():
            return subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, **more)

    def ip(self, *lines):
        """Lines as `ip` takes them, one call for all."""
        with self.entered():
            done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                                  capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, f"{self.name}: {done.stderr.strip()} in: {lines}"

    def rename(self, old, new):
        """Without setting it down first, where the kernel lets us (6.2)."""
        request = struct.pack("16s16s", old.encode(), new.encode())
        with self.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            try:
                fcntl.ioctl(asking, SET_INTERFACE_NAME, request)
                return
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
        self.ip(f"link set {old} down", f"link set {old} name {new}", f"link set {new} up")

    def links(self):
        """{name: what `ip` says of it}, lo left out."""
        shown = json.loads(self.run("ip", "-j", "-d", "link", "show").stdout)
        return {link["ifname"]: link for link in shown if link["ifname"] != "lo"}

    def received(self, name="end", way="rx"):
        """Packets that the kernel counted as received by an interface."""
        shown = json.loads(self.run("ip", "-j", "-s", "link", "show", name).stdout)
        return shown[0]["stats64"][way]["packets"]

    def sent(self, name="end"):
        return self.received(name, "tx")

    def socket(self, *args):
        """A socket that belongs here, whatever thread uses it."""
        with self.entered():
            return socket.socket(*args)

    def tcp_under_way(self):
        """How many TCP connections are neither over (TIME-WAIT) nor only listening."""
        states = []
        with self.entered():
            for name in ("tcp", "tcp6"):
                with open(f"/proc/thread-self/net/{name}", encoding="ascii") as file:
                    states += [line.split()[3] for line in file.readlines()[1:]]
        return sum(state not in ("06", "0A") for state in states)


def ring_bytes():
    """What each ring of af_packet may have: of two ports four must fit in what may be locked."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    with open("/proc/self/uid_map", encoding="ascii") as file:
        mapped = file.read().split() != ["0", "0", "4294967295"]
    if limit != resource.RLIM_INFINITY and (mapped or os.geteuid() != 0):
        return max(1 << 18, min(1 << 23, 1 << (limit // 8).bit_length() - 1))
    return 1 << 23


class End:
    """A host at one end of the wire: its interface is called `end`."""

    def __init__(self, name, number):
        self.space = Namespace(name)
        self.number = number
        self.mac = f"02:00:00:00:00:0{number}"
        self.address, self.address6 = f"10.77.0.{number}", f"fd77::{number}"
        self.vlan_address = f"10.78.0.{number}"

    def settle(self, other, mtu):
        """Its interface is there: addresses, and no stray packets."""
        space = self.space
        space.ip("link set end arp off", "link set end multicast off",
                 f"link set end address {self.mac}", f"link set end mtu {mtu}",
                 "link set end addrgenmode none")
        space.run("ethtool", "-K", "end", *(word for name in
                  ("tx", "gso", "tso", "gro", "txvlan", "rxvlan") for word in (name, "off")))
        space.set("ipv6/conf/end/accept_ra", 0)
        space.set("ipv6/conf/end/router_solicitations", 0)
        space.set("ipv6/conf/end/disable_ipv6", 0)
        space.ip("link set end up", f"addr add {self.address}/24 dev end",
                 f"addr add {self.address6}/64 dev end nodad")
        self.meet(other)

    def meet(self, other):
        """Its neighbour, by a way that takes no packets; to be said again after a link was down."""
        self.space.ip(*(f"neigh replace {address} lladdr {other.mac} nud permanent dev end"
                        for address in (other.address, other.address6)))

    def add_vlan(self, other):
        """An interface of the kernel's own for VLAN 77; AssertionError where it has none."""
        vlan = f"end.{VLAN}"
        self.space.ip(
            f"link add link end name {vlan} type vlan id {VLAN}",
            f"link set {vlan} arp off up", f"addr add {self.vlan_address}/24 dev {vlan}",
            f"neigh replace {other.vlan_address} lladdr {other.mac} nud permanent dev {vlan}")


class Network:
    """The three namespaces; close() is the end of all of them."""

    def __init__(self, driver, mtu=1500):
        self.driver, self.mtu = driver, mtu
        self.middle = Namespace("middle")
        self.left, self.right = End("left", 1), End("right", 2)
        self.ends = (self.left, self.right)
        if driver != TAP:
            self.make_veths()

    def close(self):
        for space in (self.left.space, self.middle, self.right.space):
            space.close()

    def make_veths(self):
        for name, end in zip(INTERFACES, self.ends):
            self.middle.ip(f"link add {name} mtu {self.mtu} type veth peer name end "
                           f"netns {end.space.path}", f"link set {name} up")
        self.settle_ends()

    def settle_ends(self):
        self.left.settle(self.right, self.mtu)
        self.right.settle(self.left, self.mtu)

    def arguments(self):
        """What `millrace run` needs to join the ends by this driver."""
        frame = 2048 if self.mtu <= 1500 else 16384
        frames = ring_bytes() // frame
        devices = INTERFACES
        if self.driver == TAP:
            devices = [f"net_tap{i},iface={name}" for i, name in enumerate(INTERFACES)]
        elif self.driver == AF_PACKET:
            devices = [f"net_af_packet{i},iface={name},blocksz=65536,framesz={frame},"
                       f"framecnt={frames}" for i, name in enumerate(INTERFACES)]
        return ["--port", f"a={devices[0]}", "--port", f"b={devices[1]}", "--wire", "a,b"]

    def engine_is_there(self):
        """Taps come with the engine: they move to the ends, and become their interfaces."""
        if self.driver != TAP:
            return
        for name, end in zip(INTERFACES, self.ends):
            self.middle.ip(f"link set {name} down", f"link set {name} name end",
                           f"link set end netns {end.space.path}")
        self.settle_ends()

    def check_nothing_left(self):
        """The engine is gone, and so is all that it made or set."""
        links = self.middle.links()
        assert not [name for name in links if name not in INTERFACES], links
        for link in links.values():
            assert link["promiscuity"] == 0 and "xdp" not in link, link
        if self.driver == TAP:
            for end in self.ends:
                assert not end.space.links(), "a tap outlived the engine"
