"""Other people's HTTP servers on loopback, each before a recorder that says what it was given."""

import json
import os
import pathlib
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import time

START_TIMEOUT_SECONDS = 60
STARTS = 3
STOP_SECONDS = 0.02  # a server looks that often whether it is to stop
PATIENCE_SECONDS = 60


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class _Recorder(socketserver.StreamRequestHandler):
    """Answers every request with itself, as JSON. Its clients are the servers under test: they write cleanly."""

    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while self.serve_one():
                pass
        except (OSError, ValueError):
            pass  # a request that was broken off

    def line(self):
        line = self.rfile.readline(70_000)
        if not line.endswith(b"\r\n"):
            raise ValueError(line)
        return line[:-2].decode("latin-1")

    def serve_one(self):
        first = self.rfile.readline(70_000)
        if not first.endswith(b"\r\n"):
            return False
        method, target, _ = first[:-2].decode("latin-1").split(" ")
        fields = []
        while line := self.line():
            name, value = line.split(":", 1)
            fields.append((name.lower(), value.strip()))
        body = self.body(dict(fields))
        self.server.count()
        told = json.dumps({"method": method, "target": target, "fields": fields, "body": body.hex()}).encode()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(told), told))
        return True

    def exactly(self, size):
        data = self.rfile.read(size)
        if len(data) != size:
            raise ValueError("broken off")
        return data

    def body(self, fields):
        if fields.get("transfer-encoding", "").lower() != "chunked":
            return self.exactly(int(fields.get("content-length", 0)))
        data = b""
        while size := int(self.line().split(";")[0], 16):
            data += self.exactly(size)
            self.line()
        while self.line():
            pass
        return data


class _RecorderServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Recorder)
        self.seen, self._lock = 0, threading.Lock()

    def count(self):
        with self._lock:
            self.seen += 1


NGINX = """
daemon off; master_process off; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; client_max_body_size 0; underscores_in_headers on; ignore_invalid_headers off;
  client_body_temp_path {root}/a; proxy_temp_path {root}/b; fastcgi_temp_path {root}/c; uwsgi_temp_path {root}/d; scgi_temp_path {root}/e;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://127.0.0.1:{recorder}; proxy_http_version 1.1; proxy_set_header Host $http_host;
                  proxy_set_header Connection ""; }}
  }}
}}
"""
HAPROXY = """
global
  maxconn 512
defaults
  mode http
  timeout connect 30s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{port}
  default_backend recorder
backend recorder
  server recorder 127.0.0.1:{recorder}
"""
APACHE = """
ServerRoot {root}
PidFile {root}/pid
ErrorLog {root}/error.log
ServerName localhost
Listen 127.0.0.1:{port}
{identity}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
StartServers 1
ThreadsPerChild 25
MaxRequestWorkers 50
KeepAlive On
MaxKeepAliveRequests 0
AllowEncodedSlashes NoDecode
MaxRanges none
ProxyPreserveHost On
ProxyAddHeaders Off
ProxyPass "/" "http://127.0.0.1:{recorder}/" nocanon
"""


def _apache_identity():
    return "User nobody\nGroup nogroup" if os.getuid() == 0 else ""


COMMANDS = {
    "nginx": (NGINX, lambda file, root: ["/usr/sbin/nginx", "-p", root, "-e", f"{root}/error.log", "-c", file]),
    "haproxy": (HAPROXY, lambda file, root: ["/usr/sbin/haproxy", "-db", "-q", "-f", file]),
    "apache": (APACHE, lambda file, root: ["/usr/sbin/apache2", "-DFOREGROUND", "-f", file]),
}


class Upstream:
    """One server, and its recorder behind it."""

    def __init__(self, name):
        self.name = name
        self.root = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-"))
        self.root.chmod(0o755)
        self.recorder = _RecorderServer()
        threading.Thread(target=self.recorder.serve_forever, args=(STOP_SECONDS,), daemon=True).start()
        # A free port may be another's before it is bound.
        if not any(self._start() for _ in range(STARTS)):
            said = (self.root / "output").read_text()
            self.stop()
            raise RuntimeError(f"{self.name} did not start: {said}")

    def _start(self):
        """Whether it serves."""
        self.port = free_port()
        text, command = COMMANDS[self.name]
        file = self.root / "configuration"
        file.write_text(text.format(root=self.root, port=self.port, recorder=self.recorder.server_address[1],
                                    identity=_apache_identity()))
        with open(self.root / "output", "ab") as output:
            self.process = subprocess.Popen(command(str(file), str(self.root)), stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                self.connect().close()
                return self.process.poll() is None
            except OSError:
                time.sleep(0.05)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        return False

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS)

    def ask(self, data, ends=False):
        """What it answers to these bytes of one connection, to its end. `ends`: and no more will come."""
        with self.connect() as stream:
            try:
                stream.sendall(data)
                if ends:
                    stream.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it said no before it had all
            answer = b""
            try:
                while piece := stream.recv(65536):
                    answer += piece
            except ConnectionResetError:
                pass
            return answer

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.recorder.shutdown()
        self.recorder.server_close()
        shutil.rmtree(self.root, ignore_errors=True)


def _unchunked(data):
    """(the body, what is behind it)"""
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        if int(size, 16) == 0:
            return body, data.partition(b"\r\n")[2]
        body, data = body + data[:int(size, 16)], data[int(size, 16) + 2:]


def answers_in(data):
    """[(status, body)] of one connection's answers, to requests that are no HEAD. 1xx are left out."""
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        fields = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in lines[1:]}
        if status < 200:
            continue
        if fields.get("transfer-encoding", "").lower() == "chunked":
            body, data = _unchunked(data)
        else:
            size = int(fields.get("content-length", len(data)))
            body, data = data[:size], data[size:]
        found.append((status, body))
    return found
