# SPDX-License-Identifier: BSD-3-Clause
"""The client, asking an engine whose answers the test makes up."""
import datetime
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from conftest import MILLRACE, ROOT, SLOWER, run
from fake_engine import END, LIMIT_S, FakeEngine, line

VERBS = [["flow", "list"], ["flow", "explain"], ["flow", "kill"], ["flow", "block"],
         ["flow", "unblock"], ["block", "list"], ["port", "show"],
         ["worker", "show"], ["wire", "show"], ["drop", "show"], ["offload", "show"],
         ["offload", "events"], ["offload", "check"], ["event", "follow"], ["config", "show"]]
NOUNS = sorted({noun for noun, _ in VERBS})
FLOW = ["10.0.0.1:50560", "10.0.0.10:102", "tcp"]


def ago(seconds):
    """A time as records have it."""
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds)
    return then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def flow(**keys):
    return {"version": 4, "proto": 6, "src": "10.0.0.1", "sport": 50560, "dst": "10.0.0.10",
            "dport": 102, "wire": 0, "zone": 0, "packets": 9120331, "bytes": 51234567,
            "reverse_packets": 4560112, "reverse_bytes": 123, "start": "2026-01-02T03:04:05.000000Z",
            "state": "open", "tcp_flags": 27, "reverse_tcp_flags": 18, "icmp_errors": 0,
            "offload": {"packets": 0, "state": "software", "reason": "no_nic"}, "worker": 1, **keys}


def end(**keys):
    return {**END, **keys}


LIST_END = end(flows=41207, matched=2, cursor=None)
EXPLAINED = flow(
    cpu=2, learned_from="eth1", age_us=40_123_456, idle_us=3400, state_detail="established",
    where="in_hw", where_because="its rate reached the threshold of 1,000 packets a second",
    directions=[
        {"direction": "forward", "port": "eth1", "state": "in_hw", "proven": True, "reason": "busy",
         "because": "its rate reached the threshold of 1,000 packets a second",
         "since": "2026-01-02T03:04:05.000000Z", "for_us": 12_000_000, "packets": 9120331,
         "nic_packets": 9000000},
        {"direction": "reverse", "port": "eth2", "state": "refused", "reason": "refused",
         "because": "the NIC's driver refused it: EINVAL, \"Not supported pattern\"; next try in 4 s",
         "refusal": {"errno": "EINVAL", "words": "Not supported pattern"}, "packets": 4560112}],
    marked_packets=9000000, mark=65538, retry_in_us=4_000_000,
    changes=[
        {"time": "2026-01-02T03:04:05.000000Z", "ago_us": 12_000_000, "port": "eth1",
         "direction": "forward", "before": "in_hw", "after": "in_hw", "proven": True,
         "reason": "busy", "took_us": 88, "because": "its rate reached the threshold"},
        {"time": "2026-01-02T03:04:05.000000Z", "ago_us": 12_500_000, "port": "eth1",
         "direction": "forward", "before": "software", "after": "queued", "reason": "busy",
         "rate_pps": 1410, "because": "its rate reached the threshold"},
        {"time": "2026-01-02T03:04:05.000000Z", "ago_us": 31_000_000, "port": "eth2",
         "direction": "reverse", "before": "in_hw", "after": "leaving", "reason": "slowed",
         "because": "its rate fell below half of the threshold"}],
    changes_lost=True,
    verdict="forward", reverse_verdict="drop", timeout_s=7440, timeout_name="tcp-open",
    ends_in_us=7_439_996_600, ends_because="no packet for 7,440 s ends it (tcp-open)",
    tcp={"window_tracked": True, "next_seq": 12345, "reverse_next_seq": 99, "window": 65535,
         "reverse_window": 1024, "scale": 7, "reverse_scale": 15})
BLOCK = {"number": 12, "match": "192.0.2.0/24 port 80 proto tcp", "prefix": "192.0.2.0/24", "port": 80,
         "proto": 6, "added": "2026-01-02T03:04:05.000000Z", "expires": "2026-01-02T03:05:05.000000Z",
         "expires_in_us": 59_400_000, "reason": "too many of them", "packets": 1234567,
         "bytes": 12345678}
BLOCKED = {**EXPLAINED, "verdict": "drop", "blocked": True, "blocked_packets": 1024,
           "blocked_bytes": 65536, "block": BLOCK}
PORT = {"port": "eth1", "device": "net_af_xdp0,iface=eth1", "driver": "net_af_xdp",
        "interface": "eth1", "wire": 0, "mac": "02:00:00:00:00:01", "link": "up",
        "speed_mbps": 10000, "mtu": 1500, "numa": 0, "rx_queues": 1, "tx_queues": 1,
        "sharding": "hand-over", "rx_packets": 1234567, "rx_bytes": 12345678901,
        "tx_packets": 1, "tx_bytes": 60,
        "nic": {"rx_packets": 1234570, "tx_packets": 1, "rx_missed": 3, "rx_errors": 0,
                "tx_errors": 0, "rx_no_buffer": 0}}
WORKER = {"thread": "worker 0", "kind": "worker", "worker": 0, "cpu": 1, "flows": 41207,
          "capacity": 1048576, "received": 1234567, "out": 1234000, "dropped": 567,
          "handed_out": 7, "handed_in": 12, "held": 0, "bursts": 99999, "packets_per_burst": 12.34,
          "idle_polls": 1234567890, "busy_percent": 43.21, "sleep_percent": 12,
          "cycles_per_packet": 123.4, "stages": {"rx": 10.1, "parse": 20, "look_up": 12.2,
                                                 "account": 9, "learn": 3, "out": 14.5},
          "ports": [{"port": "eth1", "rx_packets": 1234567, "rx_bytes": 55512345,
                     "tx_packets": 0, "tx_bytes": 0}]}
WIRE = {"wire": 0, "ports": ["eth1", "eth2"], "received": 12345678901, "received_bytes": 10**13,
        "non_ip": 12, "out": 12345677900, "out_bytes": 10**12, "delivered": 88, "dropped": 901,
        "held": 12, "fragments_untied": 3, "icmp_untied": 4, "one_sided": 1234, "flows": 41207}
DROP = {"reason": "malformed", "packets": 901, "what": "no whole header", "wires": [900, 0, 1]}
OFFLOAD = {
    "port": "eth1", "wire": 0, "offload": True, "ready": True, "nic": "net_i40e",
    "back_end": "rte_flow", "mark_bits": 32, "mark_max": 4294967295, "counts": True,
    "kinds": {"ipv4/tcp": {"granted": True, "shape": "eth / ipv4 / tcp, mark + queue"},
              "ipv4/udp": {"granted": True, "shape": "eth / ipv4 / udp, mark + queue",
                           "markless": True},
              "ipv6/sctp": {"granted": False,
                            "refusal": {"errno": "EINVAL", "words": "Not supported pattern"}}},
    "probed": {"time": "2026-11-23T04:20:00Z", "rules": 7168, "full": True,
               "inserts_per_s": 45000, "deletes_per_s": 50000, "insert_p99_ns": 31000,
               "delete_p99_ns": 30000, "mark_bits": 32},
    "rules": 7168, "under_way": 3, "oldest_us": 11000, "inserts": 45000, "inserts_failed": 16,
    "removes": 37832, "removes_failed": 0, "counter_reads": 900, "counter_reads_failed": 0,
    "failures": {"ENOSPC": 14, "EOPNOTSUPP": 2, "EAGAIN": 0, "EIO": 0, "not_answered": 0},
    "inserts_per_s": 212.4, "removes_per_s": 198.0, "rates_over_us": 5_000_000,
    "refusals": [{"errno": "ENOSPC", "words": "Failed to create flow.", "times": 14},
                 {"errno": "EINVAL", "times": 1}],
    "latency": {"wait": {"times": 45016, "p50_ns": 21000, "p99_ns": 1_400_000, "p999_ns": 9_000_000,
                         "max_ns": 12_000_000},
                "insert": {"times": 45016, "p50_ns": 11_100_000, "p99_ns": 11_400_000,
                           "p999_ns": 11_500_000, "max_ns": 1_200_000_000},
                "remove": {"times": 37832, "p50_ns": 812, "p99_ns": 999, "p999_ns": 1000,
                           "max_ns": 210_000},
                "counter": {"times": 0, "p50_ns": 0, "p99_ns": 0, "p999_ns": 0, "max_ns": 0}},
    "health": {"state": "open", "opened": 2, "reason": "unmarked",
               "because": "packets came without the mark", "since": "2026-01-02T03:04:05.000000Z",
               "for_us": 400_000, "retry_in_us": 1_600_000},
    "slots": 65536, "slots_used": 7171, "slots_draining": 12,
    "flows": {"queued": 12, "refused": 3, "installing": 3, "leaving": 0, "suspect": 1,
              "in_hw": 7168, "proven": 7160},
    "refused": 16, "displaced": 5, "no_slot": 0, "strangers": 4, "ghosts": 1,
    "fell_out": {"unmarked": 3, "counter": 1}}
CHANGE = {"time": "2026-11-20T08:00:00.123456Z", "event": "flow", "port": "eth1", "wire": 0,
          "proto": 6, "src": "10.0.0.1", "sport": 50560, "dst": "10.0.0.10", "dport": 102,
          "zone": 0, "before": "software", "after": "queued", "reason": "busy", "rate_pps": 1410,
          "because": "its rate reached the threshold"}
CHECK = {"port": "eth1", "wire": 0, "kind": "ipv4/tcp", "would": True,
         "shape": "eth / ipv4 / tcp, mark", "live": True,
         "because": "when its packets come by this port at 1,000 a second or more",
         "now": {"direction": "forward", "state": "in_hw", "proven": True, "reason": "busy",
                 "because": "its rate reached the threshold of 1,000 packets a second"}}
BREAKER = {"time": "2026-11-20T08:00:01.000000Z", "event": "breaker_open", "port": "eth1",
           "wire": 0, "reason": "unmarked",
           "because": "the port is put to software: packets came without the mark"}
EVENT = {"time": "2026-11-20T08:00:00.123456Z", "event": "flow_end", "proto": 17,
         "src": "2001:db8::1", "sport": 53, "dst": "2001:db8::2", "dport": 4000, "wire": 3,
         "zone": 0, "worker": 0, "end_reason": "idle"}
CONFIG = {"wires": [["eth1", "eth2"]], "workers": 2, "output": None, "poll": "always"}
ANSWERS = dict(zip(map(tuple, VERBS), [flow(), BLOCKED, flow(), BLOCK, BLOCK, BLOCK, PORT, WORKER, WIRE, DROP, OFFLOAD,
                                       CHANGE, CHECK, EVENT, CONFIG]))


def ask(*args, answer=(END,), stdin=None, **more):
    """One run against an engine with this answer: (run, requests)."""
    with FakeEngine(answer, **more) as engine:
        result = run(*args, "--socket", engine.path, stdin=stdin)
        result.text = result.stdout.decode()
    assert max(map(len, result.stderr.splitlines()), default=0) < 600
    return result, engine.requests


def shown(*args, answer, **more):
    """The lines of text of a run that has to succeed, and quietly."""
    result, requests = ask(*args, answer=answer, **more)
    assert (result.code, result.stderr, len(requests)) == (0, "", 1)
    assert result.text.endswith("\n") or not result.text
    return result.text.splitlines()


def words_of(verb):
    return [*verb, *(FLOW if verb[1] in ("explain", "kill", "block", "unblock", "check") else [])]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_json_is_the_answer_unchanged(verb):
    """Byte by byte, whatever its blanks and whatever it says; the end line is left out."""
    odd = b'{ "a" :1,\t"b":"\\u001b\xc3\xbc", "end":false }\n'
    answer = [ANSWERS[tuple(verb)], odd, b"{}\n", end(flows=1, matched=3)]
    result, requests = ask(*words_of(verb), "--json", answer=answer)
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout == b"".join(map(line, answer[:3]))
    assert requests[0]["ask"] == " ".join(verb)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_text_fits_and_says_something(verb):
    lines = shown(*words_of(verb), answer=[ANSWERS[tuple(verb)], end(flows=1)])
    assert lines and max(map(len, lines)) <= 100


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_answers_with_nothing_in_them(verb):
    """Absent keys are a dash or left out; keys of another kind are no reason to fall."""
    shown(*words_of(verb), answer=[END])
    wrong = {key: [value] if isinstance(value, str) else "x"
             for key, value in ANSWERS[tuple(verb)].items()}
    for odd in ({}, wrong, {key: None for key in wrong}, {key: {} for key in wrong},
                {key: [{}, [], 1] for key in wrong}, {key: -1 for key in wrong}):
        shown(*words_of(verb), answer=[odd, odd, END])


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize("evil", ["\x1b[31m", "\n", "\r", "\x9b31m", "\x7f", "%s%n", "x" * 5000],
                         ids=["escape", "newline", "return", "csi", "delete", "format", "long"])
def test_hostile_strings(verb, evil):
    """What an engine (or who named its ports) says cannot write lines or colours of its own."""
    def poison(value):
        if isinstance(value, str):
            return evil + value + evil
        if isinstance(value, list):
            return [poison(item) for item in value]
        if isinstance(value, dict):
            return {**{key: poison(item) for key, item in value.items()}, evil: evil}
        return value

    clean = ask(*words_of(verb), answer=[ANSWERS[tuple(verb)], END])[0]
    poisoned = {**poison(ANSWERS[tuple(verb)]), "end": False}
    result, _ = ask(*words_of(verb), answer=[poisoned, end(cursor=poison("x"))])
    assert result.code == 0 and result.stderr == ""
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", result.text)
    if verb[0] not in ("config", "worker") and len(evil) < 100:
        # longer sentences may be wrapped
        more = 8 if verb[0] == "offload" or verb[1] == "explain" else 1
        assert len(result.text.splitlines()) <= len(clean.text.splitlines()) + more
    refused, _ = ask(*words_of(verb), answer=[end(error=f"no{evil}", code=1)])
    assert refused.code == 1 and len(refused.stderr.splitlines()) == 1
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", refused.stderr)


def test_flow_list():
    lines = shown("flow", "list", answer=[
        flow(start=ago(131)), flow(version=6, proto=17, src="2001:db8::1", dst="2001:db8::9",
                                   sport=4500, dport=4500, zone=7, state="closing",
                                   offload={"packets": 7, "state": "in_hw", "reason": "busy"}),
        flow(proto=1, sport=0, dport=0, packets=3, reverse_packets=0, state="new",
             offload={"packets": 0, "state": "queued", "reason": "busy"}), LIST_END])
    assert lines[0].split() == ["where", "wire", "proto", "initiator", "responder", "state", "pkts",
                                "->", "<-", "age"]
    assert re.fullmatch(r" software    0 tcp   10\.0\.0\.1:50560        10\.0\.0\.10:102         open  "
                        r"9,120,331 4,560,112 00:02:1\d", lines[1])
    assert lines[2].split()[:7] == ["in", "NIC", "0/7", "udp", "[2001:db8::1]:4500",
                                    "[2001:db8::9]:4500", "closing"]
    assert lines[3].split()[:5] == ["queued", "0", "icmp", "10.0.0.1", "10.0.0.10"]
    assert lines[4:] == [" 3 of 41,207 flows"]


@pytest.mark.parametrize("by, title, first", [("rate", "rate pps", "81,204"),
                                              ("packets", "packets", "13,680,443"),
                                              ("bytes", "bytes", "51.2 MB")])
def test_flow_list_top(by, title, first):
    lines = shown("flow", "list", "--top", "3", "--by", by,
                  answer=[flow(rate_pps=81204), flow(rate_pps=1.4), LIST_END])
    assert lines[0].strip().startswith(title) and lines[1].strip().startswith(first)
    assert " where " in lines[0] and " software " in lines[1]
    assert max(map(len, lines)) <= 100


def test_flow_list_top_has_other_wires():
    """There is no room for a column of them."""
    lines = shown("flow", "list", "--top", "3",
                  answer=[flow(), flow(wire=3), flow(zone=7, proto=17), LIST_END])
    assert [text.split()[2:4] for text in lines[1:4]] == [
        ["tcp", "10.0.0.1:50560"], ["tcp", "w3"], ["udp", "w0/7"]]
    assert max(map(len, lines)) <= 100


def test_flow_list_top_has_states_that_are_not_open():
    lines = shown("flow", "list", "--top", "2",
                  answer=[flow(state="closing"), flow(proto=17, wire=3, state="new"), LIST_END])
    assert lines[1].split()[2:5] == ["tcp", "closing", "10.0.0.1:50560"]
    assert lines[2].split()[2:5] == ["udp", "new", "w3"]


@pytest.mark.parametrize("top", [[], ["--top", "2"]])
def test_ipv4_fits_its_columns(top):
    """The longest ends there are; what follows stands where it does behind short ones."""
    long = flow(src="255.255.255.254", sport=59385, dst="255.255.255.255", dport=65535)
    lines = shown("flow", "list", *top, answer=[flow(start=ago(60)),
                                                {**long, "start": ago(60)}, LIST_END])
    assert max(map(len, lines)) <= 100
    assert " 255.255.255.254:59385 255.255.255.255:65535 " in lines[2]
    for words in "9,120,331 ", "4,560,112 ":
        assert lines[1].index(words) == lines[2].index(words)


def test_addresses_are_never_cut():
    lines = shown("flow", "list", "--top", "1", answer=[
        flow(version=6, src="2001:db8:1111:2222:3333:4444:5555:6666", sport=65535,
             dst="2001:db8:1111:2222:3333:4444:5555:7777", rate_pps=123456789), LIST_END])
    assert "[2001:db8:1111:2222:3333:4444:5555:6666]:65535 [2001:db8:1111:2222:" in lines[1]
    assert ":102 9,120,331 4,560,112 " in lines[1]


def test_flow_list_pages():
    answer = [flow(), end(flows=9, matched=1, cursor="1:77")]
    assert shown("flow", "list", "--limit=1", answer=answer)[-1] == \
        " 1 of 9 flows; more with --cursor 1:77"
    result, _ = ask("flow", "list", "--limit=1", "--json", answer=answer)
    assert result.stdout == line(flow())
    assert result.stderr == "millrace: more with --cursor 1:77\n"


def test_requests_say_what_the_options_say():
    _, requests = ask("flow", "list", "--port", "443", "--proto=47", "--json", "--state", "fin-0")
    assert requests == [{"ask": "flow list", "with": {"port": 443, "proto": "47", "state": "fin-0"}}]
    _, requests = ask("flow", "kill", "[2001:db8::1]:1", "--zone", "7", "[2001:db8::2]:2", "sctp")
    assert requests == [{"ask": "flow kill", "with": {
        "src": "2001:db8::1", "sport": 1, "dst": "2001:db8::2", "dport": 2, "proto": "sctp",
        "zone": 7}}]


def test_flow_explain():
    assert shown("flow", "explain", *FLOW, answer=[EXPLAINED, END]) == [
        " tcp 10.0.0.1:50560 -> 10.0.0.10:102, open (established)",
        " wire 0, zone 0, worker 1 on cpu 2",
        " learned 40.1 s ago from eth1, counted since " + local("2026-01-02T03:04:05") +
        ".000000, last packet 3 ms ago",
        " packets 9,120,331 -> and 4,560,112 <-, bytes 51,234,567 -> and 123 <-, ICMP errors 0",
        " tcp flags FIN SYN PSH ACK -> and SYN ACK <-",
        " tcp next 12345, window 65,535, scale 7 ->",
        "     next 99, window 1,024, scale not known <-",
        " handled in NIC because: its rate reached the threshold of 1,000 packets a second",
        "   -> in NIC, eth1, since 12 s: its rate reached the threshold of 1,000 packets a second",
        "       the NIC counted 9,000,000 packets in its rule, we 9,120,331 in all",
        "   <- refused, eth2: the NIC's driver refused it: EINVAL, \"Not supported pattern\"; next try"
        " in 4 s",
        " marked by the NIC: 9,000,000 of 13,680,443 packets",
        " verdict forward -> and drop <-",
        " before:       12 s ago  ->  in NIC, proven by a mark after 88 us: its rate reached the"
        " threshold",
        "             12.5 s ago  ->  software -> queued at 1,410 pps: its rate reached the threshold",
        "               31 s ago  <-  in NIC -> leaving: its rate fell below half of the threshold",
        "         older changes are no longer known",
        " will end: 2 h 4 min after its last packet (tcp-open), in 2 h 3 min if nothing more comes",
        " because: no packet for 7,440 s ends it (tcp-open)"]


def local(text):
    utc = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
    return utc.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def test_long_sentences_are_wrapped():
    because = "word " * 50 + "end"
    lines = shown("flow", "explain", *FLOW, answer=[{**EXPLAINED, "ends_because": because}, END])
    assert max(map(len, lines)) <= 100
    assert " ".join(" ".join(lines).split()).endswith(because)


def test_flow_kill():
    assert shown("flow", "kill", *FLOW, answer=[flow(), END]) == [
        "killed: tcp 10.0.0.1:50560 -> 10.0.0.10:102, 9,120,331 packets -> and 4,560,112 <-"]


def test_flow_blocked():
    """Where it is handled does not matter any more; what blocks it stands below its counters."""
    lines = shown("flow", "list", answer=[flow(blocked=True), flow(blocked=False), LIST_END])
    assert lines[1].split()[0] == "blocked" and lines[2].split()[0] == "software"
    lines = shown("flow", "explain", *FLOW, answer=[BLOCKED, END])
    at = lines.index(" blocked packets 1,024, bytes 65,536, not counted above")
    assert lines[at - 1] == (" blocked by block 12: 192.0.2.0/24 port 80 proto tcp, for 59.4 s more: too "
                             "many of them")
    assert lines[at - 2].startswith(" packets 9,120,331") and " verdict drop -> and drop <-" in lines
    unblocked = {**EXPLAINED, "blocked": False, "blocked_packets": 3, "blocked_bytes": 180}
    text = "\n".join(shown("flow", "explain", *FLOW, answer=[unblocked, END]))
    assert "blocked by" not in text and " blocked packets 3, bytes 180" in text
    del unblocked["blocked"], BLOCKED["block"]
    text = "\n".join(shown("flow", "explain", *FLOW, answer=[BLOCKED, END]))
    assert " blocked until now, by a block that was just taken back" in text


def test_flow_block():
    words = ["flow", "block", "192.0.2.0/24", "--port", "80", "--proto", "tcp", "--for", "60",
             "--reason", "too many of them"]
    assert shown(*words, answer=[{**BLOCK, "new": True}, END]) == [
        "blocked: 192.0.2.0/24 port 80 proto tcp, block 12, for 59.4 s more: too many of them"]
    assert shown(*words, answer=[{**BLOCK, "new": False}, END])[0].startswith(
        "blocked already, changed: 192.0.2.0/24 port 80 proto tcp, block 12, ")
    assert shown("flow", "unblock", "192.0.2.0/24", answer=[BLOCK, END]) == [
        "unblocked: 192.0.2.0/24 port 80 proto tcp, block 12; it dropped 1,234,567 packets, "
        "12.3 MB"]
    _, requests = ask(*words)
    assert requests == [{"ask": "flow block", "with": {
        "prefix": "192.0.2.0/24", "port": 80, "proto": "tcp", "for": 60,
        "reason": "too many of them"}}]
    _, requests = ask("flow", "unblock", "--number", "4294967296")
    assert requests == [{"ask": "flow unblock", "with": {"number": 4294967296}}]


def test_block_list():
    for_ever = {key: value for key, value in BLOCK.items() if not key.startswith("expires")}
    lines = shown("block", "list", answer=[BLOCK, {**for_ever, "match": "::/0"},
                                           end(blocks=41207, max=65536, cursor="7")])
    assert lines[0].split() == ["number", "packets", "bytes", "left", "block", "reason"]
    assert lines[1].split()[:4] == ["12", "1,234,567", "12.3", "MB"]
    assert " 00:00:59  192.0.2.0/24 port 80 proto tcp " in lines[1]
    assert lines[1].endswith("  too many of them") and "       -  ::/0  " in lines[2]
    assert lines[3:] == [" 2 of 41,207 blocks, with room for 65,536; more with --cursor 7"]
    _, requests = ask("block", "list")
    assert requests == [{"ask": "block list", "with": {}}]


def test_port_show():
    text = "\n".join(shown("port", "show", answer=[PORT, {**PORT, "port": "eth2", "link": "down",
                                                         "speed_mbps": 0}, END]))
    for words in ("eth1     wire 0, link up, 10,000 Mb/s, mtu 1,500", "driver net_af_xdp",
                  "sharding: hand-over", "engine: rx 1,234,567 packets, 12.3 GB; tx 1 packets",
                  "driver: rx 1,234,570, tx 1, missed 3", "link down, mtu"):
        assert words in text
    # what a veth's other end takes, where that is less
    for far_mtu, said in ((1400, "mtu 1,500, mtu 1,400 at its other end"), (9000, "mtu 1,500")):
        lines = shown("port", "show", answer=[{**PORT, "far_mtu": far_mtu}, END])
        assert lines[0].endswith(said)


def test_worker_show():
    rx = {"thread": "rx 0", "kind": "rx", "received": 5, "out": 0, "dropped": 0, "handed_out": 5,
          "handed_in": 0, "held": 0, "bursts": 0, "idle_polls": 9, "stages": {}, "ports": []}
    assert shown("worker", "show", answer=[WORKER, rx, END]) == [
        " worker 0 on cpu 1: 41,207 of 1,048,576 flows, busy 43.2 %, asleep 12.0 %",
        "   received 1,234,567, out 1,234,000, dropped 567, held 0",
        "   handed to other threads 7, by other threads 12",
        "   bursts 99,999 of 12.3 packets, idle polls 1,234,567,890",
        "   cycles a packet 123.4: rx 10.1, parse 20.0, look_up 12.2, account 9.0, learn 3.0, "
        "out 14.5",
        "   port                    rx packets   rx bytes          tx packets   tx bytes",
        "   eth1                     1,234,567    55.5 MB                   0        0 B",
        " rx 0",
        "   received 5, out 0, dropped 0, held 0",
        "   handed to other threads 5, by other threads 0",
        "   bursts 0, idle polls 9"]
    crowded = {**WORKER, "new_flows": 70, "crowded_flows_s": 1234, "crowded_packets_s": 0}
    assert shown("worker", "show", answer=[crowded, END])[3] == (
        "   far more than its share of new flows for 1,234 s, of packets for 0 s")


def numbers(text):
    return [int(word.replace(",", "")) for word in re.findall(r"[\d,]+", text)]


def test_wire_show_is_a_sum():
    lines = shown("wire", "show", answer=[WIRE, {**WIRE, "wire": 1, "held": 14}, END])
    assert lines[0].split() == ["wire", "ports", "received", "=", "out", "+", "delivered", "+",
                                "dropped", "+", "held"]
    _, received, *parts = numbers(lines[1].replace("eth1 eth2", ""))
    assert received == sum(parts) == WIRE["received"]
    assert "12 packets non-IP" in lines[2]
    assert "3 fragments, 4 ICMP errors" in lines[2]
    assert lines[3].strip() == "one-sided: 1,234 packets that opened no flow"
    assert not any("WRONG" in text for text in lines[:4])
    assert "WRONG: 2 packets too many" in lines[5]


def test_copies_are_not_among_what_was_received():
    lines = shown("wire", "show", answer=[{**WIRE, "mirrored": 7, "out": WIRE["out"] + 7}, END])
    assert lines[3].strip() == "besides those received: 7 copies, made by samples of rules"
    assert not any("WRONG" in text for text in lines)


def test_drop_show():
    lines = shown("drop", "show", answer=[DROP, {**DROP, "packets": 0, "wires": [0, 0, 0]}, END])
    assert lines[1].split(maxsplit=2) == ["malformed", "901", "no whole header"]
    assert lines[2].strip() == "wire 0: 900, wire 2: 1"
    assert len(lines) == 4


@pytest.mark.parametrize("where, words", [("software", "in software because"),
                                          ("queued", "in software (queued) because"),
                                          ("suspect", "in software (suspect) because"),
                                          ("in_hw", "in NIC because")])
def test_flow_explain_where(where, words):
    lines = shown("flow", "explain", *FLOW, answer=[{**EXPLAINED, "where": where}, END])
    assert any(text.startswith(f" handled {words}: ") for text in lines)


def test_accepted_is_not_proven():
    side = {**EXPLAINED["directions"][0], "proven": False}
    lines = shown("flow", "explain", *FLOW, answer=[{**EXPLAINED, "directions": [side]}, END])
    assert any(text.startswith("   -> in NIC by its word alone, eth1") for text in lines)


@pytest.mark.parametrize("keys, words", [
    ({"ranked": 7168, "room": 7168, "needs_pps": 1024}, [
        "17,475 packets a second: rank 12 among 7,168 in the NIC, which has room for 7,168; 1,024",
        "needed to get in"]),
    ({"ranked": 512, "needs_pps": 30.5}, [
        "17,475 packets a second: rank 12 among 512 in the NIC; 30.5 needed to get in"]),
    ({"ranked": 512, "needs_pps": 30.5, "state": "software"}, [
        "17,475 packets a second: would be rank 12 beside 512 in the NIC; 30.5 needed to get in"]),
    ({"ranked": 512, "state": "leaving"}, [
        "17,475 packets a second: rank 12 among 512 in the NIC"]),
    ({"ranked": 0, "room": 7168}, ["17,475 packets a second; the NIC has room for 7,168"]),
    ({"ranked": 0}, ["17,475 packets a second"]),
])
def test_flow_explain_rank(keys, words):
    """Rates are grouped as other numbers are; among none there is no rank."""
    side = {**EXPLAINED["directions"][0], "rate_pps": 17474.8, "rank": 12, **keys}
    lines = shown("flow", "explain", *FLOW, answer=[{**EXPLAINED, "directions": [side]}, END])
    first = next(i for i, text in enumerate(lines) if text.startswith("       17,475 "))
    assert lines[first:first + len(words)] == ["       " + text for text in words]
    assert lines[first + len(words)].startswith("       the NIC counted")
    assert max(map(len, lines)) <= 100


def test_offload_show():
    none = {"port": "eth2", "wire": 0, "offload": False, "reason": "off",
            "unable": "offload is turned off"}
    later = {"port": "eth3", "wire": 1, "unable": "EIO, \"no answer\"", "trial_in_us": 2_000_000,
             "kinds": {}}
    now = {**later, "port": "eth4", "trial_in_us": 0}
    assert shown("offload", "show", answer=[OFFLOAD, none, later, now, END]) == [
        " eth1     wire 0, net_i40e, by rte_flow, marks of 32 bits, with counters",
        "          breaker open since 400 ms, opened 2 times, next try in 1.6 s; last: packets came"
        " without",
        "            the mark",
        "          rules 7,168; slots of the wire: 7,171 of 65,536, 12 draining",
        "          under way 3, the oldest since 11 ms",
        "          probed: 7,168 rules, 45,000 inserts a second, marks of 32 bits, 2026-11-23",
        "          inserts 45,000 (212.4/s), removes 37,832 (198.0/s), counters read 900",
        "          flows: 7,168 in NIC (7,160 proven), 1 suspect, 3 installing, 12 queued, 3 refused",
        "          marked strangers 4, ghosts 1, displaced 5, inserts failed 16",
        "          fell out: 3 unmarked, 1 counter",
        "          failures: 14 ENOSPC, 2 EOPNOTSUPP",
        "          refused 14 times: ENOSPC Failed to create flow.",
        "          refused once: EINVAL",
        "          wait     p50   21.0 us  p99    1.4 ms  p99.9    9.0 ms  max   12.0 ms  of 45,016",
        "          insert   p50   11.1 ms  p99   11.4 ms  p99.9   11.5 ms  max     1.2 s  of 45,016",
        "          remove   p50    812 ns  p99    999 ns  p99.9    1.0 us  max  210.0 us  of 37,832",
        "          ipv4/tcp    eth / ipv4 / tcp, mark + queue",
        "          ipv4/udp    never marks: eth / ipv4 / udp, mark + queue",
        "          ipv6/sctp   not taken: EINVAL Not supported pattern",
        " eth2     wire 0",
        "          no offload: offload is turned off",
        " eth3     wire 1",
        "          not known yet: EIO, \"no answer\"",
        "          tried again in 2 s",
        " eth4     wire 1",
        "          not known yet: EIO, \"no answer\"",
        "          being tried again"]


def test_offload_show_of_what_the_nic_does_alone():
    kinds = {"ipv4/udp": {"granted": True, "shape": "eth / ipv4 / udp, mark",
                          "full": {"granted": True, "shape": "eth / ipv4 / udp, count + port"}},
             "ipv4/tcp": {"granted": True, "shape": "eth / ipv4 / tcp, mark",
                          "full": {"granted": False, "refusal": {
                              "errno": "EINVAL", "words": "no such port of this NIC"}}}}
    line = {**OFFLOAD, "kinds": kinds, "forwarded": 12345, "forwarded_bytes": 1234567,
            "unaccounted": 3, "read_every_us": 1500000}
    lines = shown("offload", "show", answer=[line, END])
    assert ("          sent on by the NIC alone: 12,345 packets, 1.2 MB;"
            " 3 of these are in no record") in lines
    assert "          counters of such flows are read every 1.5 s" in lines
    assert lines[-4:] == [
        "          ipv4/udp    eth / ipv4 / udp, mark",
        "            NIC only: eth / ipv4 / udp, count + port",
        "          ipv4/tcp    eth / ipv4 / tcp, mark",
        "            NIC only: not taken: EINVAL no such port of this NIC"]


def test_what_was_probed():
    for probed, said in (
            ({"rules": 300, "full": False, "inserts_per_s": 9},
             "300 rules or more, 9 inserts a second, "), ({"mark_bits": 24}, "marks of 24 bits, ")):
        line_of = {**OFFLOAD, "probed": {"time": "2026-11-23T04:20:00Z", **probed}}
        lines = shown("offload", "show", answer=[line_of, END])
        assert f"          probed: {said}2026-11-23" in lines


def test_offload_check():
    no = {"port": "eth2", "wire": 0, "kind": "ipv4/tcp", "would": False, "reason": "kind",
          "because": "port eth2 takes no rules for ipv4/tcp flows: EINVAL", "live": False,
          "refusal": {"errno": "EINVAL"}}
    assert shown("offload", "check", *FLOW, answer=[CHECK, no, END]) == [
        " a flow of the kind ipv4/tcp",
        " eth1     would go into the card, when its packets come by this port at 1,000 a second or"
        " more",
        "          by a rule of the form eth / ipv4 / tcp, mark",
        "          now in NIC: its rate reached the threshold of 1,000 packets a second",
        " eth2     stays in software: port eth2 takes no rules for ipv4/tcp flows: EINVAL"]
    _, requests = ask("offload", "check", *FLOW, "--wire", 3, answer=[END])
    assert requests == [{"ask": "offload check", "with": {
        "src": "10.0.0.1", "sport": 50560, "dst": "10.0.0.10", "dport": 102, "proto": "tcp",
        "wire": 3}}]


def test_offload_events(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    assert shown("offload", "events", answer=[
        CHANGE, {**CHANGE, "before": "leaving", "after": "software"}, BREAKER, END]) == [
        " 11-20 08:00:00.123  eth1    tcp 10.0.0.1:50560 -> 10.0.0.10:102  software -> queued at 1,410"
        " pps:",
        "                             its rate reached the threshold",
        " 11-20 08:00:00.123  eth1    tcp 10.0.0.1:50560 -> 10.0.0.10:102  leaving -> software at 1,410"
        " pps:",
        "                             its rate reached the threshold",
        " 11-20 08:00:01.000  eth1    breaker_open: the port is put to software: packets came without the",
        "                             mark"]


@pytest.mark.parametrize("follow", [False, True])
def test_offload_events_asks_to_go_on(follow):
    _, requests = ask("offload", "events", *(["--follow"] if follow else []), answer=[END])
    assert requests == [{"ask": "offload events", "with": {"follow": True} if follow else {}}]


def test_event_of_offload(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    event = {**CHANGE, "event": "offload", "worker": 0, "after": "in_hw", "proven": True}
    breaker = {"time": BREAKER["time"], "event": "breaker", "port": "eth1", "breaker": "open",
               "reason": "unmarked", "what": "its NIC is given no flows for now"}
    assert shown("event", "follow", answer=[event, breaker, END]) == [
        " 11-20 08:00:00.123  offload            tcp   10.0.0.1:50560 -> 10.0.0.10:102  eth1 in NIC (busy)",
        " 11-20 08:00:01.000  breaker            port eth1, breaker open, reason unmarked, its NIC is given"
        " no flows for now"]


def test_event_times_are_the_readers(monkeypatch):
    monkeypatch.setenv("TZ", "XXX-5:30")
    link = {"time": EVENT["time"], "event": "link", "port": "eth1", "link": "down"}
    checksum = {"time": "?", "event": "checksum_offload", "port": "eth1", "what": "switch it off"}
    mtu = {"time": EVENT["time"], "event": "mtu", "port": "eth1", "mtu": 1500, "far_mtu": 1400}
    assert shown("event", "follow", "--no-flows", answer=[EVENT, link, checksum, mtu, END]) == [
        " 11-20 13:30:00.123  flow_end           udp   [2001:db8::1]:53 -> [2001:db8::2]:4000  idle  "
        "wire 3",
        " 11-20 13:30:00.123  link               port eth1, link down",
        " ?                   checksum_offload   port eth1, switch it off",
        " 11-20 13:30:00.123  mtu                port eth1, mtu 1500, far_mtu 1400"]


def test_every_event_fits_its_column():
    """Those that docs/control.md lists: what belongs to one stands where it does for all others."""
    table = (ROOT / "docs" / "control.md").read_text(encoding="utf-8")
    table = table.split("### event follow")[1].split("\n\n")[2]
    names = [name for row in table.splitlines()[2:]
             for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert len(names) > 12 and "sharding_fallback" in names
    lines = shown("event", "follow", answer=[
        *({"time": EVENT["time"], "event": name, "port": "eth1"} for name in names), END])
    assert {text.index("  port eth1") > 0 and text.rindex("port eth1") for text in lines} == {40}


@pytest.mark.parametrize("by, first", [("rate", "rate pps"), ("packets", "packets"),
                                       ("bytes", "bytes")])
def test_titles_of_flow_list_top(by, first):
    lines = shown("flow", "list", "--top", "3", "--by", by, answer=[flow(), LIST_END])
    assert lines[0] == (f" {first:>9} where    proto initiator             responder             "
                        "   pkts ->         <-      age")


def test_titles_of_drops():
    assert shown("drop", "show", answer=[DROP, END])[0] == (
        " reason                    packets  what")


def test_config_show_is_yaml():
    assert shown("config", "show", answer=[CONFIG, END]) == [
        "wires:", "  - - eth1", "    - eth2", "workers: 2", "output: null", "poll: always"]


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_answers_in_pieces(piece):
    """Half lines, and several lines in one write."""
    answer = [flow(sport=port) for port in range(200)] + [LIST_END]
    whole = shown("flow", "list", answer=[b"".join(map(line, answer))])
    assert shown("flow", "list", answer=answer, piece=piece) == whole
    assert len(whole) == 202


def test_long_lines():
    """Up to a megabyte; what is longer is a fault, told before it has eaten the memory."""
    long = {"reason": "x" * 1_048_000, "packets": 1, "what": "w"}
    result, _ = ask("drop", "show", "--json", answer=[long, END])
    assert result.code == 0 and result.stdout == line(long)
    result, _ = ask("drop", "show", answer=[b"x" * 3_000_000, END])
    assert result.code == 1 and "longer than 1,048,576 bytes" in result.stderr


@pytest.mark.parametrize("answer, words", [
    (b"nonsense\n", "no JSON object: nonsense"), (b"[1]\n", "no JSON object: [1]"),
    (b"\n", "no JSON object"), (b"42\n", "no JSON object"), (b"{}{}\n", "no JSON object"),
    (b'{"a":"\xff"}\n', "no JSON object"), (b'{"a":"\x1b"}\n', "no JSON object"),
    (b"\0\n", "no JSON object"), (b"[" * 100_000 + b"\n", "no JSON object")])
@pytest.mark.parametrize("mode", [[], ["--json"]])
def test_answers_that_are_none(answer, words, mode):
    result, _ = ask("drop", "show", *mode, answer=[DROP, answer])
    assert result.code == 1
    assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert result.text != ""  # what came before is shown


@pytest.mark.parametrize("answer", [[], [DROP], [DROP, b'{"half'], [b'{"end":true']])
@pytest.mark.parametrize("mode", [[], ["--json"]])
def test_engine_gone(answer, mode):
    result, _ = ask("drop", "show", *mode, answer=answer, stays=False)
    assert result.code == 1
    assert result.stderr.startswith("millrace: the engine at ")
    assert result.stderr.endswith(" has gone in the middle of its answer\n")
    assert bool(result.text) == (DROP in answer)


@pytest.mark.parametrize("greeting, words", [
    ({"millrace": "9.9.9", "protocol": 2}, "millrace 9.9.9 runs there and speaks protocol 2"),
    ({"millrace": "\x1b[1m", "protocol": 2}, "millrace ?[1m runs there"),
    ({"millrace": "1", "protocol": "1"}, "is not millrace"), ({}, "is not millrace"),
    (END, "is not millrace"), (b"SSH-2.0-x\r\n", "is not millrace"), (b"{}" * 9 + b"\n", "is not"),
    (None, "hung up")])
def test_greetings(greeting, words):
    result, requests = ask("drop", "show", greeting=greeting)
    assert result.code == 1 and words in result.stderr
    assert len(result.stderr.splitlines()) == 1 and requests == []


def test_engine_that_serves_too_many():
    """It greets and refuses, without having heard what is asked."""
    refusal = end(error="64 clients are served already", code=1)
    result, _ = ask("drop", "show", answer=[refusal], hears=False, stays=False)
    assert (result.code, result.stderr) == (1, "millrace: 64 clients are served already\n")


@pytest.mark.parametrize("keys, code", [({"code": 1}, 1), ({"code": 2}, 2), ({}, 1),
                                        ({"code": 77}, 1), ({"code": "2"}, 1), ({"code": 0}, 1)])
@pytest.mark.parametrize("mode", [[], ["--json"]])
def test_errors_of_the_engine(keys, code, mode):
    result, _ = ask("flow", "explain", *FLOW, *mode, answer=[end(error="no such flow", **keys)])
    assert (result.code, result.text) == (code, "")
    assert result.stderr == "millrace: no such flow\n"


@pytest.fixture
def place():
    """A directory whose name is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="millrace-test-") as directory:
        yield directory


def test_nobody_there(place):
    result = run("wire", "show", "--socket", f"{place}/none")
    assert result.code == 1
    assert result.stderr.startswith(
        f"millrace: no millrace runs here: {place}/none does not exist; ")


def test_dead_engine(place):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{place}/dead")
    result = run("wire", "show", "--socket", f"{place}/dead")
    assert result.code == 1
    assert "is the socket of an engine that is no longer there; " in result.stderr


def test_no_socket_at_all(place):
    with open(f"{place}/file", "w", encoding="utf-8"):
        pass
    for path, words in (("file", "file is no socket; "), ("file/x", "does not exist; ")):
        result = run("wire", "show", "--socket", f"{place}/{path}")
        assert result.code == 1 and words in result.stderr
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(f"{place}/datagrams")
        result = run("wire", "show", "--socket", f"{place}/datagrams")
    assert result.code == 1 and "not a socket of millrace's kind" in result.stderr


@pytest.mark.skipif(os.getuid() == 0 and not shutil.which("setpriv"), reason="needs setpriv")
def test_somebody_elses_engine(place):
    """Root may everything: the program is run as nobody."""
    nobody = ["setpriv", "--reuid=65534", "--clear-groups"] if os.getuid() == 0 else []
    if subprocess.run([*nobody, "test", "-x", MILLRACE], check=False).returncode != 0:
        pytest.skip("nobody may not run the program")
    os.chmod(place, 0o755)
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(f"{place}/s")
        engine.listen()
        os.chmod(f"{place}/s", 0 if os.getuid() else 0o600)
        result = subprocess.run([*nobody, MILLRACE, "wire", "show", "--socket", f"{place}/s"],
                                capture_output=True, timeout=60 * SLOWER, check=False)
    assert result.returncode == 1
    assert b"permission denied; an engine answers its own user" in result.stderr


def test_path_too_long():
    result = run("wire", "show", "--socket", "/" + "x" * 107)
    assert result.code == 2 and "too long" in result.stderr


def test_default_path(monkeypatch):
    with FakeEngine([WIRE, END]) as engine:
        monkeypatch.setenv("XDG_RUNTIME_DIR", engine.directory.name)
        assert run("wire", "show").code == 0
        monkeypatch.setenv("XDG_RUNTIME_DIR", engine.directory.name + "/none")
        result = run("wire", "show")
        assert result.code == 1 and "/none/millrace.sock does not exist" in result.stderr


def long_list(n):
    """An answer of `n` lines, in few writes."""
    lines = 1000
    chunk = b"".join(line(flow(sport=port)) for port in range(lines))
    for _ in range(n // lines):
        yield chunk
    yield end(flows=n, matched=n, cursor=None)


def measured(n, *mode):
    """(lines of output, most memory in kB) of a list of `n` flows."""
    environment = dict(os.environ)
    # address sanitizer keeps what was freed, for a while
    environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
    with FakeEngine(long_list(n)) as engine, subprocess.Popen(
            [MILLRACE, "flow", "list", *mode, "--socket", engine.path], stdout=subprocess.PIPE,
            env=environment) as process:
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: process.stdout.read(65536), b""))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return lines, usage.ru_maxrss


@pytest.mark.unsanitized
@pytest.mark.parametrize("mode, more", [([], 2), (["--json"], 0)])
def test_a_million_flows_take_no_more_memory(mode, more):
    few_lines, few = measured(1000, *mode)
    many_lines, many = measured(1_000_000, *mode)
    assert (few_lines, many_lines) == (1000 + more, 1_000_000 + more)
    assert many < few + 4096


@pytest.mark.parametrize("mode", [[], ["--json"]])
def test_reader_that_has_seen_enough(mode):
    """`| head -1`: quiet, and no error."""
    with FakeEngine(long_list(100_000)) as engine, subprocess.Popen(
            [MILLRACE, "flow", "list", *mode, "--socket", engine.path], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        stderr = process.stderr.read()
        assert (process.wait(60 * SLOWER), stderr) == (0, b"")


@pytest.mark.parametrize("n", [1000, 100_000])
@pytest.mark.parametrize("mode", [[], ["--json"]])
def test_output_that_cannot_be_written(n, mode):
    with FakeEngine(long_list(n)) as engine, open("/dev/full", "wb") as full:
        result = subprocess.run([MILLRACE, "flow", "list", *mode, "--socket", engine.path],
                                stdout=full, stderr=subprocess.PIPE, timeout=60 * SLOWER,
                                check=False)
    assert result.returncode == 1
    assert result.stderr == b"millrace: standard output: No space left on device\n"


def follow(engine):
    return subprocess.Popen([MILLRACE, "event", "follow", "--socket", engine.path],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def first_line(process):
    """Of output that goes on: a line that does not come is a failure, not a wait."""
    ready = select.select([process.stdout], [], [], LIMIT_S)[0]
    if not ready:
        process.kill()
    return process.stdout.readline()


def test_events_come_at_once_and_end_well():
    """A line is there while the engine has more to say, and an interrupt is no failure."""
    with FakeEngine([EVENT]) as engine, follow(engine) as process:
        assert b"flow_end" in first_line(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(60 * SLOWER) == 0
        assert process.stdout.read() == process.stderr.read() == b""


def test_follower_whose_reader_has_gone():
    """It goes too, without waiting for an event that would tell it."""
    with FakeEngine([EVENT]) as engine, follow(engine) as process:
        first_line(process)
        process.stdout.close()
        assert engine.gone.wait(LIMIT_S)
        assert (process.wait(60 * SLOWER), process.stderr.read()) == (0, b"")


@pytest.mark.parametrize("args, words", [
    (["flow", "listt"], "flow listt: no such verb; did you mean list? millrace help flow lists them"),
    (["wire", "list"], "wire list: no such verb; millrace help wire lists them"),
    (["flwo", "list"], "flwo: no such command; did you mean flow?"),
    (["flow", "list", "--portt", "1"], "flow list: --portt: no such option; did you mean --port?"),
    (["flow", "list", "--port", "x"], "flow list: --port x: a whole number"),
    (["flow", "list", "--proto", "tpc"], "did you mean tcp?"),
    (["flow", "list", "--state", "opn"], "did you mean open?"),
    (["flow", "list", "\x1b[1m"], "flow list: ?[1m: one word too many"),
    (["flow", "list", "--cursor", "x" * 5000], "longer than an engine takes"),
    (["flow", "explain", "10.0.0.1:1", "10.0.0.2:2"], "which flow?"),
    (["port", "show", "eth1"], "port show: eth1: one word too many")])
def test_misused(args, words):
    """Said in one line, before the engine is asked."""
    result, requests = ask(*args)
    assert result.code == 2 and requests == [] and result.text == ""
    assert words in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("noun", NOUNS)
def test_help_of_nouns(noun):
    text = run(noun, "--help").stdout.decode()
    for verb in [verb for of, verb in VERBS if of == noun]:
        assert re.search(rf"^  {verb} ", text, re.M)
    alone = run(noun)
    assert alone.code == 2 and alone.stderr == text and alone.stdout == b""
    assert run("help", noun).stdout.decode() == text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_of_verbs(verb):
    result = run(*verb, "--help")
    text = result.stdout.decode()
    assert result.code == 0 and result.stderr == ""
    assert run("help", *verb).stdout == result.stdout
    assert text.startswith(f"Usage: millrace {' '.join(verb)} ")
    assert all(option in text for option in ("--json", "--socket", "--help"))
    assert max(map(len, text.splitlines())) <= 100
