#!/usr/bin/env python3
"""Peers of the guest's wire format, over the codec of framecat.py.

frame_peer.py refusals                            checks that codec: vectors, and what it refuses
frame_peer.py client ADDRESS [--name X]           lines on stdin -> answers on stdout
frame_peer.py refuse ADDRESS                      sends every refused frame to an endpoint
frame_peer.py fuzz ADDRESS [--bytes N] [--seed N] random streams against an endpoint
frame_peer.py serve unix:PATH                     is an endpoint that sends those to a relay
ADDRESS: unix:PATH or vsock:CID:PORT. Standard library only.
"""
import argparse, json, random, socket, sys, threading

sys.dont_write_bytecode = True  # leaves no files in this folder
from bad_frames import LIST, bad_frames, noise, refusals
from framecat import HEAD, MOST, pack, read_frame


def connect(address, timeout=20):
    kind, _, rest = address.partition(":")
    if kind == "unix":
        s = socket.socket(socket.AF_UNIX)
        target = rest
    else:
        s = socket.socket(socket.AF_VSOCK)
        target = tuple(int(part) for part in rest.split(":"))
    s.settimeout(timeout)
    s.connect(target)
    return s


def refuse(address):
    """Invalid frames among valid ones: answered with -32600 or, without a stream, not at all."""
    for what, frame, fatal in bad_frames():
        with connect(address) as s:
            stream = s.makefile("rb")
            s.sendall(b"\0CAPSEM_META:framecat\n" + pack(1, 0, b"framecat", LIST) + frame)
            assert read_frame(stream)[:3] == (1, False, "framecat"), what
            if fatal:
                assert read_frame(stream) is None, what
                continue
            number = HEAD.unpack_from(frame)[4]
            if number:
                got = read_frame(stream)
                error = json.loads(got[3])
                assert got[0] == number and "id" not in error, what
                assert error["error"]["code"] == -32600, what
                assert "invalid MCP frame" in error["error"]["message"], what
            s.sendall(pack(9, 0, b"framecat", LIST))
            assert read_frame(stream)[0] == 9, what
    largest = LIST + b" " * (MOST - 16 - len(LIST))
    with connect(address) as s:
        s.sendall(pack(1, 0, b"", largest))
        assert b"tools" in read_frame(s.makefile("rb"))[3]
    print("11 refused by the endpoint, the largest accepted")


def fuzz(address, count, seed):
    """Ignores all input except its end."""
    rng, sent, connections = random.Random(seed), 0, 0
    while sent < count:
        connections += 1
        try:
            with connect(address) as s:
                threading.Thread(target=drain, args=(s,), daemon=True).start()
                for data, _ in zip(noise(rng), range(rng.randrange(1, 200))):
                    sent += len(data)
                    s.sendall(data)
        except OSError:
            pass  # closed by the endpoint
    with connect(address) as s:
        s.sendall(pack(1, 0, b"fuzz", LIST))
        assert b"tools" in read_frame(s.makefile("rb"))[3]
    print("%d bytes over %d connections, and it still answers" % (sent, connections))


def drain(s):
    try:
        while s.recv(65536):
            pass
    except OSError:
        pass


def client(address, name):
    """A minimal relay: every line is a request with its own stream, or a notification."""
    s, pending = connect(address, None), threading.Semaphore(0)

    def answers():
        for frame in iter(lambda: read_frame(stream), None):
            if frame[3]:
                sys.stdout.write(frame[3].decode() + "\n")
                sys.stdout.flush()
        pending.release()

    stream, number = s.makefile("rb"), 0
    threading.Thread(target=answers, daemon=True).start()
    s.sendall(b"\0CAPSEM_META:" + name + b"\n")
    for line in sys.stdin.buffer:
        message = json.loads(line)
        unanswered = "id" not in message
        number += not unanswered
        s.sendall(pack(0 if unanswered else number, int(unanswered), name, line.strip()))
    s.shutdown(socket.SHUT_WR)
    pending.acquire()


def reply(s, rng, stream, name, message):
    """refused: invalid frame number params.n before the answer. noise: at most a million bytes of
    it, without answers; then the connection ends, since a wrong length may wait for more."""
    result = {"method": message["method"]}
    if message["method"] == "refused":
        result["what"], frame, _ = bad_frames(stream)[message["params"]["n"]]
        s.sendall(frame)
    if message["method"] == "noise":
        sent = 0
        try:
            for data in noise(rng, 1 << 20, lengths=True):
                s.sendall(data)
                sent += len(data)
                if sent > 1_000_000:
                    raise BrokenPipeError
        finally:
            print(sent, flush=True)
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    s.sendall(pack(stream, 0, name.encode(), json.dumps(answer).encode()))


def serve(path, seed):
    """Serves the connections of relays in turn; a frame that a relay must not send ends it."""
    rng, listener = random.Random(seed), socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("listening", flush=True)
    while True:
        s = listener.accept()[0]
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)  # limits the unread replies
        with s, s.makefile("rb") as stream:
            assert stream.readline(512).startswith(b"\0CAPSEM_META:")
            try:
                for number, notification, name, payload in iter(lambda: read_frame(stream), None):
                    if not notification:
                        reply(s, rng, number, name, json.loads(payload))
            except OSError:
                pass  # closed by the relay


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("refusals", "client", "refuse", "fuzz", "serve"))
    parser.add_argument("address", nargs="?", default="")
    parser.add_argument("--name", default="frame_peer")
    parser.add_argument("--bytes", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    {"refusals": refusals, "client": lambda: client(a.address, a.name.encode()),
     "refuse": lambda: refuse(a.address), "fuzz": lambda: fuzz(a.address, a.bytes, a.seed),
     "serve": lambda: serve(a.address.removeprefix("unix:"), a.seed)}[a.mode]()


if __name__ == "__main__":
    main()
