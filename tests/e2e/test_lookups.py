#!/usr/bin/python3
"""What the gateway asks a name server for: the host of a permitted connection, and nothing else."""

import pathlib
import sys

import harness
from harness import E2E, SALLYPORT, Flavour, approval, git_rule, policy

COUNTING_SERVER = pathlib.Path(__file__).resolve().parents[1] / "forge/lookups.py"
# A network of its own, whose one name server is the counting one.
ALONE = 'ip link set lo up; mount --bind "$1" /etc/resolv.conf; shift; exec "$@"'
HOST = "lookup.test"  # without an address in the operator's file, so that it must be looked up


class Lookups(E2E):
    flavour = Flavour.AS_ROOT  # a name server has port 53, and resolv.conf is root's

    def setUp(self):
        super().setUp()
        self.asked_file = self.stage.root / "asked"
        self.resolv_conf = self.stage.write(self.stage.root / "resolv.conf", "nameserver 127.0.0.1\n", 0)
        self.stage.write_config(self.stage.forge.address, approve=approval(HOST))
        self.stage.write_policy(policy(git_rule(f"{HOST}/held/widget"),
                                       git_rule(f"{HOST}/open/widget", credential=None)))

    def run_and_count(self, script):
        """The outcome of the script inside a sandbox, and the names that were looked up outside."""
        outcome = self.stage.spawn(["unshare", "--mount", "--net", "sh", "-ec", ALONE, "sh", self.resolv_conf,
                                    sys.executable, "-B", COUNTING_SERVER, self.asked_file,
                                    SALLYPORT, "run", "--", "sh", "-c", script]).finish()
        return outcome, self.asked_file.read_text().split()

    def test_nothing_that_is_refused_is_looked_up(self):
        # Asked for by DNS, by a TLS name, by another repository, another kind of request, plain HTTP, an address; and
        # the same at the proxy.
        outcome, asked = self.run_and_count(f"""
            getent hosts denied.test; getent hosts {HOST}
            curl() {{ command curl -s --noproxy '*' "$@"; }}
            curl --resolve denied.test:443:198.18.0.9 https://denied.test/
            git ls-remote https://{HOST}/other/widget
            git ls-remote https://{HOST}/held/other
            curl https://{HOST}/held/widget/HEAD
            curl http://{HOST}/held/widget/info/refs?service=git-upload-pack
            curl -k https://192.0.2.7/
            curl() {{ command curl -s "$@"; }}
            curl https://denied.test/; curl http://denied.test/; curl https://{HOST}:22/
            curl https://{HOST}/held/widget/HEAD
            curl http://{HOST}/held/widget/info/refs?service=git-upload-pack
            curl -k https://192.0.2.7/
            true""")
        self.assert_ok(outcome)
        refused = outcome.events("refused")
        self.assertEqual({line["reason"] for line in refused},
                         {"host_not_allowed", "repo_not_granted", "dumb_http", "plain_http", "no_sni", "port_not_allowed",
                          "ip_literal"}, str(outcome))
        self.assertEqual(outcome.events("begin"), [], str(outcome))
        self.assertEqual(asked, [])
        self.account_for(refused)

    def test_what_is_permitted_is_looked_up_when_it_is_dialled(self):
        outcome, asked = self.run_and_count(f"""
            git ls-remote https://{HOST}/open/widget
            git ls-remote https://{HOST}/held/widget
            true""")
        self.assertEqual([line["reason"] for line in outcome.events("end")], ["upstream_unresolved"] * 2, str(outcome))
        self.assertEqual(set(asked), {HOST})

    def test_the_operators_name_servers_are_asked_instead(self):
        # What resolv.conf names would have no answer here.
        self.resolv_conf = self.stage.write(self.stage.root / "resolv.conf", "nameserver 192.0.2.1\n", 0)
        self.stage.write_config(self.stage.forge.address, approve='resolvers = ["127.0.0.1"]\n' + approval(HOST))
        outcome, asked = self.run_and_count(f"""
            git ls-remote https://{HOST}/open/widget
            git ls-remote https://{HOST}/held/widget
            true""")
        self.assertEqual([line["reason"] for line in outcome.events("end")], ["upstream_unresolved"] * 2, str(outcome))
        self.assertEqual(set(asked), {HOST})


if __name__ == "__main__":
    harness.main()
