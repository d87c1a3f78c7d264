#!/usr/bin/env python3
"""A second implementation of the guest's wire format, from its layout table alone.

framecat.py encode [--stream N] [--notification] [--name X]   payload on stdin -> a frame on stdout
framecat.py decode                                            frames on stdin -> a JSON line for each
Standard library only. frame_peer.py is what speaks with it to a gateway.
"""
import argparse, json, struct, sys

HEAD = struct.Struct(">IHBBIHHI")  # total, magic, version, header, stream, flags, name, payload
MAGIC, VERSION, HEADER, MOST, MOST_NAME = 0x4D43, 1, 16, 1052672, 128


class Refused(Exception):
    """A violation of the layout; fatal: the position of the next frame is unknown."""

    def __init__(self, why, fatal=False):
        super().__init__(why)
        self.fatal = fatal


def pack(stream, flags, name, payload, total=None, magic=MAGIC, version=VERSION, header=HEADER,
         name_len=None, payload_len=None):
    """Encodes the given fields, valid or not."""
    total = 16 + len(name) + len(payload) if total is None else total
    return HEAD.pack(total, magic, version, header, stream, flags,
                     len(name) if name_len is None else name_len,
                     len(payload) if payload_len is None else payload_len) + name + payload


def check_total(total):
    if not 16 <= total <= MOST:
        raise Refused("total_len %d" % total, fatal=True)


def unpack(frame):
    """Returns (stream, whether it is a notification, name, payload) of a complete frame."""
    total, magic, version, header, stream, flags, name_len, payload_len = HEAD.unpack_from(frame)
    check_total(total)
    name = frame[20:20 + name_len]
    for wrong, why in ((magic != MAGIC, "magic"), (version != VERSION, "version"),
                       (header != HEADER, "header_len"), (flags & ~1, "reserved flag"),
                       (stream == 0 and not flags, "stream 0 without flag"),
                       (stream != 0 and flags, "flag with a stream"),
                       (name_len > MOST_NAME, "process_name_len"),
                       (16 + name_len + payload_len != total, "length mismatch")):
        if wrong:
            raise Refused(why)
    try:
        return stream, bool(flags), name.decode("utf-8"), frame[20 + name_len:]
    except UnicodeDecodeError:
        raise Refused("name not UTF-8")


def read_exactly(stream, n):
    data = b""
    while len(data) < n:
        more = stream.read(n - len(data))
        if not more:
            return None
        data += more
    return data


def read_frame(stream):
    """Returns the next frame, or None at the end."""
    head = read_exactly(stream, 4)
    if head is None:
        return None
    total = struct.unpack(">I", head)[0]
    check_total(total)
    body = read_exactly(stream, total)
    return None if body is None else unpack(head + body)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("encode", "decode"))
    parser.add_argument("--stream", type=int, default=1)
    parser.add_argument("--notification", action="store_true")
    parser.add_argument("--name", default="framecat")
    a = parser.parse_args()
    if a.mode == "encode":
        payload, stream = sys.stdin.buffer.read(), 0 if a.notification else a.stream
        sys.stdout.buffer.write(pack(stream, int(a.notification), a.name.encode(), payload))
        return
    try:
        for stream, notification, name, payload in iter(lambda: read_frame(sys.stdin.buffer), None):
            print(json.dumps({"stream": stream, "notification": notification, "name": name,
                              "payload": payload.decode()}))
    except Refused as refused:
        sys.exit("refused: %s" % refused)


if __name__ == "__main__":
    main()
