"""A program that delays the packets in queue 1 of its network namespace.

An iptables rule sends packets to the queue (NFQUEUE), and the kernel waits for a verdict; it is
always "accept", after the delay. Without this process the rule's --queue-bypass lets packets pass
at once. (tc's netem would do the same, but many kernels are built without it.)

Message layouts: linux/netfilter/nfnetlink.h, nfnetlink_queue.h.
"""

import select
import socket
import struct
import sys
import time
from collections import deque

QUEUE = 1
READY = "holding packets back"

_NETLINK_NETFILTER = 12
_SUBSYSTEM_QUEUE = 3
_PACKET, _VERDICT, _CONFIG = 0, 1, 2
_REQUEST, _ACKNOWLEDGE = 1, 4
_ERROR = 2
#: struct nlmsghdr: length, type, flags, sequence, port; struct nfgenmsg: family, version, queue.
_HEADER = struct.Struct("=IHHII")
_GENERIC = struct.Struct("!BBH")
_ATTRIBUTE = struct.Struct("=HH")
_CFG_COMMAND, _CFG_PARAMETERS, _CFG_MAX_LENGTH, _CFG_MASK, _CFG_FLAGS = 1, 2, 3, 4, 5
_BIND, _COPY_META = 1, 1
#: Full queue: let packets pass. Segmentation is left for later: large packets come as one.
_FAIL_OPEN, _GSO = 1, 4
_MAX_LENGTH = 20_000
_PACKET_HEADER, _VERDICT_HEADER = 1, 2
_ACCEPT = 1
_BUFFER = 1 << 20


def message(kind: int, *attributes: tuple[int, bytes], flags: int = _REQUEST) -> bytes:
    """Return a message to the queue."""
    body = _GENERIC.pack(socket.AF_UNSPEC, 0, QUEUE)
    for number, value in attributes:
        length = _ATTRIBUTE.size + len(value)
        body += _ATTRIBUTE.pack(length, number) + value + bytes(-length % 4)
    kind |= _SUBSYSTEM_QUEUE << 8
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body


def messages(data: bytes) -> list[tuple[int, bytes]]:
    """Return (type, body) of each message in one datagram."""
    found, at = [], 0
    while at + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        found.append((kind, data[at + _HEADER.size : at + length]))
        at += max(_HEADER.size, length + -length % 4)
    return found


def packet_id(body: bytes) -> bytes | None:
    """Return the id of the packet in the message's body; None: there is none."""
    at = _GENERIC.size
    while at + _ATTRIBUTE.size <= len(body):
        length, number = _ATTRIBUTE.unpack_from(body, at)
        if number == _PACKET_HEADER:
            return body[at + _ATTRIBUTE.size : at + _ATTRIBUTE.size + 4]
        at += max(_ATTRIBUTE.size, length + -length % 4)
    return None


def bind(link: socket.socket) -> None:
    """Bind the queue; OSError where the kernel refuses."""
    wanted = (
        (_CFG_COMMAND, struct.pack("!BBH", _BIND, 0, 0)),
        (_CFG_PARAMETERS, struct.pack("!IB", 0, _COPY_META)),
        (_CFG_MAX_LENGTH, struct.pack("!I", _MAX_LENGTH)),
    )
    flags = struct.pack("!I", _FAIL_OPEN | _GSO)
    for attributes in (*((each,) for each in wanted), ((_CFG_MASK, flags), (_CFG_FLAGS, flags))):
        link.send(message(_CONFIG, *attributes, flags=_REQUEST | _ACKNOWLEDGE))
        for kind, body in messages(link.recv(_BUFFER)):
            code = struct.unpack_from("=i", body)[0] if kind == _ERROR else 0
            if code:
                raise OSError(-code, "the kernel refuses the queue")


def hold(link: socket.socket, delay_s: float) -> None:
    """Let each packet pass ``delay_s`` after it came; for ever."""
    waiting: deque[tuple[float, bytes]] = deque()
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([link], [], [], left)
        if readable:
            due = time.monotonic() + delay_s
            for kind, body in messages(link.recv(_BUFFER)):
                number = packet_id(body) if kind == _SUBSYSTEM_QUEUE << 8 | _PACKET else None
                if number is not None:
                    waiting.append((due, number))
        while waiting and waiting[0][0] <= time.monotonic():
            verdict = struct.pack("!I", _ACCEPT) + waiting.popleft()[1]
            link.send(message(_VERDICT, (_VERDICT_HEADER, verdict)))


def main() -> None:
    """Delay packets by the argument, in milliseconds."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as link:
        link.bind((0, 0))
        bind(link)
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        hold(link, int(sys.argv[1]) / 1000)


if __name__ == "__main__":
    main()
