#!/usr/bin/python3
"""A small real forge for tests and the quickstart: git http-backend behind Debian's nginx and fcgiwrap.

It speaks TLS with a leaf of a private CA, demands one Basic credential on every request, and streams both ways. All
that it needs or writes lies in one folder; its processes are started by hand, never as system services, and die with
the process that started them. Started as root, they run as an unprivileged uid.

    forge = Forge(token="secret")
    with forge:
        forge.git_direct("clone", forge.url("acme/widget"), "somewhere")
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pki import PrivateCa  # noqa: E402

HOST = "forge.test"
START_TIMEOUT_SECONDS = 60
STOP_TIMEOUT_SECONDS = 5
# The wrapper serves one request a process; a clone in the middle holds one.
WRAPPER_PROCESSES = 12
# nobody: what the forge's processes run as when root starts it.
DEFAULT_UID = 65534

REPO_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = true
\tcompression = 0
[http]
\treceivepack = true
[uploadpack]
\tallowFilter = true
\tallowAnySHA1InWant = true
[receive]
\tautogc = false
\tunpackLimit = 1
[gc]
\tauto = 0
"""

NGINX_CONFIG = """\
daemon off;
master_process off;
worker_processes 1;
pid {root}/nginx.pid;
error_log {root}/nginx-error.log info;
events {{ worker_connections 1024; }}
http {{
  client_body_temp_path {root}/tmp/body;
  proxy_temp_path {root}/tmp/proxy;
  fastcgi_temp_path {root}/tmp/fastcgi;
  uwsgi_temp_path {root}/tmp/uwsgi;
  scgi_temp_path {root}/tmp/scgi;
  log_format access escape=json '{{"method":"$request_method","uri":"$request_uri","host":"$http_host",'
    '"status":$status,"authorized":"$authorized","authorization_sent":"$authorization_sent",'
    '"git_protocol":"$http_git_protocol","transfer_encoding":"$http_transfer_encoding",'
    '"content_encoding":"$http_content_encoding","content_length":"$http_content_length",'
    '"content_type":"$content_type","cookie":"$http_cookie","user_agent":"$http_user_agent",'
    '"expect":"$http_expect","connection":$connection,"bytes_in":$request_length,"bytes_out":$bytes_sent}}';
  access_log {root}/access.log access;
  map_hash_bucket_size 512;
  map $http_authorization $authorized {{
    volatile;
    default "no";
{accepted}
  }}
  map $http_authorization $authorization_sent {{ volatile; default "yes"; "" "no"; }}
  server_tokens off;
  keepalive_timeout 300s;
  client_max_body_size 0;
  client_header_timeout 300s;
  client_body_timeout 3600s;
  send_timeout 3600s;
  gzip off;
  server {{
    listen unix:{root}/status.sock;
    access_log off;
    location / {{ stub_status; }}
  }}
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {cert};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3;
    add_header WWW-Authenticate $challenge always;
    set $challenge "";
    location / {{
      if ($authorized = "no") {{ set $challenge 'Basic realm="forge"'; return 401; }}
      fastcgi_pass unix:{root}/fcgiwrap.sock;
      fastcgi_param SCRIPT_FILENAME {backend};
      include {root}/fastcgi.conf;
    }}
    location ^~ /acme/slow {{
      if ($authorized = "no") {{ set $challenge 'Basic realm="forge"'; return 401; }}
      fastcgi_pass unix:{root}/fcgiwrap.sock;
      fastcgi_param SCRIPT_FILENAME {root}/gated_cgi.py;
      include {root}/fastcgi.conf;
    }}
  }}
}}
"""

FASTCGI_CONFIG = """\
fastcgi_buffering off;
fastcgi_request_buffering off;
fastcgi_max_temp_file_size 0;
fastcgi_read_timeout 3600s;
fastcgi_send_timeout 3600s;
fastcgi_param GIT_PROJECT_ROOT {root}/repos;
fastcgi_param GIT_HTTP_EXPORT_ALL 1;
fastcgi_param GIT_PROTOCOL $http_git_protocol;
fastcgi_param HTTP_GIT_PROTOCOL $http_git_protocol;
fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
fastcgi_param FORGE_RELEASE {root}/release;
fastcgi_param PATH_INFO $uri;
fastcgi_param QUERY_STRING $query_string;
fastcgi_param REQUEST_METHOD $request_method;
fastcgi_param CONTENT_TYPE $content_type;
fastcgi_param CONTENT_LENGTH $content_length;
fastcgi_param SERVER_PROTOCOL $server_protocol;
fastcgi_param REMOTE_USER forge;
fastcgi_param REMOTE_ADDR $remote_addr;
"""


class AccessLine(typing.NamedTuple):
    """One request that reached the forge, from its access log."""
    method: str
    uri: str
    host: str
    status: int
    authorized: bool  # exactly the credential that the forge demands
    authorization_sent: bool
    git_protocol: str
    transfer_encoding: str
    content_encoding: str
    content_length: str
    content_type: str
    cookie: str
    user_agent: str
    expect: str
    connection: int  # nginx's serial number of the connection
    bytes_in: int
    bytes_out: int


class Traffic(typing.NamedTuple):
    """What has reached the forge so far. Two equal values mean that nothing was sent in between."""
    requests: int
    connections: int  # accepted by the listener, TLS handshake or not


def clean_git_environment(home):
    """No configuration of the machine or of its user has a say in a test."""
    keep = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR")}
    return keep | {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
                   "GIT_AUTHOR_NAME": "Forge", "GIT_AUTHOR_EMAIL": "forge@forge.test",
                   "GIT_COMMITTER_NAME": "Forge", "GIT_COMMITTER_EMAIL": "forge@forge.test",
                   "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}


class Forge:
    def __init__(self, token, users=("x-access-token",), uid=None, parent=None):
        """`parent`: the folder in which the forge makes its own; `uid`: who runs it (root only)."""
        self.token = token
        self.users = users
        self.uid = (DEFAULT_UID if uid is None else uid) if os.getuid() == 0 else os.getuid()
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="forge-", dir=parent))
        self.repos = self.root / "repos"
        self.port = None
        self._processes = []
        self._status_queries = 0
        try:
            self._prepare()
        except BaseException:
            shutil.rmtree(self.root, ignore_errors=True)
            raise

    # --- what a test asks of it ---

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def ca_pem(self):
        return self.ca.pem

    @staticmethod
    def url(repo):
        """The address under which a sandbox reaches the repository."""
        return f"https://{HOST}/{repo}"

    def log(self):
        """What was asked and is answered. nginx writes a line when a request is over, which the client may know sooner."""
        if not self.port:
            return []
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            _, begun, in_work = self._status()
            lines = (self.root / "access.log").read_text().splitlines()
            if len(lines) >= begun - in_work or time.monotonic() > deadline:
                break
        yes_no = {"yes": True, "no": False}
        rows = []
        for line in lines:
            row = json.loads(line)
            row["authorized"] = row["authorized"] == "yes"
            row["authorization_sent"] = yes_no[row["authorization_sent"]]
            rows.append(AccessLine(**row))
        return rows

    def traffic(self):
        accepted, begun, _ = self._status()
        return Traffic(begun, accepted)

    def _status(self):
        """nginx's own counters, without these questions: connections, requests begun, requests in work."""
        with socket.socket(socket.AF_UNIX) as status:
            status.connect(str(self.root / "status.sock"))
            self._status_queries += 1
            status.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b""
            while piece := status.recv(4096):
                answer += piece
        lines = answer.split(b"\r\n\r\n", 1)[1].splitlines()
        accepted, _, begun = map(int, lines[2].split())
        reading, writing = (int(lines[3].split()[i]) for i in (1, 3))
        # The start's own probe connected and asked nothing.
        return accepted - self._status_queries, begun - (self._status_queries - 1), reading + writing - 1

    def repo_git(self, repo, *args, input=None):
        """git run on the forge's own side, in the bare repository; its standard output."""
        done = subprocess.run(["git", "-C", str(self.path(repo)), *args], env=clean_git_environment(self.root),
                              capture_output=True, input=input, check=False, **self._as_owner())
        if done.returncode != 0:
            raise RuntimeError(f"git {args[0]} in {repo}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="replace").strip()

    def refs(self, repo):
        lines = self.repo_git(repo, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in lines)

    def path(self, repo):
        return self.repos / f"{repo}.git"

    def direct_options(self, user=None, token=None):
        """Options with which stock git reaches the forge without any gateway."""
        pair = f"{user or self.users[0]}:{self.token if token is None else token}".encode()
        return ["-c", f"http.curloptResolve={HOST}:{self.port}:127.0.0.1", "-c", f"http.sslCAInfo={self.ca_pem}",
                "-c", f"http.extraHeader=Authorization: Basic {base64.b64encode(pair).decode()}"]

    def direct_url(self, repo):
        return f"https://{HOST}:{self.port}/{repo}"

    def open_gate(self):
        """Lets what acme/slow holds back go on; for good, until close_gate()."""
        (self.root / "release").touch()

    def close_gate(self):
        (self.root / "release").unlink(missing_ok=True)

    def hold(self, request, place):
        """Instead of the middle of whatever comes: only the n-th request to acme/slow from now on is held back,
        and at this place: `start`, before git's own server is asked; `answer`, before the first byte of its
        answer; `middle`, behind some bytes of either body; `end`, behind the last byte, before the answer ends.
        """
        for mark in ("held", *(f"request-{n}" for n in range(1, 20))):
            (self.root / mark).unlink(missing_ok=True)
        (self.root / "hold").write_text(f"{request} {place}")
        self._give(self.root / "hold")
        self.close_gate()

    def wait_idle(self):
        """Until no request is in work any more, by nobody: git's server goes on when its client gave up."""
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        def busy():
            return self._status()[2] > 0 or any(
                pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text() for pid in self.pids())

        while busy():
            if time.monotonic() > deadline:
                raise RuntimeError("the forge does not come to rest")
            time.sleep(0.01)

    def replace_repo(self, repo, copy):
        """Puts a copy of a repository in its place."""
        shutil.rmtree(self.path(repo))
        shutil.copytree(copy, self.path(repo))
        self._give(self.path(repo))

    def holds(self):
        return (self.root / "held").exists()

    # --- repositories ---

    def add_repo(self, repo):
        path = self.path(repo)
        path.mkdir(parents=True)
        for folder in ("objects/pack", "refs/heads", "refs/tags", "info"):
            (path / folder).mkdir(parents=True)
        (path / "HEAD").write_text("ref: refs/heads/main\n")
        (path / "config").write_text(REPO_CONFIG)
        self._give(path.parent)
        return path

    def import_stream(self, repo, stream):
        self.repo_git(repo, "fast-import", "--quiet", "--force", input=stream)

    def add_widget(self, repo="acme/widget", blob_bytes=300 * 1024):
        """Three commits, a tag, and a blob that no compression makes smaller."""
        self.add_repo(repo)
        blob = os.urandom(blob_bytes)
        self.import_stream(repo, _commit("main", "first", {"README": b"A widget.\n", "src/main.c": b"int main;\n"})
                           + _commit("main", "second", {"data.bin": blob})
                           + _commit("main", "third", {"README": b"A better widget.\n"})
                           + _commit("next", "aside", {"next.txt": b"next\n"}, base="main")
                           + b"tag v1.0\nfrom refs/heads/main\ntagger F <f@forge.test> 1700000000 +0000\n"
                             b"data 4\nv1.0\n")

    def add_refs(self, count=30000, repo="acme/refs"):
        """As many tags, each of its own object, in one packed-refs file."""
        self.add_repo(repo)
        marks = self.root / "marks"
        # fast-import makes tags of commits only, so the tags of blobs are written as packed-refs by hand.
        blobs = b"".join(b"blob\nmark :%d\ndata %d\n%d\n\n" % (i + 1, len(b"%d\n" % i), i) for i in range(count))
        self.repo_git(repo, "fast-import", "--quiet", f"--export-marks={marks}",
                      input=_commit("main", "first", {"README": b"Many refs.\n"}) + blobs)
        main = self.repo_git(repo, "rev-parse", "refs/heads/main")
        rows = [(f"refs/tags/t{int(mark[1:]) - 1:06d}", oid)
                for mark, oid in (line.split() for line in marks.read_text().splitlines())]
        packed = ["# pack-refs with: peeled fully-peeled sorted ", f"{main} refs/heads/main"]
        packed += [f"{oid} {name}" for name, oid in sorted(rows)]
        (self.path(repo) / "packed-refs").write_text("\n".join(packed) + "\n")
        (self.path(repo) / "refs/heads/main").unlink()
        marks.unlink()
        self._give(self.path(repo))

    def add_big(self, mebibytes, repo="acme/big"):
        """A pack of that many MiB of random blobs of 1 MiB, stored uncompressed."""
        self.add_repo(repo)
        process = subprocess.Popen(["git", "-C", str(self.path(repo)), "-c", "core.bigFileThreshold=512k",
                                    "-c", "pack.compression=0", "fast-import", "--quiet"],
                                   env=clean_git_environment(self.root), stdin=subprocess.PIPE, **self._as_owner())
        with open("/dev/urandom", "rb", buffering=0) as random, process.stdin as stream:
            stream.write(b"commit refs/heads/main\ncommitter F <f@forge.test> 1700000000 +0000\ndata 3\nbig\n")
            for i in range(mebibytes):
                stream.write(b"M 644 inline blob-%05d\ndata %d\n" % (i, 1 << 20))
                stream.write(_read_exactly(random, 1 << 20))
                stream.write(b"\n")
        if process.wait() != 0:
            raise RuntimeError("fast-import of the big repository failed")

    # --- life ---

    def start(self):
        for _ in range(20):
            self.port = _free_port()
            if self._start_once():
                return self
        raise RuntimeError(f"the forge does not start: {(self.root / 'nginx-error.log').read_text()}")

    def stop(self):
        """Ends everything and removes the folder; more than once is fine."""
        if self.root.exists():
            self.open_gate()
        self._end_processes()
        shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def _prepare(self):
        # Others than the owner may look up the CA's certificate in here.
        self.root.chmod(0o711)
        self.ca = PrivateCa(self.root / "ca")
        self.cert, self.key = self.ca.leaf(HOST)
        self.repos.mkdir()
        for folder in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
            (self.root / "tmp" / folder).mkdir(parents=True)
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gated_cgi.py"), self.root)
        (self.root / "gated_cgi.py").chmod(0o755)
        self._give(self.root)
        self.add_widget("acme/widget")
        self.add_widget("acme/other", blob_bytes=1024)
        self.add_repo("acme/empty")

    def _start_once(self):
        accepted = "\n".join(f'    "~^{_basic(user, self.token)}$" "yes";' for user in self.users)
        for name, text in (("nginx.conf", NGINX_CONFIG), ("fastcgi.conf", FASTCGI_CONFIG)):
            file = self.root / name
            file.write_text(text.format(root=self.root, port=self.port, cert=self.cert, key=self.key,
                                        accepted=accepted, backend="/usr/lib/git-core/git-http-backend"))
            file.chmod(0o600)
            self._give(file)
        (self.root / "status.sock").unlink(missing_ok=True)
        nginx = self._spawn(["nginx", "-p", str(self.root), "-e", f"{self.root}/nginx-error.log",
                             "-c", f"{self.root}/nginx.conf"])
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline and nginx.poll() is None:
            # nginx binds its port and status.sock in one step, so that the second stands for both.
            if _accepts(self.root / "status.sock"):
                self._status_queries = 1
                self._start_wrappers()
                self._wait_until_all_run()
                return True
            time.sleep(0.01)
        self._end_processes()
        return False

    def _start_wrappers(self):
        # Each a process of its own on one shared socket: those that fcgiwrap forks by itself would outlive it.
        with socket.socket(socket.AF_UNIX) as shared:
            path = self.root / "fcgiwrap.sock"
            path.unlink(missing_ok=True)
            shared.bind(str(path))
            self._give(path)
            shared.listen(socket.SOMAXCONN)
            for _ in range(WRAPPER_PROCESSES):
                self._spawn(["fcgiwrap"], stdin=shared)

    def _wait_until_all_run(self):
        # What still is setpriv has no death signal yet, and would outlive a starter that dies now.
        names = ("nginx\n", "fcgiwrap\n")
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while any(pathlib.Path(f"/proc/{p.pid}/comm").read_text() not in names for p in self._processes):
            if time.monotonic() > deadline:
                raise RuntimeError("the forge's processes do not start")
            time.sleep(0.002)

    def _spawn(self, argv, stdin=subprocess.DEVNULL):
        # The death signal is set after the uid, which would clear it; so the forge dies with its starter.
        prefix = ["setpriv", "--pdeathsig", "KILL"]
        if os.getuid() == 0:
            prefix += ["--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups"]
        with open(self.root / f"{argv[0]}.out", "ab") as out:
            process = subprocess.Popen([*prefix, *argv], stdin=stdin, stdout=out, stderr=out,
                                       env=clean_git_environment(self.root), cwd=self.root, start_new_session=True)
        self._processes.append(process)
        return process

    def _end_processes(self):
        for process in self._processes:
            # The whole session: a wrapper and the git processes that it runs.
            _signal_group(process.pid, signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def pids(self):
        """The forge's own processes, so that a search for leftovers can tell them apart."""
        return [p.pid for p in self._processes]

    def _as_owner(self):
        return {"user": self.uid, "group": self.uid, "extra_groups": []} if os.getuid() == 0 else {}

    def _give(self, path):
        if os.getuid() != 0:
            return
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                os.lchown(os.path.join(folder, name), self.uid, self.uid)
        os.lchown(path, self.uid, self.uid)


def _basic(user, token):
    text = base64.b64encode(f"{user}:{token}".encode()).decode()
    return "Basic " + text.replace("+", r"\+")


def _commit(branch, message, files, base=None):
    head = f"commit refs/heads/{branch}\ncommitter F <f@forge.test> 1700000000 +0000\ndata {len(message)}\n{message}\n"
    body = head.encode() + (f"from refs/heads/{base}\n".encode() if base else b"")
    for name, data in files.items():
        body += b"M 644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data)
    return body + b"\n"


def _read_exactly(file, size):
    data = b""
    while len(data) < size:
        data += file.read(size - len(data))
    return data


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _accepts(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _signal_group(pid, number):
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        pass


def main():
    parser = argparse.ArgumentParser(description="Runs the forge until standard input ends; prints its address, its "
                                                 "CA certificate and its folder, one a line.")
    parser.add_argument("--token-file", required=True)
    parser.add_argument("--user", action="append", help="accepted Basic user (x-access-token when none is given)")
    parser.add_argument("--uid", type=int)
    parser.add_argument("--parent", help="the folder in which the forge makes its own")
    parser.add_argument("--big", type=int, metavar="MIB", help="also acme/big of that size")
    args = parser.parse_args()
    token = pathlib.Path(args.token_file).read_text().strip()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Forge(token, users=tuple(args.user or ["x-access-token"]), uid=args.uid, parent=args.parent) as forge:
        if args.big:
            forge.add_big(args.big)
        print(forge.address, forge.ca_pem, forge.root, sep="\n", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
