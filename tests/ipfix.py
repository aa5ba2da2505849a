# SPDX-License-Identifier: BSD-3-Clause
"""A decoder of IPFIX messages, written from RFC 7011, 5103 and 5610 for the tests alone: nothing of it is the exporter's.

It is strict: what a message may not be fails. Names are IANA's; reverse elements begin with "reverse ", our own ones have
the names that the exporter tells of them."""
import ipaddress
import struct

# Of IANA's registry what the exporter is known to send: name and abstract data type.
ELEMENTS = {
    1: ("octetDeltaCount", "u"), 2: ("packetDeltaCount", "u"), 4: ("protocolIdentifier", "u"),
    6: ("tcpControlBits", "u"), 7: ("sourceTransportPort", "u"), 8: ("sourceIPv4Address", "ip"),
    10: ("ingressInterface", "u"), 11: ("destinationTransportPort", "u"), 12: ("destinationIPv4Address", "ip"),
    14: ("egressInterface", "u"), 27: ("sourceIPv6Address", "ip"), 28: ("destinationIPv6Address", "ip"),
    32: ("icmpTypeCodeIPv4", "u"), 41: ("exportedMessageTotalCount", "u"), 42: ("exportedFlowRecordTotalCount", "u"),
    58: ("vlanId", "u"), 60: ("ipVersion", "u"), 82: ("interfaceName", "s"), 136: ("flowEndReason", "u"),
    139: ("icmpTypeCodeIPv6", "u"), 144: ("exportingProcessId", "u"), 152: ("flowStartMilliseconds", "u"),
    153: ("flowEndMilliseconds", "u"), 154: ("flowStartMicroseconds", "ntp"), 155: ("flowEndMicroseconds", "ntp"),
    166: ("notSentFlowTotalCount", "u"), 167: ("notSentPacketTotalCount", "u"),
    168: ("notSentOctetTotalCount", "u"), 239: ("biflowDirection", "u"), 303: ("informationElementId", "u"),
    339: ("informationElementDataType", "u"), 340: ("informationElementDescription", "s"),
    341: ("informationElementName", "s"), 342: ("informationElementRangeBegin", "u"),
    343: ("informationElementRangeEnd", "u"), 344: ("informationElementSemantics", "u"),
    345: ("informationElementUnits", "u"), 346: ("privateEnterpriseNumber", "u"), 352: ("layer2OctetDeltaCount", "u"),
}
REVERSE = 29305
NTP_EPOCH = 2208988800


class Bad(AssertionError):
    """What RFC 7011 does not allow."""


def need(what, why):
    if not what:
        raise Bad(why)


def ntp_us(value):
    """Microseconds of Unix time: the fraction is cut, as RFC 7011 section 6.1.9 has microseconds of such a value."""
    seconds, fraction = value >> 32, value & 0xffffffff
    need(fraction & 0x7ff == 0, "bits that a time in microseconds has as 0")
    return (seconds - NTP_EPOCH) * 1000000 + (fraction * 1000000 >> 32)


def value_of(kind, data):
    if kind == "ip":
        return str(ipaddress.ip_address(data))
    if kind == "s":
        return data.rstrip(b"\0").decode()
    number = int.from_bytes(data, "big")
    return ntp_us(number) if kind == "ntp" else number


class Decoder:
    """Messages of one session, in order: `flows`, `options` and what was counted."""

    def __init__(self, late=False):
        self.late = late  # it began to listen in the middle: what comes before templates cannot be read
        self.templates, self.elements = {}, {}
        self.flows, self.options = [], []
        self.sequence = self.first_sequence = None
        self.missing = 0  # records, by the sequence numbers
        self.messages = 0
        self.lengths = []
        self.template_messages = 0
        self.domains, self.times = set(), []

    def stream(self, data):
        """A stream or file of messages; returns what is left, a cut message."""
        while len(data) >= 16:
            length = struct.unpack_from("!H", data, 2)[0]
            need(length >= 16, "a message shorter than its header")
            if length > len(data):
                break
            self.message(data[:length])
            data = data[length:]
        return data

    def message(self, data):
        version, length, time_s, sequence, domain = struct.unpack_from("!HHIII", data)
        if self.late and not self.templates and data[16:18] != b"\0\2":
            return
        need(version == 10, f"version {version}")
        need(length == len(data), f"a message of {len(data)} bytes says {length}")
        self.messages += 1
        self.lengths.append(length)
        self.domains.add(domain)
        self.times.append(time_s)
        if self.sequence is None:
            self.first_sequence = sequence
        else:
            self.missing += (sequence - self.sequence) % 2**32
        n, at = 0, 16
        while at < length:
            need(at + 4 <= length, "a cut set header")
            set_id, set_length = struct.unpack_from("!HH", data, at)
            need(set_length >= 4 and at + set_length <= length, "a set beyond its message")
            body = data[at + 4:at + set_length]
            if set_id in (2, 3):
                self.template_set(set_id, body)
            else:
                need(set_id >= 256, f"set {set_id}")
                n += self.data_set(set_id, body)
            at += set_length
        self.sequence = (sequence + n) % 2**32

    def template_set(self, set_id, body):
        at = 0
        self.template_messages += set_id == 2
        while len(body) - at >= 4:
            template, n = struct.unpack_from("!HH", body, at)
            need(template >= 256 and n > 0, f"template {template} of {n} fields")
            at, n_scope = at + 4, 0
            if set_id == 3:
                n_scope = struct.unpack_from("!H", body, at)[0]
                need(0 < n_scope <= n, "an options template without a scope")
                at += 2
            fields = []
            for _ in range(n):
                element, length = struct.unpack_from("!HH", body, at)
                at += 4
                enterprise = 0
                if element & 0x8000:
                    enterprise = struct.unpack_from("!I", body, at)[0]
                    at += 4
                fields.append((enterprise, element & 0x7fff, length))
            known = self.templates.get(template)
            need(known in (None, (fields, n_scope)), f"template {template} is another one than before")
            self.templates[template] = (fields, n_scope)
        need(not any(body[at:]), "padding that is not 0")

    def data_set(self, template, body):
        need(template in self.templates, f"data of the unknown template {template}")
        fields, n_scope = self.templates[template]
        at = n = 0
        shortest = sum(1 if length == 65535 else length for _, _, length in fields)
        while len(body) - at >= shortest:
            record = {}
            for enterprise, element, length in fields:
                if length == 65535:
                    length, at = body[at], at + 1
                    if length == 255:
                        length, at = struct.unpack_from("!H", body, at)[0], at + 2
                need(at + length <= len(body), "a cut record")
                record[self.name(enterprise, element)] = value_of(self.kind(enterprise, element),
                                                                  body[at:at + length])
                at += length
            n += 1
            if n_scope:
                self.options.append(record)
                self.learn(record)
            else:
                self.flows.append(record)
        need(not any(body[at:]), "padding that is not 0")
        return n

    def learn(self, record):
        if "informationElementName" in record:
            key = record["privateEnterpriseNumber"], record["informationElementId"]
            self.elements[key] = record["informationElementName"]

    def name(self, enterprise, element):
        if enterprise == 0:
            return ELEMENTS[element][0]
        if enterprise == REVERSE:
            return "reverse " + ELEMENTS[element][0]
        return self.elements.get((enterprise, element), (enterprise, element))

    def kind(self, enterprise, element):
        return ELEMENTS[element][1] if enterprise in (0, REVERSE) else "u"


def conversations(records):
    """Records of both kinds as {key: flow}, where both directions of a flow are one, as JSON records have them."""
    flows = {}
    for record in records:
        v6 = "sourceIPv6Address" in record
        src = record["sourceIPv6Address" if v6 else "sourceIPv4Address"]
        dst = record["destinationIPv6Address" if v6 else "destinationIPv4Address"]
        ends = (src, record["sourceTransportPort"]), (dst, record["destinationTransportPort"])
        reverse = record["biflowDirection"] == 2
        if reverse:
            ends = ends[::-1]
        key = (record["protocolIdentifier"], *ends, record["vlanId"], record["flowStartMicroseconds"],
               record["flowEndMicroseconds"], record["flowEndReason"])
        flow = flows.setdefault(key, [])
        icmp = record["icmpTypeCodeIPv6" if v6 else "icmpTypeCodeIPv4"]
        flow.append((reverse, record["packetDeltaCount"], record["octetDeltaCount"],
                     record["layer2OctetDeltaCount"], record["tcpControlBits"], icmp))
        if "reverse packetDeltaCount" in record:
            icmp = record["reverse icmpTypeCodeIPv6" if v6 else "reverse icmpTypeCodeIPv4"]
            flow.append((True, record["reverse packetDeltaCount"], record["reverse octetDeltaCount"],
                         record["reverse layer2OctetDeltaCount"], record["reverse tcpControlBits"], icmp))
    return flows
