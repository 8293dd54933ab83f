"""An upstream that misbehaves as told: TLS over plain sockets, one scripted fault for every request.

    with FaultyUpstream(ca.leaf("forge.test"), status(503)) as upstream:
        ... point the operator's file at upstream.address ...
        assert upstream.requests

It counts what reaches it before anything can go wrong, so that "nothing was sent" is an assertion too.
"""

import socket
import ssl
import threading
import typing

HEAD_LIMIT_BYTES = 64 * 1024


class Request(typing.NamedTuple):
    method: str
    target: str
    headers: dict  # names in lower case

    @property
    def authorization(self):
        return self.headers.get("authorization")

    @property
    def repository(self):
        return "/".join(self.target.split("/")[1:3])


# --- faults: each takes the stream after a request's head was read ---


def status(code, body=b"no\n", headers=()):
    """A complete answer of that status."""
    def answer(stream, upstream):
        head = f"HTTP/1.1 {code} Scripted\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers)
        stream.sendall(head.encode() + b"\r\n" + body)
    return answer


def unauthorized():
    return status(401, headers=[("WWW-Authenticate", 'Basic realm="upstream"')])


def redirect(location):
    return status(302, headers=[("Location", location)])


def hang():
    """Not one byte, until the other side or the test ends it."""
    def answer(stream, upstream):
        upstream.ended.wait()
    return answer


def close_at_once():
    def answer(stream, upstream):
        pass
    answer.closes = True
    return answer


def cut_body(announced_bytes=100000, sent=b"001e# service=git-upload-pack\n",
             content_type="application/x-git-upload-pack-advertisement"):
    """Announces a body and ends the connection after its first bytes."""
    def answer(stream, upstream):
        stream.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n"
                       f"Content-Length: {announced_bytes}\r\n\r\n".encode() + sent)
    answer.closes = True
    return answer


def raw(data):
    """Any bytes at all in place of an answer."""
    def answer(stream, upstream):
        stream.sendall(data)
    answer.closes = True
    return answer


def say(data, end="stay"):
    """Any bytes; `end` is "stay", "close" (with close_notify) or "fin" (without)."""
    def answer(stream, upstream):
        stream.sendall(data)
        if end == "close":
            stream.unwrap()
    answer.closes = end != "stay"
    return answer


def say_for_ever(first, again, every_seconds=0.0):
    """Bytes, and then the same others again and again until the other side has enough."""
    def answer(stream, upstream):
        stream.sendall(first)
        while not upstream.ended.wait(every_seconds):
            stream.sendall(again)
    answer.closes = True
    return answer


# --- handshakes: each takes the accepted socket in place of TLS, and returns a stream or None ---


def say_plainly(data, linger=True):
    """Bytes that are no TLS, or an alert, or nothing; `linger`: only after the ClientHello came."""
    def shake(plain, upstream):
        if linger:
            plain.recv(65536)
        plain.sendall(data)
    return shake


def reset_at_once():
    def shake(plain, upstream):
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        plain.close()
    return shake


def hang_in_handshake():
    def shake(plain, upstream):
        upstream.ended.wait()
    return shake


def answer_first(data):
    """TLS as it should be, but the answer comes before any request."""
    def shake(plain, upstream):
        stream = upstream.tls.wrap_socket(plain, server_side=True)
        stream.sendall(data)
        return stream
    return shake


class FaultyUpstream:
    def __init__(self, leaf, *faults, script=None, tune=None, handshake=None):
        """`leaf`: (certificate, key). The n-th request gets the n-th fault, later ones the last.

        `script`: {repository's name: fault} instead. `tune` gets the TLS context before it is used.
        """
        self._faults = faults
        self._script = script or {}
        self._handshake = handshake or (lambda plain, _: self.tls.wrap_socket(plain, server_side=True))
        self.connections = 0
        self.handshakes = 0
        self.requests = []
        self.served = []  # for each connection with TLS: its requests
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._open = set()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(*map(str, leaf))
        if tune:
            tune(self.tls)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self._listener.getsockname()[1]

    def stop(self):
        self.ended.set()
        # shutdown() wakes the accepting thread; close() alone would not.
        self._listener.shutdown(socket.SHUT_RDWR)
        with self._lock:
            for stream in self._open:
                _shut(stream)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _accept(self):
        while True:
            try:
                plain, _ = self._listener.accept()
                # An answer must not wait until the client has acknowledged a ticket.
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.add(plain)
            thread = threading.Thread(target=self._serve, args=(plain,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, plain):
        stream = plain
        try:
            stream = self._handshake(plain, self)
            if stream is None:
                stream = plain
                return
            served = []
            with self._lock:
                self.handshakes += 1
                self.served.append(served)
                self._open.discard(plain)
                self._open.add(stream)
            buffered = b""
            while not self.ended.is_set():
                request, buffered = self._read_request(stream, buffered)
                if request is None:
                    return
                with self._lock:
                    fault = self._fault_for(request)
                    self.requests.append(request)
                    served.append(request)
                fault(stream, self)
                if getattr(fault, "closes", False):
                    return
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(stream)
            _shut(stream)
            stream.close()

    def _fault_for(self, request):
        if self._script:
            return self._script[request.repository.split("/")[1]]
        return self._faults[min(len(self.requests), len(self._faults) - 1)]

    @staticmethod
    def _read_request(stream, data):
        while b"\r\n\r\n" not in data:
            piece = stream.recv(65536)
            if not piece or len(data) > HEAD_LIMIT_BYTES:
                return None, b""
            data += piece
        head, rest = data.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        # Bodies are read and dropped, so that the next request on the connection is found.
        if headers.get("transfer-encoding") == "chunked":
            while not rest.endswith(b"0\r\n\r\n"):
                piece = stream.recv(65536)
                if not piece:
                    break
                rest = (rest + piece)[-65536:]
            rest = b""
        left = int(headers.get("content-length", "0")) - len(rest)
        while left > 0:
            piece = stream.recv(65536)
            if not piece:
                break
            left -= len(piece)
        return Request(method, target, headers), b""


class ClosedPort:
    """An address that refuses connections for as long as this object lives: bound, never listening."""

    def __init__(self):
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))

    @property
    def address(self):
        return "127.0.0.1:%d" % self._socket.getsockname()[1]

    def stop(self):
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def _shut(stream):
    try:
        stream.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
