"""Looks for a secret in every form in which it could lie in a process: memory, environment, arguments."""

import base64
import os
import pathlib
import re
import urllib.parse

CHUNK_BYTES = 8 * 1024 * 1024
# From here on a mapping's absent pages are skipped by its page map, instead of being read as zeros.
SPARSE_BYTES = 64 * 1024 * 1024
# AddressSanitizer's shadow is terabytes of address space and holds no data of the program.
SHADOW_BYTES = 16 * 1024 * 1024 * 1024
PAGE = os.sysconf("SC_PAGE_SIZE")


def forms(secret):
    """Each name of a form with the bytes to look for."""
    raw = secret.encode() if isinstance(secret, str) else secret
    result = {"raw": raw, "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode(),
              "percent": b"".join(b"%%%02x" % byte for byte in raw),
              "PERCENT": b"".join(b"%%%02X" % byte for byte in raw),
              "url-quoted": urllib.parse.quote(raw, safe="").encode()}
    for offset in range(3):
        # Only the characters that the secret alone decides: what stands before and behind it is unknown.
        first = (offset * 8 + 5) // 6
        last = (offset + len(raw)) * 8 // 6
        for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            result[f"{name} at {offset}"] = encode(b"\0" * offset + raw)[first:last]
    return result


def find_in(data, needles):
    return [name for name, needle in needles.items() if needle in data]


def search_process(pid, secret):
    """Where the secret was found: a list of "place: form". Needs to be allowed to trace the process."""
    needles = forms(secret)
    proc = pathlib.Path("/proc", str(pid))
    found = []
    for name in ("environ", "cmdline"):
        found += [f"{name}: {form}" for form in find_in((proc / name).read_bytes(), needles)]
    overlap = max(map(len, needles.values())) - 1
    with open(proc / "mem", "rb", buffering=0) as memory:
        for start, end, label in _readable_mappings(proc):
            tail = b""
            at = None
            for address, data in _read_mapping(proc, memory, start, end):
                # A secret may lie across two reads, never across a gap.
                tail = tail if at == address else b""
                found += [f"{label} at {address:#x}: {form}" for form in find_in(tail + data, needles)]
                tail = data[-overlap:]
                at = address + len(data)
    return found


def _readable_mappings(proc):
    for line in (proc / "maps").read_text(errors="replace").splitlines():
        span, mode, *rest = line.split(None, 5)
        label = rest[3] if len(rest) > 3 else "anonymous memory"
        start, end = (int(x, 16) for x in span.split("-"))
        # What is not readable by the process itself can be read through /proc/PID/mem all the same.
        if label in ("[vvar]", "[vvar_vclock]", "[vsyscall]") or end - start > SHADOW_BYTES:
            continue
        yield start, end, label


def _read_mapping(proc, memory, start, end):
    for begin, stop in _present_spans(proc, start, end):
        while begin < stop:
            size = min(CHUNK_BYTES, stop - begin)
            try:
                data = os.pread(memory.fileno(), size, begin)
            except OSError:
                data = b""
            if data:
                yield begin, data
                begin += len(data)
            else:
                # A page that cannot be read: a device, or a file that has become shorter.
                begin += PAGE


def _present_spans(proc, start, end):
    if end - start < SPARSE_BYTES:
        yield start, end
        return
    present_or_swapped = 0xC0
    with open(proc / "pagemap", "rb", buffering=0) as pagemap:
        for block in range(start, end, SPARSE_BYTES):
            pages = (min(end, block + SPARSE_BYTES) - block) // PAGE
            flags = os.pread(pagemap.fileno(), pages * 8, block // PAGE * 8)[7::8]
            for run in re.finditer(rb"[\x40-\x7f\x80-\xff]+", flags):
                assert flags[run.start()] & present_or_swapped
                yield block + run.start() * PAGE, block + run.end() * PAGE
