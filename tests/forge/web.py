"""Other upstreams than a forge: an HTTP server with or without TLS, and one that speaks anything else. Both on loopback,
and both count what reaches them, so that "nothing was sent" is an assertion too."""

import base64
import functools
import hashlib
import http.server
import os
import re
import socket
import socketserver
import ssl
import subprocess
import threading
import typing
import zlib

PATIENCE_SECONDS = 120
STOP_SECONDS = 0.02  # a server looks that often whether it is to stop
PIECE_BYTES = 256 * 1024
EVENTS = 5
BOMB_BYTES = 10 << 30
WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
PATTERN = bytes(range(251)) * 4177  # of a length that no buffer is a multiple of


class Request(typing.NamedTuple):
    method: str
    target: str
    headers: list  # (name in lower case, value)


def pattern(size, piece=len(PATTERN)):
    """The bytes of /bytes/SIZE."""
    for at in range(0, size, piece):
        yield PATTERN[:min(piece, size - at)]


def pattern_digest(size):
    digest = hashlib.sha256()
    for piece in pattern(size):
        digest.update(piece)
    return digest.hexdigest()


@functools.cache
def bomb(unpacked=BOMB_BYTES):
    """gzip (RFC 1952) of that many zeros; without the checksum, which only who unpacks all of it would miss."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    mebibyte = deflate.compress(bytes(1 << 20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + mebibyte * (unpacked >> 20) + b"\x03\0"


class _Handler(http.server.BaseHTTPRequestHandler):
    """`/bytes/SIZE` is that many bytes; `/digest` answers a body with its SHA-256; `/socket` is a WebSocket that echoes
    messages; `/events` is a stream of EVENTS, each of which comes only when somebody has said `POST /seen` of the one before; `/bomb` is a
    little gzip of very much. Everything else
    is one of the server's files, or 404."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE_SECONDS

    def handle(self):
        try:
            super().handle()
        except (OSError, ValueError):
            pass  # a request that was broken off

    def log_message(self, *_):
        pass

    def parse_request(self):
        good = super().parse_request()
        if good:
            self.server.note(Request(self.command, self.path, [(n.lower(), v) for n, v in self.headers.items()]))
        return good

    def answer(self, body, status=200, kind="text/plain", coding=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if coding:
            self.send_header("Content-Encoding", coding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def upload_pack(self, repo, body=None):
        """git's own server, as it answers over HTTP; to anybody."""
        command = ["git", "-c", "safe.directory=*", "upload-pack", "--stateless-rpc"]
        advertises = ["--http-backend-info-refs"] if body is None else []
        told = subprocess.run([*command, *advertises, repo], input=body or b"", check=True, capture_output=True,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent",
                                   "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}).stdout
        if body is None:
            self.answer(b"001e# service=git-upload-pack\n0000" + told, kind="application/x-git-upload-pack-advertisement")
        else:
            self.answer(told, kind="application/x-git-upload-pack-result")

    def do_GET(self):
        path = self.path.partition("?")[0]
        if repo := self.server.repositories.get(path.removesuffix("/info/refs")):
            self.upload_pack(repo)
        elif path in self.server.files:
            kind, body = self.server.files[path]
            self.answer(body, kind=kind)
        elif size := re.fullmatch("/bytes/([0-9]+)", path):
            self.send_response(200)
            self.send_header("Content-Length", size[1])
            self.end_headers()
            for piece in pattern(int(size[1])):
                self.wfile.write(piece)
        elif path == "/bomb":
            self.answer(bomb(), kind="application/octet-stream", coding="gzip")
        elif path == "/events":
            self.events()
        elif path == "/socket":
            self.websocket()
        else:
            self.answer(b"no such thing here\n", 404)

    do_HEAD = do_GET

    def do_POST(self):
        digest, size = hashlib.sha256(), 0
        if repo := self.server.repositories.get(self.path.removesuffix("/git-upload-pack")):
            self.upload_pack(repo, b"".join(self.body()))
            return
        for piece in self.body():
            digest.update(piece)
            size += len(piece)
        self.server.count_whole_body()
        if self.path == "/seen":
            self.server.seen.release()
        self.answer(f"{digest.hexdigest()} {size}\n".encode())

    do_PUT = do_DELETE = do_POST

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            piece = self.rfile.read(min(left, PIECE_BYTES))
            if not piece:
                raise ValueError("broken off")
            left -= len(piece)
            yield piece

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number in range(EVENTS):
            self.wfile.write(b"data: %d\n\n" % number)
            if not self.server.seen.acquire(timeout=PATIENCE_SECONDS):
                break
        self.close_connection = True

    def websocket(self):
        key = self.headers.get("Sec-WebSocket-Key", "")
        accept = base64.b64encode(hashlib.sha1((key + WEBSOCKET_GUID).encode()).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        # Client frames of up to 125 bytes, masked (RFC 6455, 5.2); an echo is the same without the mask.
        while len(head := self.rfile.read(6)) == 6 and head[0] != 0x88:
            mask, data = head[2:], self.rfile.read(head[1] & 0x7f)
            self.wfile.write(bytes([head[0], len(data)]) + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))


class _Counting(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.connections, self._lock = 0, threading.Lock()
        threading.Thread(target=self.serve_forever, args=(STOP_SECONDS,), daemon=True).start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.server_address[1]

    def process_request(self, request, client_address):
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # a handshake that was broken off

    def stop(self):
        self.shutdown()
        self.server_close()


class Web(_Counting):
    """`files`: {path: (content type, bytes)}. `leaf`: (certificate, key), or None for plain HTTP. `repositories`:
    {path: folder}, for git to fetch from."""

    def __init__(self, leaf=None, files=None, repositories=None):
        self.repositories = repositories or {}
        self.files = {"/hello": ("text/plain", b"hello\n")} | (files or {})
        self.requests, self.seen, self.whole_bodies = [], threading.Semaphore(0), 0
        self._tls = None
        if leaf:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(*map(str, leaf))
        super().__init__(_Handler)

    def finish_request(self, request, client_address):
        # In the connection's own thread, so that a client that says nothing holds nobody else up.
        if self._tls:
            request.settimeout(PATIENCE_SECONDS)
            request = self._tls.wrap_socket(request, server_side=True)
        with request:
            super().finish_request(request, client_address)
            if self._tls:
                # To its end, so that nobody has to take it for a cut.
                request.unwrap()

    def note(self, request):
        with self._lock:
            self.requests.append(request)

    def count_whole_body(self):
        with self._lock:
            self.whole_bodies += 1

    def traffic(self):
        return self.connections, len(self.requests)


class Raw(_Counting):
    """Says `greeting`, and then gives back what it gets until the other side ends."""

    def __init__(self, greeting=b""):
        def handle(request, _address, _server):
            request.sendall(greeting)
            while piece := request.recv(PIECE_BYTES):
                request.sendall(piece)
        super().__init__(handle)

    def traffic(self):
        return self.connections
