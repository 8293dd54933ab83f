#!/usr/bin/python3
"""What the policy refuses, as git and other clients see it. Nothing of it may reach the forge in any way."""

import re

import harness
from harness import AUTHOR, E2E, git_rule, in_both_flavours, policy

# What a client that is not git sends: one request, spelled exactly. Prints status line, headers and body.
ASK = r'''#!/usr/bin/python3
import socket, ssl, sys
name, port, sni, data = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
stream = socket.create_connection((name, port), 30)
if sni != "plain":
    stream = ssl.create_default_context().wrap_socket(stream, server_hostname=sni)
stream.sendall(data.encode("latin-1").decode("unicode_escape").encode("latin-1"))
answer = b""
try:
    while piece := stream.recv(65536):
        answer += piece
except ConnectionResetError:
    pass
sys.stdout.write(answer.decode("latin-1"))
sys.exit(0 if answer else 3)
'''

FETCH = policy(git_rule("forge.test/acme/widget", "fetch"))


def head(first, *headers, host="forge.test", body=""):
    lines = [first + " HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
    return "\\r\\n".join(lines) + "\\r\\n\\r\\n" + body


def pkt(text, raw_length=None):
    return f"{(raw_length or len(text)) + 4:04x}{text}"


@in_both_flavours
class GitRefusals(E2E):
    def setUp(self):
        super().setUp()
        self.stage.write_policy(FETCH)

    def test_the_dumb_protocol(self):
        self.assert_refused("dumb_http", ["git", "clone", "https://forge.test/acme/widget"],
                            ("--env", "GIT_SMART_HTTP=0"),
                            shows=("remote: sallyport: Git's dumb HTTP protocol is not allowed.",))

    def test_a_repository_that_is_not_granted(self):
        outcome = self.assert_refused(
            "repo_not_granted", ["git", "clone", "https://forge.test/acme/other"],
            shows=["remote: ", "does not grant this repository", "The requested URL returned error: 403"])
        line = outcome.events("refused")[0]
        self.assertEqual((line["host"], line["method"]), ("forge.test", "GET"))
        self.assertIn("acme/other", line["path"])

    def test_reads_the_same_whether_the_repository_exists_or_not(self):
        texts = [self.assert_refused("repo_not_granted", ["git", "clone", f"https://forge.test/acme/{name}"],
                                     ["--quiet"]).text.replace(name, "NAME") for name in ("other", "ghost")]
        self.assertEqual(*(re.sub("request [0-9a-f]+", "request ID", text) for text in texts))

    def test_a_push_on_a_fetch_grant(self):
        self.assert_ok(self.run_inside("git clone -q https://forge.test/acme/widget"))
        before = self.forge.refs("acme/widget")
        outcome = self.assert_refused(
            "push_not_granted", "cd widget; git commit -q --allow-empty -m x; git push origin HEAD:agent", AUTHOR,
            shows=["remote: ", "grants fetching from this repository, not pushing"])
        self.assertNotIn("Everything up-to-date", outcome.text)
        self.assertEqual(self.forge.refs("acme/widget"), before)
        self.assertIn("sallyport.toml:3", outcome.events("refused")[0]["rule"])

    def test_another_host(self):
        for url in ("https://github.com/acme/widget", "https://forge.test.evil.test/acme/widget",
                    "https://xforge.test/acme/widget", "https://localhost.localdomain/acme/widget"):
            with self.subTest(url):
                self.assert_refused("host_not_allowed", ["git", "clone", url], lines=None,
                                    shows=["Could not resolve host"])

    def test_another_host_at_an_address_that_is_known(self):
        self.assert_refused("host_not_allowed", ["git", "-c", "http.curloptResolve=github.com:443:192.0.2.7", "clone",
                                                 "https://github.com/acme/widget"],
                            shows=["remote: sallyport: The policy does not allow this host.",
                                   'remote: repo = "github.com/acme/widget"'])

    def test_an_address(self):
        for address in ("192.0.2.1", "[2001:db8::1]"):
            with self.subTest(address):
                self.assert_refused({"ip_literal", "no_sni"}, ["git", "clone", f"https://{address}/acme/widget"])

    def test_plain_http(self):
        self.assert_refused("plain_http", ["git", "clone", "http://forge.test/acme/widget"],
                            shows=["remote: ", "over https:// only"])

    def test_another_port(self):
        self.assert_refused("port_not_allowed", ["git", "clone", "https://forge.test:8443/acme/widget"])
        # Without what stands in for git:// inside (test_workspace_git.py).
        self.assert_refused("port_not_allowed", ["env", "-u", "GIT_PROXY_COMMAND", "git", "clone",
                                                 "git://forge.test:9419/acme/widget"])

    def test_the_letter_case_of_a_generic_host_matters(self):
        self.assert_refused("repo_not_granted", ["git", "clone", "https://forge.test/Acme/Widget"])

    def test_nothing_is_reachable_without_a_policy_and_it_says_so(self):
        self.stage.policy.unlink()
        outcome = self.assert_refused({"policy_empty", "host_not_allowed"},
                                      ["git", "clone", "https://forge.test/acme/widget"], lines=None)
        self.assertRegex(outcome.text.lower(), "nothing is (reachable|allowed)|allows nothing")


class RawRefusals(E2E):
    """The same gate for requests that git would not make."""

    def setUp(self):
        super().setUp()
        self.stage.write_policy(FETCH)
        self.stage.put("ask.py", ASK)

    def ask(self, reason, data, status, *shows, name="forge.test", port=443, sni="forge.test"):
        return self.assert_refused(reason, ["/usr/bin/python3", "ask.py", name, str(port), sni, data],
                                   shows=[f"HTTP/1.1 {status} ", *shows], succeeds=True)

    def test_a_push_past_the_discovery_gets_a_report_for_every_ref(self):
        line = f"{'0' * 40} {'1' * 40} refs/heads/%s"
        caps = "\\x00 report-status side-band-64k"
        first = line % "a"
        body = pkt(first + caps, len(first) + len(caps) - 3) + pkt(line % "b") + "0000"
        size = len(body) - 3
        outcome = self.ask("push_not_granted",
                           head("POST /acme/widget/git-receive-pack", "Content-Type: application/x-git-receive-pack-request",
                                f"Content-Length: {size}", body=body), 200, "unpack ok", "ng refs/heads/a ",
                           "ng refs/heads/b ", "application/x-git-receive-pack-result")
        self.assertIn("not pushing", outcome.text)

    def test_a_fetch_past_the_discovery_gets_an_error_packet(self):
        body = pkt("command=ls-refs\\n", 16) + "0000"
        self.ask("repo_not_granted",
                 head("POST /acme/other/git-upload-pack", "Content-Type: application/x-git-upload-pack-request",
                      "Git-Protocol: version=2", f"Content-Length: {len(body) - 1}", body=body), 200, "ERR ")

    def test_lfs_is_refused_with_its_own_kind_of_message(self):
        body = "{}"
        outcome = self.ask("lfs_not_granted",
                           head("POST /acme/widget.git/info/lfs/objects/batch",
                                "Content-Type: application/vnd.git-lfs+json", "Content-Length: 2", body=body), 501,
                           "application/vnd.git-lfs+json", '"message"')
        self.assertIn("Git LFS is not available", outcome.text)

    def test_dumb_http(self):
        for path in ("/acme/widget/info/refs", "/acme/widget/HEAD", "/acme/widget/objects/info/packs"):
            with self.subTest(path):
                self.ask("dumb_http", head(f"GET {path}"), 403, "text/plain")

    def test_requests_that_are_not_git(self):
        for reason, first, headers, status in (
                ("not_git", "GET /", (), 403),
                ("not_git", "GET /acme/widget/settings", (), 403),
                ("method_not_allowed", "DELETE /acme/widget/git-upload-pack", (), 405),
                ("method_not_allowed", "GET /acme/widget/git-upload-pack", (), 405),
                ("method_not_allowed", "POST /acme/widget/info/refs?service=git-upload-pack",
                 ("Content-Length: 0",), 405),
                ("bad_content_type", "POST /acme/widget/git-upload-pack",
                 ("Content-Type: text/plain", "Content-Length: 4"), 415),
                ("bad_content_encoding", "POST /acme/widget/git-upload-pack",
                 ("Content-Type: application/x-git-upload-pack-request", "Content-Encoding: br",
                  "Content-Length: 4"), 415)):
            with self.subTest(first=first, headers=headers):
                body = "0000" if "Content-Length: 4" in headers else ""
                self.ask(reason, head(first, *headers, body=body), status)

    def test_spellings_of_a_path_that_could_be_read_in_two_ways(self):
        service = "/info/refs?service=git-upload-pack"
        for path in (f"//acme/widget{service}", f"/acme//widget{service}", f"/acme/./widget{service}",
                     f"/acme/x/../widget{service}", f"/acme/%77idget{service}", f"/acme%2fwidget{service}",
                     f"/acme/widget%00{service}", f"/acme/widget/%2e%2e/other{service}", f"/acme\\\\widget{service}",
                     f"/acme/wid\\xc3\\xa9get{service}", f"/acme/widget/more{service}", f"/widget{service}",
                     "/acme/widget/info/refs?service=git%2dupload-pack",
                     "/acme/widget/info/refs?service=git-upload-pack&service=git-receive-pack",
                     "/acme/widget/info/refs?x=1&service=git-upload-pack",
                     f"https://forge.test/acme/other{service}", f"https://evil.test/acme/widget{service}"):
            with self.subTest(path):
                before = self.stage.traffic()
                outcome = self.run_inside(["/usr/bin/python3", "ask.py", "forge.test", "443", "forge.test",
                                           head(f"GET {path}")])
                self.assertRegex(outcome.stdout, "^HTTP/1.1 4[0-9][0-9] ", str(outcome))
                self.assert_all_refused(outcome, {"bad_request", "not_git"}, 1, before)

    def test_heads_that_cannot_be_read_in_exactly_one_way(self):
        good = "GET /acme/widget/info/refs?service=git-upload-pack"
        post = "POST /acme/widget/git-upload-pack"
        kind = "Content-Type: application/x-git-upload-pack-request"
        for name, data in {
                "two hosts": head(good, "Host: forge.test"),
                "no host": good + " HTTP/1.1\\r\\n\\r\\n",
                "length and chunked": head(post, kind, "Content-Length: 4", "Transfer-Encoding: chunked",
                                           body="4\\r\\n0000\\r\\n0\\r\\n\\r\\n"),
                "two lengths": head(post, kind, "Content-Length: 4", "Content-Length: 5", body="0000"),
                "unknown coding": head(post, kind, "Transfer-Encoding: xchunked", body="0000"),
                "folded header": head(good, "X: a\\r\\n b"),
                "bare line feed": head(good, "X: a\\nY: b"),
                "space before colon": head(good, "X : a"),
                "a NUL": head(good, "X: a\\x00b"),
                "no version": good + "\\r\\n\\r\\n"}.items():
            with self.subTest(name):
                self.ask("bad_request", data, 400)

    def test_the_names_of_one_connection_must_agree(self):
        good = "GET /acme/widget/info/refs?service=git-upload-pack"
        self.ask("host_mismatch", head(good, host="other.test"), 421)
        self.ask("host_mismatch", head(good, host="forge.test:8443"), 421)

    def test_a_tls_name_that_is_not_granted_gets_no_session(self):
        self.assert_refused({"host_not_allowed", "sni_mismatch"},
                            ["/usr/bin/python3", "ask.py", "forge.test", "443", "other.test", head("GET /")])

    def test_what_is_not_tls_at_all(self):
        self.assert_refused("not_tls", ["/usr/bin/python3", "ask.py", "forge.test", "443", "plain",
                                        "SSH-2.0-x\\r\\n"])

    def test_connect_and_websockets_open_no_tunnel(self):
        for first, headers in (("CONNECT forge.test:443", ()),
                               ("GET /acme/widget/info/refs?service=git-upload-pack",
                                ("Upgrade: websocket", "Connection: Upgrade"))):
            with self.subTest(first):
                before = self.stage.traffic()
                outcome = self.run_inside(["/usr/bin/python3", "ask.py", "forge.test", "443", "forge.test",
                                           head(first, *headers)])
                self.assertNotRegex(outcome.stdout, "^HTTP/1.1 (101|200 Connection)", str(outcome))
                if first.startswith("CONNECT"):
                    self.assert_all_refused(outcome, "bad_request", 1, before)


if __name__ == "__main__":
    harness.main()
