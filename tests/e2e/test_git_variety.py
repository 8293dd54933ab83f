#!/usr/bin/python3
"""Rarer things that git does, and what is refused of them, with stock git and with hand-made requests."""

import shutil
import unittest

import harness
from harness import AUTHOR, E2E, git_rule, policy
from test_refusals import ASK, head

ZERO = "0" * 40
# Names that git takes: Unicode, '@', many levels, a long one, what a shell or a URL would read as something else.
ODD_REFS = ("refs/heads/größe/日本", "refs/heads/a@b", "refs/heads/@", "refs/heads/" + "/".join("abcdefghijklmnop"),
            "refs/heads/" + "x" * 200, "refs/heads/-dash", "refs/heads/a;b&c|d", "refs/heads/100%", "refs/heads/q#'\"",
            "refs/heads/lock", "refs/heads/a.locked", "refs/custom/thing", "refs/notes/n")
# Names that it does not.
BAD_REFS = ("refs/heads/x.lock", "refs/heads/x.lock/y", "refs/heads/../x", "refs/heads/.x", "refs/heads/x..y",
            "refs/heads/x@{0}", "refs/heads//x", "refs/heads/x/", "refs/heads/x.", "refs/heads/x y", "refs/heads/x:y",
            "refs/heads/x\\x7f", "HEAD", "heads/x", "refs/heads/" + "x" * 1100)


class Variety(E2E):
    def setUp(self):
        super().setUp()
        self.stage.write_policy(policy(git_rule("forge.test/acme/*", "push")))

    def inside(self, script, options=()):
        return self.assert_ok(self.run_inside(script, (*AUTHOR, *options)))

    def test_odd_ref_names_are_pushed_fetched_and_deleted(self):
        refs = " ".join("HEAD:'" + ref.replace("'", "'\\''") + "'" for ref in ODD_REFS)
        outcome = self.inside(f"git clone -q https://forge.test/acme/widget w; cd w\ngit push -q origin {refs}\n"
                              "git clone -q --mirror https://forge.test/acme/widget ../m; git -C ../m for-each-ref")
        self.assertLessEqual(set(ODD_REFS), set(self.forge.refs("acme/widget")))
        in_the_log = {ref.encode().decode("latin-1") for ref in ODD_REFS}  # byte by byte
        self.assertEqual(in_the_log - set(self.refs_pushed(outcome)), set())
        for ref in ODD_REFS:
            self.assertIn("\t" + ref + "\n", outcome.stdout)
        deletes = " ".join("':" + ref.replace("'", "'\\''") + "'" for ref in ODD_REFS)
        self.inside(f"cd w; git push -q origin {deletes}")
        self.assertFalse(set(ODD_REFS) & set(self.forge.refs("acme/widget")))

    def test_creates_updates_deletes_and_tags_in_one_atomic_push(self):
        outcome = self.inside("git clone -q https://forge.test/acme/widget w; cd w; git commit -q --allow-empty -m x\n"
                              "git tag light; git tag -a -m m heavy\n"
                              "git push -q --atomic origin HEAD:main HEAD:new light heavy :next :refs/tags/v1.0")
        refs = self.forge.refs("acme/widget")
        self.assertLessEqual({"refs/heads/main", "refs/heads/new", "refs/tags/light", "refs/tags/heavy"}, set(refs))
        self.assertFalse({"refs/heads/next", "refs/tags/v1.0"} & set(refs))
        self.assertEqual(len(self.refs_pushed(outcome)), 6)

    def test_an_atomic_push_is_all_or_nothing(self):
        before = self.forge.refs("acme/widget")
        outcome = self.run_inside("git clone -q https://forge.test/acme/widget w; cd w; git commit -q --allow-empty -m x\n"
                                  "git push --atomic --force-with-lease=main:" + "1" * 40 +
                                  " origin HEAD:main HEAD:refs/heads/new", AUTHOR)
        self.assert_failed(outcome)
        self.assertEqual(self.forge.refs("acme/widget"), before)

    def test_sha256_with_a_small_post_buffer_and_expect(self):
        path = self.forge.add_repo("acme/modern")
        (path / "config").write_text((path / "config").read_text().replace("formatversion = 0", "formatversion = 1")
                                     + "[extensions]\n\tobjectformat = sha256\n")
        self.inside("git init -q --object-format=sha256 m; cd m; head -c 200000 /dev/urandom >b; git add b\n"
                    "git commit -q -m first; git config http.postBuffer 65536\n"
                    "git -c http.extraHeader='Expect: 100-continue' push -q https://forge.test/acme/modern HEAD:main\n"
                    "git -c http.extraHeader='Expect: 100-continue' clone -q https://forge.test/acme/modern ../n\n"
                    "cmp b ../n/b; git -C ../n fsck --strict")
        self.assertEqual(len(self.forge.refs("acme/modern")["refs/heads/main"]), 64)
        self.assertEqual([line.transfer_encoding for line in self.forge.log()
                          if line.method == "POST" and line.content_type.endswith("receive-pack-request")], ["chunked"])
        self.assertEqual({line.expect for line in self.forge.log()}, {""})

    def test_signed_pushes_and_push_options_are_not_offered(self):
        for name, value in (("receive.certNonceSeed", "seed"), ("receive.advertisePushOptions", "true")):
            self.forge.repo_git("acme/widget", "config", name, value)
        before = self.forge.refs("acme/widget")
        self.inside("git clone -q https://forge.test/acme/widget w; git -C w commit -q --allow-empty -m x")
        for option, told in (("--signed", "does not support --signed push"), ("-o ci.skip", "does not support push options")):
            outcome = self.assert_failed(self.run_inside(f"git -C w push {option} origin HEAD:agent", AUTHOR))
            self.assert_shows(outcome, told)
        self.assertEqual(self.forge.refs("acme/widget"), before)
        self.inside("git -C w push -q --signed=if-asked origin HEAD:agent")

    # --- requests that git would not make ---

    def push(self, *lines, behind="PACK"):
        """A push with these pkt-lines, as Python escapes."""
        body = "".join(f"{len(line.encode('latin-1').decode('unicode_escape')) + 4:04x}{line}" for line in lines)
        body += "0000" + behind
        size = len(body.encode("latin-1").decode("unicode_escape"))
        self.stage.put("ask.py", ASK)
        return ["/usr/bin/python3", "ask.py", "forge.test", "443", "forge.test",
                head("POST /acme/widget/git-receive-pack", "Content-Type: application/x-git-receive-pack-request",
                     f"Content-Length: {size}", body=body)]

    def test_a_raw_push_certificate_is_refused(self):
        self.assert_refused("push_certificate", self.push("push-cert\\x00 report-status\\n", "certificate version 0.1\\n"),
                            shows=["HTTP/1.1 403 ", "Signed pushes (git push --signed) are not passed on."], succeeds=True)

    def test_raw_push_options_are_refused_for_every_ref(self):
        update = f"{ZERO} {'1' * 40} refs/heads/"
        self.assert_refused("push_options",
                            self.push(update + "a\\x00 report-status side-band-64k push-options", update + "b",
                                      behind="000aci.skip0000PACK"),
                            shows=["HTTP/1.1 200 ", "ng refs/heads/a Push options", "ng refs/heads/b Push options"],
                            succeeds=True)

    def test_names_that_git_would_not_take_are_refused(self):
        for ref in BAD_REFS:
            with self.subTest(ref):
                self.assert_refused("bad_push", self.push(f"{ZERO} {'1' * 40} {ref}\\x00 report-status"),
                                    shows=["HTTP/1.1 400 "], succeeds=True)

    @unittest.skipUnless(shutil.which("git-lfs"), "git-lfs is not installed")
    def test_git_lfs_shows_why_it_is_refused(self):
        self.inside("git clone -q https://forge.test/acme/widget w; cd w; git lfs install --local --skip-repo >/dev/null\n"
                    "git lfs track '*.bin' >/dev/null; head -c 1000 /dev/urandom >big.bin; git add .gitattributes big.bin\n"
                    "git commit -q -m lfs")
        before = self.forge.refs("acme/widget")
        outcome = self.assert_failed(self.run_inside("cd w; git lfs push origin main", AUTHOR))
        self.assert_shows(outcome, "Git LFS is not available for this repository")
        refused = [(line["reason"], line["path"].rpartition("/info/")[2]) for line in outcome.events("refused")]
        self.assertEqual(refused, [("lfs_not_granted", "lfs/locks/verify"), ("lfs_not_granted", "lfs/objects/batch")])
        self.account_for(outcome.events("refused"))
        self.assertEqual([line.uri for line in self.forge.log() if "lfs" in line.uri or "receive" in line.uri], [])
        self.assertEqual(self.forge.refs("acme/widget"), before)


if __name__ == "__main__":
    harness.main()
