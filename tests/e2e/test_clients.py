#!/usr/bin/python3
"""The matrix of docs/clients.md: real programs, as they are, reach what the policy lists and nothing else.

What a program needs for that stands in the sandbox's profile; none is given an option that the gateway makes necessary.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness
import registries
import web
from harness import WITHOUT_PROXY
from test_egress import EgressCase

POLICY = '''\
version = 1

[[git]]
repo = "git.test/acme/*"
access = "fetch"

[[allow]]
host = ["web.test", "pypi.test", "cargo.test"]
paths = ["/hello", "/simple/**", "/files/**", "/index/**", "/dl/**"]

[[allow]]
host = "npm.test"
encoded_slash = true

[[allow]]
host = "apt.test"
ports = [80]

[[tcp]]
host = "ssh.test"
port = 22
'''
NODE_FETCH = '''
fetch(process.argv[2]).then(async (answer) => {
  process.stdout.write(await answer.text());
  process.exit(answer.ok ? 0 : 1);
}, (error) => { console.error(error); process.exit(1); });
'''
NODE_HTTPS = '''
require("https").get(process.argv[2], (answer) => {
  answer.pipe(process.stdout);
  answer.on("end", () => process.exit(answer.statusCode == 200 ? 0 : 1));
}).on("error", (error) => { console.error(error); process.exit(1); });
'''
PYTHON = '''
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1]).read().decode(), end="")
except urllib.error.HTTPError as error:
    sys.exit(f"{error}\\n{error.read().decode()}")
except urllib.error.URLError as error:
    sys.exit(str(error))
'''
JAVA = '''
import java.net.URI;
import java.net.http.*;

public class Get {
    public static void main(String[] args) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(args[0])).build();
        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.print(answer.body());
        System.exit(answer.statusCode() == 200 ? 0 : 1);
    }
}
'''
GO = '''
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	body, _ := io.ReadAll(answer.Body)
	fmt.Print(string(body))
	if answer.StatusCode != 200 {
		os.Exit(1)
	}
}
'''
CARGO_TOML = '''[package]
name = "user"
version = "0.1.0"
edition = "2021"

[dependencies]
tiny = "0.1"
'''
CARGO_CONFIG = '''[source.crates-io]
replace-with = "local"

[source.local]
registry = "sparse+https://%s/index/"
'''
APT = ("apt-get -o Dir=$PWD/apt -o Dir::State::status=$PWD/apt/status -o APT::Architecture=amd64 "
       "-o Dir::Bin::methods=/usr/lib/apt/methods -o Acquire::Languages=none ")

def needs(*programs):
    """A client that this machine does not have is left out, and says so. Inside, only what lies in /usr is there."""
    missing = [name for name in programs if not os.path.realpath(shutil.which(name, path=harness.PATH) or "").startswith("/usr/")]
    return unittest.skipIf(missing, f"not installed: {' '.join(missing)} (scripts/setup)")


@functools.cache
def go_program():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "get.go"
        source.write_text(GO)
        subprocess.run(["go", "build", "-o", f"{folder}/get", str(source)], check=True, cwd=folder, timeout=1000,
                       env={"PATH": harness.PATH, "HOME": folder, "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"})
        return (pathlib.Path(folder) / "get").read_bytes()


class Clients(EgressCase):
    policy = POLICY

    def make_upstreams(self, ca):
        npm = registries.npm("npm.test", "tiny", "@scope/tiny")
        git = web.Web(ca.leaf("git.test"), repositories={"/acme/widget": str(self.forge.path("acme/widget"))})
        return {"git.test": git, "web.test": web.Web(ca.leaf("web.test")), "npm.test": web.Web(ca.leaf("npm.test"), npm),
                "pypi.test": web.Web(ca.leaf("pypi.test"), registries.pypi("tiny")),
                "cargo.test": web.Web(ca.leaf("cargo.test"), registries.cargo("cargo.test", "tiny")),
                "apt.test": web.Web(files=registries.apt("tiny")), "ssh.test": web.Raw(b"SSH-2.0-nobody\r\n")}

    def gets(self, command, url="https://web.test/hello", entry="proxy", **more):
        """The client's command, with the URL behind it, fetches what is there."""
        outcome = self.assert_allowed([*command, url], entry=entry, status=200, **more)
        self.assertEqual(outcome.stdout, "hello\n")

    def is_refused(self, command, host_unknown, at_once, path_refused="403", entry="proxy"):
        """The same of a host that no rule has and of a path of one that a rule has.

        `host_unknown`: what the client shows of it, by DNS or the proxy. `at_once`: how many audit lines; None by DNS.
        """
        outcome = self.assert_refused("host_not_allowed", [*command, "https://other.test/hello"], shows=[host_unknown],
                                      lines=at_once)
        self.assertEqual({line["host"] for line in outcome.events("refused")}, {"other.test"})
        outcome = self.assert_refused("path_not_allowed", [*command, "https://web.test/secret"], shows=[path_refused])
        self.assertEqual(outcome.events("refused")[0]["entry"], entry)

    # ---- fetching one URL ----

    @needs("curl")
    def test_curl(self):
        curl = ["curl", "-sS", "--fail-with-body"]
        self.gets(curl)
        self.is_refused(curl, "CONNECT tunnel failed, response 403", 1, "web.test")
        self.gets([*WITHOUT_PROXY, *curl], entry="tls")
        self.is_refused([*WITHOUT_PROXY, *curl], "Could not resolve host: other.test", None, "web.test", entry="tls")

    @needs("wget")
    def test_wget(self):
        wget = ["wget", "-nv", "-O", "-", "--content-on-error"]
        self.gets(wget)
        self.is_refused(wget, "Proxy tunneling failed: Forbidden", 1, "ERROR 403: Forbidden")
        self.gets([*WITHOUT_PROXY, *wget], entry="tls")
        self.is_refused([*WITHOUT_PROXY, *wget], "unable to resolve host address", None, "ERROR 403: Forbidden", entry="tls")

    @needs("node")
    def test_node(self):
        self.stage.put("fetch.js", NODE_FETCH)
        self.stage.put("https.js", NODE_HTTPS)
        for script in ("fetch.js", "https.js"):
            with self.subTest(script):
                self.gets(["node", script], entry="tls")
                self.is_refused(["node", script], "ENOTFOUND other.test", None, "The policy does not allow this path.",
                                entry="tls")

    @needs("python3")
    def test_python_urllib(self):
        self.stage.put("get.py", PYTHON)
        python = ["/usr/bin/python3", "get.py"]
        self.gets(python)
        self.is_refused(python, "Tunnel connection failed: 403 Forbidden", 1, "The policy does not allow this path.")
        self.gets([*WITHOUT_PROXY, *python], entry="tls")
        self.is_refused([*WITHOUT_PROXY, *python], "Name or service not known", None, "The policy does not allow this path.",
                        entry="tls")

    @needs("java")
    def test_java(self):
        self.stage.put("Get.java", JAVA)
        java = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "Get.java"]
        self.gets(java, entry="tls")
        self.is_refused(java, "java.net.ConnectException", None, "The policy does not allow this path.", entry="tls")

    @needs("go")
    def test_go(self):
        self.stage.put("get", go_program())
        self.gets(["./get"])
        self.is_refused(["./get"], "Forbidden", 1, "The policy does not allow this path.")
        self.gets([*WITHOUT_PROXY, "./get"], entry="tls")
        self.is_refused([*WITHOUT_PROXY, "./get"], "lookup other.test", None, "The policy does not allow this path.", entry="tls")

    @needs("openssl")
    def test_openssl(self):
        def ask(host, path, options=""):
            return f"openssl s_client -quiet -verify_return_error -connect {host}:443 -servername {host} {options} " \
                   f"<<'END' 2>&1\nGET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\nEND"

        for entry, options in (("proxy", "-proxy 198.18.0.1:3128"), ("tls", "")):
            with self.subTest(entry):
                self.assert_shows(self.assert_allowed(ask("web.test", "/hello", options), entry=entry, status=200), "hello")
                self.assert_refused("path_not_allowed", ask("web.test", "/secret", options), succeeds=True,
                                    shows=["HTTP/1.1 403", "The policy does not allow this path."])
        self.assert_refused("host_not_allowed", ask("other.test", "/", "-proxy 198.18.0.1:3128"), shows=["403"])
        self.assert_refused("host_not_allowed", ask("other.test", "/"), shows=["Name or service not known"], lines=None)

    # ---- git and packages ----

    @needs("git")
    def test_git(self):
        for way in ([], WITHOUT_PROXY):
            # Never by the proxy, whose refusals git would not show.
            self.assert_allowed([*way, "git", "clone", "-q", "https://git.test/acme/widget"], requests=3, entry="tls",
                                host="git.test", rule="sallyport.toml:3", status=200)
            self.assertEqual((self.stage.work / "widget/README").read_text(), "A better widget.\n")
            shutil.rmtree(self.stage.work / "widget")
        self.assert_refused("repo_not_granted", ["git", "clone", "https://git.test/other/widget"],
                            shows=["remote: sallyport: The policy does not grant this repository.", "git.test/other/widget"])
        self.assert_refused("host_not_allowed", ["git", "clone", "https://other.test/acme/widget"], lines=None,
                            shows=["Could not resolve host: other.test"])

    @needs("npm")
    def test_npm(self):
        def fresh():
            for left in ("node_modules", "package-lock.json"):
                subprocess.run(["rm", "-rf", self.stage.work / left], check=True)
            self.stage.put("package.json", '{"name": "user", "version": "1.0.0"}\n')

        install = ["npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0"]
        for entry, way in (("proxy", []), ("tls", WITHOUT_PROXY)):
            with self.subTest(entry):
                fresh()
                self.assert_allowed([*way, *install, "--registry=https://npm.test/", "tiny", "@scope/tiny"], requests=4,
                                    entry=entry, host="npm.test", status=200, method="GET")
                outcome = self.assert_ok(self.run_inside(
                    ["node", "-e", 'console.log(require("tiny"), require("@scope/tiny"))'], ("--quiet",)))
                self.assertEqual(outcome.stdout, "tiny @scope/tiny\n")
        fresh()
        elsewhere = [*install, "--registry=https://other.test/", "tiny"]
        self.assert_refused("host_not_allowed", elsewhere, shows=["other.test"])
        self.assert_refused("host_not_allowed", [*WITHOUT_PROXY, *elsewhere], shows=["ENOTFOUND", "other.test"], lines=None)
        self.assert_refused("path_not_allowed", [*install, "--registry=https://web.test/", "tiny"],
                            shows=["403", "https://web.test/tiny"])

    @needs("python3", "pip3")
    def test_pip(self):
        def install(host):
            return ["/usr/bin/python3", "-m", "pip", "install", "-q", "--no-cache-dir", "--retries", "1", "--target", "got",
                    "--upgrade", "--index-url", f"https://{host}/simple/", "tiny"]

        for entry, way in (("proxy", []), ("tls", WITHOUT_PROXY)):
            with self.subTest(entry):
                outcome = self.assert_ok(self.run_inside([*way, *install("pypi.test")]))
                self.assertEqual({(line["entry"], line["host"]) for line in outcome.events("begin")}, {(entry, "pypi.test")})
                self.assertEqual(outcome.events("refused"), [], str(outcome))
                self.assertIn("NAME = 'tiny'", (self.stage.work / "got/tiny.py").read_text())
                shutil.rmtree(self.stage.work / "got")
        # It says why when it tries again, which it does.
        self.assert_refused("host_not_allowed", install("other.test"), lines=2,
                            shows=["Tunnel connection failed: 403 Forbidden"])
        self.assert_refused("host_not_allowed", [*WITHOUT_PROXY, *install("other.test")], lines=None,
                            shows=["Name or service not known"])
        self.assert_refused("path_not_allowed", install("web.test/secret"), shows=["No matching distribution found for tiny"])

    @needs("cargo")
    def test_cargo(self):
        def fetch(host):
            # Debian's is older than sparse indexes: the variable lets it have what later ones have by default.
            return ("mkdir -p crate/src crate/.cargo; cd crate; : >src/lib.rs; rm -f Cargo.lock; rm -rf ~/.cargo\n"
                    f"cat >Cargo.toml <<'END'\n{CARGO_TOML}END\ncat >.cargo/config.toml <<'END'\n{CARGO_CONFIG % host}END\n"
                    "RUSTC_BOOTSTRAP=1 cargo -Z sparse-registry fetch; ls ~/.cargo/registry/cache/*/tiny-0.1.0.crate")

        outcome = self.assert_allowed(fetch("cargo.test"), requests=3, host="cargo.test", status=200)
        self.assertIn("tiny-0.1.0.crate", outcome.stdout)
        self.assert_refused("host_not_allowed", fetch("other.test"), shows=["other.test"], lines=None)
        self.assert_refused("path_not_allowed", fetch("web.test/secret"), shows=["403", "web.test"])

    @needs("apt-get", "dpkg-deb")
    def test_apt(self):
        # By another name than the host's, which no rule has: apt asks for it and goes on without an answer.
        srv = {"entry": "dns", "host": "_http._tcp.apt.test", "path": "SRV", "reason": "host_not_allowed"}

        def update(host):
            return ("mkdir -p apt/etc/apt/preferences.d apt/etc/apt/apt.conf.d apt/var/lib/apt/lists/partial "
                    "apt/var/cache/apt/archives/partial apt/var/log; : >apt/status\n"
                    f"echo 'deb [trusted=yes] http://{host}/debian stable main' >apt/etc/apt/sources.list\n"
                    f"{APT} -o APT::Update::Error-Mode=any update\n")

        for entry, way in (("proxy", ""), ("http", "unset http_proxy; ")):
            with self.subTest(entry):
                outcome = self.assert_ok(self.run_inside(f"{way}{update('apt.test')} {APT} download tiny\n"
                                                         "dpkg-deb -x tiny_1.0_all.deb out; cat out/usr/share/tiny"))
                self.assertTrue(outcome.stdout.endswith("a file\n"), str(outcome))
                self.assertEqual({(line["entry"], line["host"], line["port"]) for line in outcome.events("begin")},
                                 {(entry, "apt.test", 80)})
                refused = outcome.events("refused")
                self.assertEqual([{key: line[key] for key in srv} for line in refused], [srv] * (entry == "http"), str(outcome))
                self.account_for(refused)
                shutil.rmtree(self.stage.work / "apt")
        # apt tries everything that a repository could have.
        before = self.stage.traffic()
        outcome = self.assert_failed(self.run_inside(update("other.test")))
        self.assert_all_refused(outcome, "host_not_allowed", len(outcome.events("refused")), before)
        self.assertEqual({line["host"] for line in outcome.events("refused")}, {"other.test"})
        self.assert_shows(outcome, "http://other.test/debian/dists/stable", "403  Forbidden")

    @needs("ssh")
    def test_ssh(self):
        def ssh(host):
            return ["ssh", "-v", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
                    "-o", "ConnectTimeout=60", f"git@{host}"]

        outcome = self.run_inside(ssh("ssh.test"))
        self.assert_shows(outcome, "remote software version nobody")
        begun = outcome.events("begin")
        self.assertEqual([(line["entry"], line["host"], line["port"]) for line in begun], [("tcp", "ssh.test", 22)])
        self.assertEqual(outcome.events("refused"), [], str(outcome))
        self.assert_refused("host_not_allowed", ssh("other.test"), shows=["Could not resolve hostname other.test"], lines=None)
        self.assert_refused("port_not_allowed", ssh("web.test"), shows=["Connection reset by"])


if __name__ == "__main__":
    harness.main()
