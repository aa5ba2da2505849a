# SPDX-License-Identifier: BSD-3-Clause
"""A host's SCTP where its kernel has none: usrsctp, which computes and checks CRC32c itself, over raw sockets.

    sctp_peer.py server ADDRESS PORT              says "ready", and sends back what comes, until the other one is done
    sctp_peer.py client ADDRESS PORT TO TO-PORT   sends messages of many lengths, and compares what comes back

Both print as JSON how many messages they received, and how many packets had a wrong checksum.
"""
import ctypes
import json
import random
import socket
import struct
import sys
import threading

LIBRARY = "libusrsctp.so.2"
SCTP = 132
N_MESSAGES, LONGEST = 400, 20000
# struct sctpstat: a time of two numbers, then counters of which this one is the ninth
STAT_NUMBERS, CHECKSUM_ERRORS = 256, 2 + 8


def library():
    lib = ctypes.CDLL(LIBRARY)
    pointer, number, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    for name, result, arguments in (
            ("usrsctp_init", None, [ctypes.c_uint16, pointer, pointer]),
            ("usrsctp_socket", pointer,
             [number, number, number, pointer, pointer, ctypes.c_uint32, pointer]),
            ("usrsctp_bind", number, [pointer, pointer, ctypes.c_uint32]),
            ("usrsctp_listen", number, [pointer, number]),
            ("usrsctp_accept", pointer, [pointer, pointer, pointer]),
            ("usrsctp_connect", number, [pointer, pointer, ctypes.c_uint32]),
            ("usrsctp_sendv", ctypes.c_ssize_t,
             [pointer, pointer, size, pointer, number, pointer, ctypes.c_uint32, ctypes.c_uint,
              number]),
            ("usrsctp_recvv", ctypes.c_ssize_t,
             [pointer, pointer, size, pointer, pointer, pointer, pointer, pointer, pointer]),
            ("usrsctp_shutdown", number, [pointer, number]),
            ("usrsctp_get_stat", None, [pointer])):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    lib.usrsctp_init(0, None, None)
    return lib


def address_of(text, port):
    """A struct sockaddr_in or sockaddr_in6."""
    if ":" in text:
        return struct.pack("=H2sI16sI", socket.AF_INET6, struct.pack("!H", port), 0,
                           socket.inet_pton(socket.AF_INET6, text), 0)
    return struct.pack("=H2s4s8x", socket.AF_INET, struct.pack("!H", port), socket.inet_aton(text))


class Peer:
    """One socket of usrsctp's, bound."""

    def __init__(self, address, port):
        self.lib, self.received = library(), 0
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.socket = self.lib.usrsctp_socket(family, socket.SOCK_STREAM, SCTP, None, None, 0, None)
        assert self.socket, "no socket: raw sockets need root"
        self.call("usrsctp_bind", address_of(address, port))

    def call(self, name, address):
        assert getattr(self.lib, name)(self.socket, address, len(address)) == 0, name

    def accept(self):
        assert self.lib.usrsctp_listen(self.socket, 1) == 0
        print("ready", flush=True)
        self.socket = self.lib.usrsctp_accept(self.socket, None, None)
        assert self.socket

    def send(self, data):
        assert self.lib.usrsctp_sendv(self.socket, data, len(data), None, 0, None, 0, 0, 0) == \
            len(data)

    def receive(self):
        """The next message, or part of it; empty at the end."""
        data = ctypes.create_string_buffer(65536)
        numbers = [ctypes.c_uint32(0) for _ in range(4)]
        got = self.lib.usrsctp_recvv(self.socket, data, len(data), None, ctypes.byref(numbers[0]),
                                     None, *map(ctypes.byref, numbers[1:]))
        self.received += got > 0
        return data.raw[:max(got, 0)]

    def tell(self):
        numbers = (ctypes.c_uint32 * STAT_NUMBERS)()
        self.lib.usrsctp_get_stat(numbers)
        print(json.dumps({"received": self.received, "damaged": numbers[CHECKSUM_ERRORS]}), flush=True)


def serve(peer):
    peer.accept()
    while data := peer.receive():
        peer.send(data)


def ask(peer, to, port):
    chance = random.Random(1)
    messages = [chance.randbytes(chance.randrange(1, LONGEST)) for _ in range(N_MESSAGES)]
    data, got = b"".join(messages), bytearray()
    peer.call("usrsctp_connect", address_of(to, port))
    sending = threading.Thread(target=lambda: [peer.send(message) for message in messages])
    sending.start()
    while len(got) < len(data):
        piece = peer.receive()
        assert piece, "it ended too soon"
        got += piece
    sending.join()
    assert bytes(got) == data
    assert peer.lib.usrsctp_shutdown(peer.socket, socket.SHUT_WR) == 0
    assert peer.receive() == b""


def main():
    peer = Peer(sys.argv[2], int(sys.argv[3]))
    if sys.argv[1] == "server":
        serve(peer)
    else:
        ask(peer, sys.argv[4], int(sys.argv[5]))
    peer.tell()


if __name__ == "__main__":
    main()
