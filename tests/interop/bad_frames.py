"""Invalid frames of the guest's wire format: each kind of refusal alone, and endless noise."""
from framecat import MOST, Refused, pack, unpack

LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


def bad_frames(stream=7):
    """The eleven refusals: (name, bytes, whether the connection is lost)."""
    return [("magic", pack(stream, 0, b"n", LIST, magic=0x4D44), False),
            ("version", pack(stream, 0, b"n", LIST, version=2), False),
            ("header_len", pack(stream, 0, b"n", LIST, header=15), False),
            ("reserved flag", pack(stream, 2, b"n", LIST), False),
            ("stream 0 without flag", pack(0, 0, b"n", LIST), False),
            ("flag with stream", pack(stream, 1, b"n", LIST), False),
            ("name 129", pack(stream, 0, b"n" * 129, LIST), False),
            ("name not UTF-8", pack(stream, 0, b"\xff", LIST), False),
            ("length mismatch", pack(stream, 0, b"n", LIST, payload_len=3), False),
            ("total 15", pack(stream, 0, b"", b"", total=15), True),
            ("total 1052673", pack(stream, 0, b"", b"", total=1052673), True)]


def noise(rng, base=0, lengths=False):
    """Pieces of an endless stream: valid frames with stream numbers from base on, flipped bytes,
    garbage, refused frames. lengths: nearly all have a correct length."""
    good, stream, first = rng.random() < 0.7, base, 4 if lengths else 0
    while True:
        stream = max(stream + rng.choice((1, 1, 1, 2, 1000, -1)), base)
        if not good:
            stream = base + rng.randrange(9)
        data = pack(stream, 0, b"fuzz", rng.choice((LIST, rng.randbytes(40))))
        if rng.random() < 0.05:
            garbage = rng.randbytes(rng.randrange(16, 3000))
            if lengths and rng.random() < 0.99:
                garbage = len(garbage).to_bytes(4, "big") + garbage
            bad = bad_frames(stream)[:9 if lengths else 11]
            data = rng.choice((garbage, rng.choice(bad)[1]))
        if not good or rng.random() < 0.05:
            at = rng.randrange(first, len(data))
            data = data[:at] + rng.randbytes(1) + data[at + 1:]
        yield data


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
