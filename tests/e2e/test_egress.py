#!/usr/bin/python3
"""What is not git: every entry leads to the hosts that the policy lists, and to nothing else."""

import shlex

import harness
import web
from harness import E2E, approval, in_both_flavours  # noqa: F401

POLICY = '''\
version = 1

[[allow]]
host = "web.test"
methods = ["GET", "HEAD", "POST"]
paths = ["/hello", "/digest", "/admin/**"]
max_body = "1KiB"

[[deny]]
host = "web.test"
paths = ["/admin/keys"]

[[allow]]
host = "plain.test"
ports = [80]
methods = ["GET", "HEAD", "POST"]

[[allow]]
host = "pinned.test"
tls = "splice"

[[tcp]]
host = "echo.test"
port = 7777

[[tcp]]
host = "ssh.test"
port = 22
'''
ECHO = r'''
import socket, sys
host, port, by_proxy = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
with socket.create_connection(("198.18.0.1", 3128) if by_proxy else (host, port), 60) as stream:
    if by_proxy:
        stream.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += stream.recv(1)
        assert head.startswith(b"HTTP/1.1 200 "), head
    stream.sendall(b"some bytes")
    stream.shutdown(socket.SHUT_WR)
    answer = b""
    while piece := stream.recv(65536):
        answer += piece
print(answer.decode())
'''
# D21, D22: what is spoken with a client that would rather speak HTTP/2, and with one that names another host there; and what
# becomes of one that speaks nothing else.
SPEAK = r'''
import socket, ssl, sys
host, entry = sys.argv[1:]

def connect(*protocols):
    stream = socket.create_connection(("198.18.0.1", 3128) if entry == "proxy" else (host, 443), 60)
    if entry == "proxy":
        stream.sendall(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
        while not stream.recv(1024).endswith(b"\r\n\r\n"):
            pass
    context = ssl.create_default_context()
    context.set_alpn_protocols(protocols)
    return context.wrap_socket(stream, server_hostname=host)

stream = connect("h2", "http/1.1")
print(stream.selected_alpn_protocol())
stream.sendall(b"GET /hello HTTP/1.1\r\nHost: pinned.test\r\n\r\n")
print(stream.makefile("r").readline().strip())
try:
    connect("h2")
except ssl.SSLError as error:
    print("no application protocol" in str(error))
'''
CURL = ["curl", "-sS", "--fail-with-body"]
# How curl gets there; the environment names the proxy.
DIRECT, PROXY = ["--noproxy", "*"], []
WAYS = {"tls": DIRECT, "proxy": PROXY}


class EgressCase(E2E):
    """Local upstreams under names of their own. `upstreams`: {name: what answers there}."""

    def setUp(self):
        super().setUp()
        config, self.upstreams = "", self.make_upstreams(self.forge.ca)
        for name, upstream in self.upstreams.items():
            self.addCleanup(upstream.stop)
            self.stage.traffic_sources.append(upstream.traffic)
            config += f'\n[host."{name}"]\nca = "{self.stage.ca}"\naddress = "{upstream.address}"\n'
        self.stage.write_config(self.forge.address, config)
        self.stage.write_policy(self.policy)
        # For clients of what is spliced: they see the upstream's own certificate.
        self.stage.put("upstream-ca.pem", self.stage.ca.read_text(), 0o644)

    def assert_allowed(self, command, options=(), requests=1, **expected):
        """Runs it: it succeeds, nothing is refused, and every request has these in its two audit lines."""
        outcome = self.assert_ok(self.run_inside(command, options))
        self.assertEqual(outcome.events("refused"), [], str(outcome))
        begun, ended = outcome.events("begin"), outcome.events("end")
        self.assertEqual((len(begun), len(ended)), (requests, requests), str(outcome))
        for begin in begun:
            end = next(line for line in ended if line["request"] == begin["request"])
            line = {**end, **begin, "reason": end["reason"], "rule": begin["rule"].rsplit("/", 1)[-1]}
            self.assertEqual({key: line[key] for key in expected}, expected, str(outcome))
            self.assertEqual((line["reason"], line["credential"]), ("none", ""), str(outcome))
        return outcome

    def make_upstreams(self, ca):
        raise NotImplementedError


@in_both_flavours
class Egress(EgressCase):
    policy = POLICY

    def make_upstreams(self, ca):
        return {"web.test": web.Web(ca.leaf("web.test")), "plain.test": web.Web(),
                "pinned.test": web.Web(ca.leaf("pinned.test")), "echo.test": web.Raw(),
                "ssh.test": web.Raw(b"SSH-2.0-nobody\r\n")}

    def test_requests_over_tls(self):
        for entry, way in WAYS.items():
            with self.subTest(entry):
                line = {"entry": entry, "scheme": "https", "host": "web.test", "port": 443, "rule": "sallyport.toml:3"}
                outcome = self.assert_allowed([*CURL, *way, "https://web.test/hello?q=1"], method="GET", status=200,
                                              path="/hello?q=1", **line)
                self.assertEqual(outcome.stdout, "hello\n")
                outcome = self.assert_allowed([*CURL, *way, "-d", "a body", "https://web.test/digest"], method="POST",
                                              path="/digest", status=200, bytes_in=6, **line)
                self.assertRegex(outcome.stdout, "^[0-9a-f]{64} 6\n$")
        for request in self.upstreams["web.test"].requests:
            self.assertIn(("host", "web.test"), request.headers)
            self.assertFalse([name for name, _ in request.headers if name.startswith(("proxy-", "via", "x-forwarded-"))])

    def test_requests_in_the_clear(self):
        for entry, way in {"http": DIRECT, "proxy": PROXY}.items():
            with self.subTest(entry):
                line = {"entry": entry, "scheme": "http", "host": "plain.test", "port": 80, "rule": "sallyport.toml:13"}
                self.assertEqual("hello\n", self.assert_allowed([*CURL, *way, "http://plain.test/hello"], method="GET",
                                                                path="/hello", status=200, **line).stdout)
                self.assert_allowed([*CURL, *way, "-d", "a body", "http://plain.test/digest"], method="POST",
                                    bytes_in=6, **line)
        self.assertEqual({request.target for request in self.upstreams["plain.test"].requests}, {"/hello", "/digest"})

    def test_a_spliced_host_shows_its_own_certificate(self):
        for entry, way in WAYS.items():
            with self.subTest(entry):
                curl = [*CURL, *way, "https://pinned.test/hello"]
                outcome = self.assert_allowed([*curl, "--cacert", "upstream-ca.pem"], entry=entry, scheme="https",
                                              host="pinned.test", port=443, rule="sallyport.toml:18", method="")
                self.assertEqual(outcome.stdout, "hello\n")
                outcome = self.assert_failed(self.run_inside(curl))
                self.assert_shows(outcome, "certificate")
                self.assertEqual(outcome.events("refused"), [], str(outcome))

    def test_what_is_no_http_at_all(self):
        self.stage.put("echo.py", ECHO)
        for entry, way in (("tcp", []), ("proxy", ["by proxy"])):
            with self.subTest(entry):
                outcome = self.assert_allowed(["/usr/bin/python3", "echo.py", "echo.test", "7777", *way], entry=entry,
                                              scheme="tcp", host="echo.test", port=7777, rule="sallyport.toml:22", method="",
                                              bytes_in=10, bytes_out=10)
                self.assertEqual(outcome.stdout, "some bytes\n")
        self.assertEqual(self.upstreams["echo.test"].connections, 2)

    # ---- refusals ----

    def test_a_path_or_a_method_that_no_rule_has(self):
        asked = {
            ("path_not_allowed", "/secret"): "The policy does not allow this path.",
            ("method_not_granted", "/hello", "-X", "PUT", "-d", "x"): "The policy does not allow this method for this path.",
            ("denied_by_rule", "/admin/keys"): "A deny rule of the policy forbids this.",
            ("denied_by_rule", "/ADMIN/%6beys"): "A deny rule of the policy forbids this.",
        }
        for entry, way in WAYS.items():
            for (reason, path, *options), sentence in asked.items():
                with self.subTest(entry=entry, path=path, options=options):
                    outcome = self.assert_refused(reason, [*CURL, *way, *options, f"https://web.test{path}"],
                                                  shows=[sentence, "web.test", "returned error: 403"])
                    line = outcome.events("refused")[0]
                    self.assertEqual((line["entry"], line["host"], line["port"]), (entry, "web.test", 443))
                    self.assertIn("request " + line["request"], outcome.stdout)

    def test_a_body_that_is_too_large(self):
        self.stage.put("large", "x" * 2000)
        for entry, way in WAYS.items():
            with self.subTest(entry):
                self.assert_refused("too_large", [*CURL, *way, "--data-binary", "@large", "https://web.test/digest"],
                                    shows=["The request's body is too large.", "413"])

    def test_a_host_that_no_rule_has(self):
        curl = [*CURL, *DIRECT]
        self.assert_refused("host_not_allowed", [*curl, "https://other.test/"], lines=None,
                            shows=["Could not resolve host: other.test"])
        # Who knows an address of ours, and names another host there.
        self.assert_refused("host_not_allowed", [*curl, "--connect-to", "other.test:443:web.test:443",
                                                 "https://other.test/"], shows=["unrecognized name"])
        # At an address that is nobody's there is nothing that the name contradicts: a client that trusts us is told.
        outcome = self.assert_refused("host_not_allowed", [*curl, "--connect-to", "other.test:443:192.0.2.7:443",
                                                           "https://other.test/secret"],
                                      shows=["The policy does not allow this host.", "other.test", 'paths = ["/secret"]',
                                             "returned error: 403"])
        line = outcome.events("refused")[0]
        self.assertEqual((line["entry"], line["host"]), ("tls", "other.test"))
        self.assertIn("request " + line["request"], outcome.stdout)
        # Whoever trusts another authority alone leaves the same line.
        self.assert_refused("host_not_allowed", [*curl, "--connect-to", "other.test:443:192.0.2.7:443", "--cacert",
                                                 "upstream-ca.pem", "https://other.test/"])
        self.assert_refused("host_mismatch", [*curl, "-H", "Host: other.test", "https://web.test/hello"],
                            shows=["returned error: 421", "The request's Host is not the connection's host."])
        outcome = self.assert_refused("host_not_allowed", [*CURL, "https://other.test/"],
                                      shows=["CONNECT tunnel failed, response 403"])
        self.assertEqual([(line["entry"], line["host"], line["port"], line["method"]) for line in outcome.events("refused")],
                         [("proxy", "other.test", 443, "CONNECT")])
        outcome = self.assert_refused("host_not_allowed", [*CURL, "http://other.test/"],
                                      shows=["The policy does not allow this host.", "other.test", "returned error: 403"])
        self.assertEqual(outcome.events("refused")[0]["entry"], "proxy")

    def run_until_refused(self, command, name):
        """As assert_refused: the client ends with its alert, and the sandbox not before the gate has read it."""
        before, lines = self.stage.traffic(), len(self.stage.audit())
        running = self.stage.start(f"code=0; {shlex.join(command)} || code=$?; checkpoint {name}; exit $code")
        running.wait_for(lambda: any(line["kind"] == "refused" for line in self.stage.audit()[lines:]), "the refusal")
        running.pass_checkpoint(name)
        outcome = self.assert_failed(running.finish())
        self.assert_all_refused(outcome, "tls_pinned", 1, before)
        self.assert_shows(outcome, "certificate")
        return outcome

    def test_a_client_that_does_not_accept_the_gateways_certificate(self):
        # Trusting the upstream's own authority alone, as one that pins it.
        curl = [*CURL, "--cacert", "upstream-ca.pem", "https://web.test/hello"]
        for entry, way in WAYS.items():
            for version in ("--tls-max", "1.2"), ("--tlsv1.3",):
                with self.subTest(entry=entry, version=version):
                    outcome = self.run_until_refused([*curl, *way, *version], f"{entry}-{version[-1]}")
                    line = outcome.events("refused")[0]
                    self.assertEqual((line["entry"], line["host"], line["port"]), (entry, "web.test", 443))
                    self.assertIn("unknown ca", line["detail"])
        # Nobody takes that for a reason not to look inside.
        self.assertEqual(self.upstreams["web.test"].connections, 0)
        self.assert_allowed([*CURL, *DIRECT, "https://web.test/hello"], method="GET")

    def test_a_host_that_is_inspected_speaks_http_1_1_and_stays_with_its_name(self):
        self.stage.put("speak.py", SPEAK)
        for entry in WAYS:
            with self.subTest(entry):
                before = self.stage.traffic()
                outcome = self.assert_ok(self.run_inside(["/usr/bin/python3", "speak.py", "web.test", entry]))
                self.assert_all_refused(outcome, ["host_mismatch", "bad_request"], 2, before)
                self.assertEqual(outcome.stdout, "http/1.1\nHTTP/1.1 421 Misdirected Request\nTrue\n")

    def test_a_port_that_no_rule_has(self):
        outcome = self.assert_refused("port_not_allowed", [*CURL, *DIRECT, "https://web.test:8443/hello"])
        # It is reset as soon as it is made: before or after curl has noticed that it was.
        self.assertRegex(outcome.stderr, "Connection reset by peer|Failed to connect to web.test port 8443")
        self.assert_refused("port_not_allowed", [*CURL, "https://web.test:8443/hello"],
                            shows=["CONNECT tunnel failed, response 403"])
        for way in (DIRECT, PROXY):
            self.assert_refused("plain_http", [*CURL, *way, "http://web.test/hello"],
                                shows=["This host is reached over https:// only.", "Use https://web.test/ instead."])
        self.stage.put("echo.py", ECHO)
        self.assert_refused("port_not_allowed", ["/usr/bin/python3", "echo.py", "echo.test", "7778"],
                            shows=["Connection re"])

    def test_an_address_in_place_of_a_name(self):
        self.assert_refused("ip_literal", [*CURL, "https://192.0.2.1/"], shows=["CONNECT tunnel failed, response 403"])
        self.assert_refused("ip_literal", [*CURL, "http://192.0.2.1/"], shows=["Addresses are not allowed"])
        self.assert_refused("ip_literal", [*CURL, *DIRECT, "http://192.0.2.1/"], shows=["Addresses are not allowed"])
        self.assert_refused("no_sni", [*CURL, *DIRECT, "https://192.0.2.1/"])


if __name__ == "__main__":
    harness.main()
