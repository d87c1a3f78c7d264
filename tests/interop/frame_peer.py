#!/usr/bin/env python3
"""Peers of the guest's wire format, over the codec of framecat.py.

frame_peer.py refusals                            checks that codec: vectors, and what it refuses
frame_peer.py client ADDRESS [--name X]           lines on stdin -> answers on stdout
frame_peer.py refuse ADDRESS                      sends every refused frame to an endpoint
frame_peer.py fuzz ADDRESS [--bytes N] [--seed N] random streams against an endpoint
ADDRESS: unix:PATH or vsock:CID:PORT. Standard library only.
"""
import argparse, json, random, socket, sys, threading

sys.dont_write_bytecode = True  # this folder is somebody's working tree
from framecat import HEAD, MOST, Refused, pack, read_frame, unpack

LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


def bad_frames():
    """The eleven refusals: (what, bytes, is the connection lost)."""
    return [("magic", pack(7, 0, b"n", LIST, magic=0x4D44), False),
            ("version", pack(7, 0, b"n", LIST, version=2), False),
            ("header_len", pack(7, 0, b"n", LIST, header=15), False),
            ("reserved flag", pack(7, 2, b"n", LIST), False),
            ("stream 0 without flag", pack(0, 0, b"n", LIST), False),
            ("flag with stream", pack(5, 1, b"n", LIST), False),
            ("name 129", pack(7, 0, b"n" * 129, LIST), False),
            ("name not UTF-8", pack(7, 0, b"\xff", LIST), False),
            ("length mismatch", pack(7, 0, b"n", LIST, payload_len=3), False),
            ("total 15", pack(7, 0, b"", b"", total=15), True),
            ("total 1052673", pack(7, 0, b"", b"", total=1052673), True)]


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


def refusals():
    for what, frame, fatal in bad_frames():
        try:
            unpack(frame)
            sys.exit("accepted: " + what)
        except Refused as refused:
            assert refused.fatal == fatal, what
    assert unpack(pack(1, 0, b"", b" " * (MOST - 16)))[3] == b" " * (MOST - 16)
    assert pack(0, 1, b"x", b"{}").hex() == "000000134d4301100000000000010001000000" + "02787b7d"
    assert pack(1, 0, b"claude", LIST)[:26].hex() == \
        "000000444d430110" + "00000001" + "0000" + "0006" + "0000002e" + "636c61756465"
    print("11 refused, the largest accepted, 2 vectors")


def refuse(address):
    """Bad frames among good ones: answered with -32600 or, without a stream, not at all."""
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
    """Streams of noise, of good frames, and of good frames with flipped bytes. Nothing is read."""
    rng, sent, connections = random.Random(seed), 0, 0
    while sent < count:
        connections += 1
        try:
            with connect(address) as s:
                threading.Thread(target=lambda: drain(s), daemon=True).start()
                good, stream = rng.random() < 0.7, 0
                for _ in range(rng.randrange(1, 200)):
                    stream += rng.choice((1, 1, 1, 2, 1000, -1)) if good else rng.randrange(9)
                    data = pack(max(stream, 0), 0, b"fuzz", rng.choice((LIST, rng.randbytes(40))))
                    if rng.random() < 0.05:
                        data = rng.randbytes(rng.randrange(1, 3000))
                    if not good or rng.random() < 0.05:
                        at = rng.randrange(len(data))
                        data = data[:at] + rng.randbytes(1) + data[at + 1:]
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
    """A relay in small: every line is a request of its own stream, or a notification."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("refusals", "client", "refuse", "fuzz"))
    parser.add_argument("address", nargs="?")
    parser.add_argument("--name", default="frame_peer")
    parser.add_argument("--bytes", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    if a.mode == "refusals":
        refusals()
    elif a.address is None:
        parser.error(a.mode + " needs an address")
    elif a.mode == "client":
        client(a.address, a.name.encode())
    elif a.mode == "refuse":
        refuse(a.address)
    else:
        fuzz(a.address, a.bytes, a.seed)


if __name__ == "__main__":
    main()
