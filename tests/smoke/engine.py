# SPDX-License-Identifier: BSD-3-Clause
"""A running engine: started, asked, watched and stopped, its sums checked at every turn."""
import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MILLRACE = os.environ.get("MILLRACE", str(ROOT / "build" / "millrace"))
# How much slower than usual the program may be (sanitizers).
SLOWER = int(os.environ.get("MILLRACE_SLOWER", "1"))
# What control says when a machine with much else to do has kept a worker from its processor for a second.
DEAF = "a thread of the packet path does not answer"
DEAF_TRIES = 5


def may_ask_again(request, said):
    """Whether a question found a worker deaf; what changes something is never asked twice."""
    return DEAF in (said or "") and request.split()[-1] in ("show", "list", "explain")


class Gone(AssertionError):
    """The engine ended while it was waited for."""


class Connection:
    """A client of the control socket."""

    def __init__(self, path, timeout=30):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout * SLOWER)
        try:
            self.socket.connect(str(path))
            self.lines = self.socket.makefile("rb")
            greeting = self.lines.readline()
            if not greeting:
                raise ConnectionResetError("no greeting")
            self.greeting = json.loads(greeting)
        except BaseException:
            self.socket.close()
            raise

    def close(self):
        self.lines.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, request, **given):
        self.socket.sendall(json.dumps({"ask": request, "with": given}).encode() + b"\n")

    def next(self):
        """The next line, of an answer that goes on."""
        return json.loads(self.lines.readline())

    def answer(self, request, **given):
        """(lines, the line that ends the answer)."""
        self.send(request, **given)
        answer = []
        for line in self.lines:
            answer.append(json.loads(line))
            if "end" in answer[-1] and "error" in answer[-1]:
                return answer, answer.pop()
        raise AssertionError(f"{request}: the answer has no end")

    def ask(self, request, **given):
        """(lines, the line that ends the answer); an error of the answer's fails."""
        for _ in range(DEAF_TRIES):
            answer, end = self.answer(request, **given)
            if not may_ask_again(request, end["error"]):
                break
        assert end["error"] is None, end
        return answer, end


def check_wires(wires):
    """Truth 3, of each wire, as of one moment."""
    for wire in wires:
        parts = sum(wire[key] for key in ("out", "delivered", "dropped", "held"))
        assert wire["received"] + wire["mirrored"] + wire["reject_replies"] + wire["from_kernel"] == parts, wire
    return wires


def on_disk(disk):
    """What stands before a command that shall see a small file system, (place, size), of its own."""
    if not disk:
        return []
    place, size = disk
    return ["unshare", "--mount", "sh", "-c",
            f'mount -t tmpfs -o size={size} none {place} && exec "$0" "$@"']


class Millrace:
    """`millrace run`, in a directory of its own and, if need be, a namespace.

    Begins with a socket that answers. stop() is part of every test: it checks the end. In the
    directory there may be other directories (`made`), a FIFO, and at one of the directories a small
    file system that only the engine sees (`disk`).
    """

    def __init__(self, directory, *arguments, network=None, environment=None, wait=True,
                 joined=True, socket_name="millrace.sock", made=(), fifo=None, disk=None):
        self.directory, self.network = pathlib.Path(directory), network
        self.directory.mkdir(exist_ok=True)
        self.socket = self.directory / socket_name
        self.errors = self.directory / "stderr"
        self.connection, self.code = None, None
        for name in made:
            (self.directory / name).mkdir(exist_ok=True)
        if fifo:
            os.mkfifo(self.directory / fifo)
        self.there_before = {entry.name for entry in self.directory.iterdir()}
        arguments = [str(argument) for argument in arguments]
        if network and joined:
            arguments = [*network.arguments(), *arguments]
        with contextlib.ExitStack() as stack:
            errors = stack.enter_context(self.errors.open("wb"))
            if network:
                stack.enter_context(network.middle.entered())
            self.process = subprocess.Popen(
                [*on_disk(disk), MILLRACE, "run", *arguments], stdin=subprocess.DEVNULL, stderr=errors,
                stdout=subprocess.DEVNULL, cwd=self.directory,
                env={**os.environ, "XDG_RUNTIME_DIR": str(self.directory), **(environment or {})})
        self.pidfd = os.pidfd_open(self.process.pid)
        if wait:
            self.until(self.answers, "the socket answers")
            if network:
                network.engine_is_there()

    def answers(self):
        """Is it there? Connects for the first time when it is."""
        try:
            self.connection = Connection(self.socket)
        except (FileNotFoundError, ConnectionError):
            return False  # not yet; or it gave up: that is seen by its end
        return True

    @property
    def proc(self):
        return pathlib.Path("/proc") / str(self.process.pid)

    @property
    def stderr(self):
        return self.errors.read_text(errors="replace")

    def ended(self, milliseconds=0):
        """Has it ended? Waits for that as long as allowed."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(milliseconds))

    def until(self, condition, what, timeout=30):
        """Waits until the condition holds, and not for an engine that has ended; returns it."""
        deadline = time.monotonic() + timeout * SLOWER
        while not (result := condition()):
            if self.ended(5):
                raise Gone(f"it ended, code {self.process.wait()}: {self.stderr}")
            assert time.monotonic() < deadline, f"waited in vain: {what}\n{self.stderr}"
        return result

    # ------------------------------------------------------------------------------- questions

    def ask(self, request, **given):
        """The lines of the answer."""
        return self.connection.ask(request, **given)[0]

    def wires(self):
        return check_wires(self.ask("wire show"))

    def wire(self):
        return self.wires()[0]

    def ports(self):
        return {port["port"]: port for port in self.ask("port show")}

    def drops(self):
        return {drop["reason"]: drop["packets"] for drop in self.ask("drop show")
                if drop["packets"]}

    def client(self, *words, code=0):
        """The client program's run; its standard output."""
        for _ in range(DEAF_TRIES):
            done = subprocess.run([MILLRACE, *words, "--socket", str(self.socket)], text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True, check=False,
                                  timeout=120 * SLOWER)
            if code != 0 or not may_ask_again(" ".join(words[:2]), done.stderr):
                break
        assert done.returncode == code, (words, done.stdout[-500:], done.stderr)
        return done.stdout if code == 0 else done.stderr

    def flows(self):
        """What `millrace flow list --json` prints: each flow once, each with its worker."""
        flows = [json.loads(line) for line in
                 self.client("flow", "list", "--json").splitlines()]
        keys = [flow_key(flow) for flow in flows]
        assert len(set(keys)) == len(keys), "a flow is in two shards"
        workers = {worker["worker"] for worker in self.ask("worker show") if "worker" in worker}
        assert all(flow["worker"] in workers for flow in flows)
        return flows

    @contextlib.contextmanager
    def watched(self):
        """Meanwhile the sums are asked for all the time."""
        over, failures, asked = threading.Event(), [], [0]

        def look():
            try:
                with Connection(self.socket) as connection:
                    while not over.is_set():
                        check_wires(connection.ask("wire show")[0])
                        asked[0] += 1
                        over.wait(0.002)
            except BaseException as failure:  # pylint: disable=broad-exception-caught
                failures.append(failure)

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield asked
        finally:
            over.set()
            thread.join()
        if failures:
            raise failures[0]
        assert asked[0] > 0

    def idle(self):
        """Waits until nothing is held; the wire of that moment."""
        return self.until(lambda: next((wire for wire in [self.wire()] if wire["held"] == 0), None),
                          "nothing is held")

    # ----------------------------------------------------------------------------------- ends

    def send_signal(self, number):
        signal.pidfd_send_signal(self.pidfd, number)

    @contextlib.contextmanager
    def halted(self):
        """Meanwhile none of its threads runs."""
        self.send_signal(signal.SIGSTOP)
        try:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
            yield
        finally:
            self.send_signal(signal.SIGCONT)

    def wait(self, timeout=30):
        """Waits for the end, however it comes about; returns the exit code."""
        assert self.ended(timeout * 1000 * SLOWER), f"it does not end\n{self.stderr}"
        self.code = self.process.wait()
        return self.code

    def stop(self, number=signal.SIGTERM, code=0, leaves=(), idle=True):
        """The end as it should be: sums, exit code, nothing left behind but `leaves`."""
        for wire in self.wires():
            assert wire["held"] == 0 or not idle, wire
        self.connection.close()
        self.connection = None
        self.send_signal(number)
        assert self.wait() == code, self.stderr
        # DPDK makes an empty directory of its own where root is not its user
        there = {entry.relative_to(self.directory).parts[0]
                 for entry in self.directory.rglob("*") if not entry.is_dir()}
        left = there - self.there_before - {"stderr", *leaves}
        assert not left, f"files left behind: {left}"
        if self.network:
            self.network.check_nothing_left()

    def describe(self):
        """Where it stands: for whoever wonders why a test failed."""
        print(self.stderr)
        if self.connection and not self.ended():
            for request in ("wire show", "drop show", "port show", "worker show"):
                print(*self.ask(request), sep="\n")

    def kill(self):
        """Whatever state it is in; for the end of a test that failed, too."""
        if self.connection:
            self.connection.close()
            self.connection = None
        if self.pidfd >= 0:
            if self.code is None:
                self.process.kill()
                self.code = self.process.wait()
            os.close(self.pidfd)
            self.pidfd = -1


def flow_key(flow):
    """Both directions, and wire and zone."""
    ends = sorted(((flow["src"], flow["sport"]), (flow["dst"], flow["dport"])))
    return (flow["proto"], *ends, flow["wire"], flow["zone"])


def refused(directory, *arguments, network=None, environment=None, prefix=(),
            program=MILLRACE):
    """A start that fails: (exit code, the one line that says why)."""
    with contextlib.ExitStack() as stack:
        if network:
            stack.enter_context(network.middle.entered())
        done = subprocess.run(
            [*prefix, program, "run", *map(str, arguments)], stdin=subprocess.DEVNULL, text=True,
            capture_output=True, cwd=directory, timeout=30 * SLOWER, check=False,
            env={**os.environ, "XDG_RUNTIME_DIR": str(directory), **(environment or {})})
    lines = done.stderr.splitlines()
    # before it there may be advice about a port that did open
    advice = [line for line in lines[:-1] if "ethtool -K" in line]
    assert done.stdout == "" and len(lines) == len(advice) + 1, done.stderr
    return done.returncode, lines[-1]


def read_records(path):
    """Every line whole: JSON, an object a line, the last one ended."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n"), text[-200:]
    return [json.loads(line) for line in text.splitlines()]
