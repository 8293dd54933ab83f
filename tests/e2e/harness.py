"""The stage on which the programs are tested: a forge, an operator, a workspace, and both ways to start.

Every test gets its own of all these, and ends with a search for what was left behind. Programs come from
$SALLYPORT_BIN_DIR. As root each test runs twice: with root starting `sallyport` (which then drops to the
workspace's owner), and with an unprivileged user starting it. Without root only the latter is possible.
"""

import atexit
import enum
import functools
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "forge")]

import canary  # noqa: E402
import forge as forge_module  # noqa: E402
import processes  # noqa: E402

# Generous: only a hang reaches it. Sanitizers on a busy machine are slow.
RUN_TIMEOUT_SECONDS = 180
# Programs that keep freed memory and shadow every byte: their memory says nothing.
SANITIZED = os.environ.get("SALLYPORT_TEST_SANITIZED", "") != ""
# Nobody else on the machine has it, so whatever runs or lies under it belongs to this test process.
TEST_UID = 23000 + int.from_bytes(os.urandom(4)) % 40000 if os.getuid() == 0 else os.getuid()


def _programs():
    """Where the programs are. A checkout may lie where only root can look: then an ordinary user gets copies."""
    folder = pathlib.Path(os.environ.get("SALLYPORT_BIN_DIR", REPO / "build/debug/bin")).absolute()
    can_start = ["setpriv", "--reuid", str(TEST_UID), "--regid", str(TEST_UID), "--clear-groups",
                 "test", "-x", str(folder / "sallyport")]
    if os.getuid() != 0 or not folder.is_dir() or subprocess.run(can_start, check=False).returncode == 0:
        return folder
    copies = pathlib.Path(tempfile.mkdtemp(prefix="programs-"))
    atexit.register(shutil.rmtree, copies, ignore_errors=True)
    copies.chmod(0o755)
    return pathlib.Path(shutil.copytree(folder, copies / "bin"))


BIN_DIR = _programs()
SALLYPORT = BIN_DIR / "sallyport"
TOKEN = "canary-" + os.urandom(16).hex()
# A commit needs an author, and the home inside is empty.
AUTHOR = ("--env", "GIT_AUTHOR_NAME=T", "--env", "GIT_AUTHOR_EMAIL=t@forge.test",
          "--env", "GIT_COMMITTER_NAME=T", "--env", "GIT_COMMITTER_EMAIL=t@forge.test")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Before a command inside, for the ways that need no proxy.
WITHOUT_PROXY = ["env", *(word for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
                          for spelling in (name, name.upper()) for word in ("-u", spelling))]

# Another git than the system's for everything inside: the folder into which it was installed.
OTHER_GIT = os.environ.get("SALLYPORT_TEST_GIT", "")

EXIT_USAGE = 2
EXIT_SALLYPORT_FAILED = 125
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127
EXIT_SIGNAL_BASE = 128

ENTRIES = {"", "tls", "http", "tcp", "dns", "udp", "icmp", "proxy"}

WIDGET_PUSH = '''\
version = 1

[[git]]
repo = "forge.test/acme/widget"
access = "push"
credential = "forge"
'''


class Flavour(enum.Enum):
    ROOTLESS = "Rootless"
    AS_ROOT = "AsRoot"


def in_both_flavours(case):
    """Turns a test case into two, CaseRootless and CaseAsRoot, and leaves none under the plain name."""
    module = sys.modules[case.__module__]
    for flavour in Flavour:
        name = case.__name__ + flavour.value
        setattr(module, name, type(name, (case,), {"flavour": flavour, "__module__": case.__module__,
                                                   "__qualname__": name}))


@functools.cache
def audit_schema():
    """(fields of every line, {kind: its further fields}) as docs/audit.md has them."""
    by_kind, fields, part = {}, set(), ""
    for line in (REPO / "docs/audit.md").read_text().splitlines():
        if line.startswith("## "):
            part = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `"):
            continue
        if part == "Lines by kind":
            by_kind[cells[0].strip("`")] = set(cells[2].split())
        elif part == "Fields":
            fields.add(cells[0].strip("`"))
    return fields.difference(*by_kind.values()), by_kind


# In the operator's file: what every test's policy may do without the user's consent to it (docs/policy.md, "Trust").
def approval(host):
    return f'\n[[approve]]\nrepo = "{host}/*/*"\naccess = "push"\ncredential = "forge"\n'


APPROVE_ALL = approval("forge.test")
# For the operator's file, where a test asks for more in a second than the default lets through.
UNHURRIED = '\n[limits]\nrequests = "unlimited"\n'


@functools.cache
def unjudged_reasons():
    """Of refusals that are nobody's judgement, as docs/errors.md has them."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in (REPO / "docs/errors.md").read_text().splitlines() if line.startswith("| `")]
    return {"client_closed", "client_timeout"} | {row[0].strip("`") for row in rows if row[2] == "gateway"}


def git_rule(repo, access="fetch", credential="forge"):
    rule = f'\n[[git]]\nrepo = "{repo}"\naccess = "{access}"\n'
    return rule + (f'credential = "{credential}"\n' if credential else "")


def policy(*rules):
    return "version = 1\n" + "".join(rules)


class Outcome:
    """How one run ended. `text` is everything it printed, in no particular order between the two streams."""

    def __init__(self, code, stdout, stderr, audit):
        self.code = code
        self.stdout = stdout.decode(errors="replace")
        self.stderr = stderr.decode(errors="replace")
        self.audit = audit  # lines of this run alone

    @property
    def text(self):
        return self.stdout + self.stderr

    def events(self, kind):
        return [line for line in self.audit if line["kind"] == kind]

    def __str__(self):
        lines = "\n".join(json.dumps(line) for line in self.audit)
        return f"exit {self.code}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}\n--- audit\n{lines}"


class Running:
    """A run in progress."""

    def __init__(self, stage, process, audit_before):
        self.stage = stage
        self.process = process
        self._audit_before = audit_before

    @property
    def pid(self):
        return self.process.pid

    def tree(self):
        return [self.pid, *processes.descendants(self.pid)]

    def pids_of(self, program):
        return [pid for pid in self.tree() if processes.executable(pid) == program]

    def wait_for(self, condition, what, timeout=RUN_TIMEOUT_SECONDS, pause=0.02):
        """Until `condition()` is true; fails when the run ends or hangs before."""
        deadline = time.monotonic() + timeout
        while True:
            ended = self.process.poll() is not None  # first: it may come to it and end between two looks
            if condition():
                return
            if ended:
                raise AssertionError(f"ended before {what}:\n{self.finish()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"never came to {what}:\n{self.kill()}")
            time.sleep(pause)

    def wait_for_checkpoint(self, name, timeout=RUN_TIMEOUT_SECONDS):
        self.wait_for((self.stage.work / f".at-{name}").exists, f"checkpoint {name}", timeout)

    def pass_checkpoint(self, name):
        self.stage.write(self.stage.work / f".go-{name}", "", self.stage.sandbox_uid)

    def finish(self, timeout=RUN_TIMEOUT_SECONDS):
        try:
            stdout, stderr = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s:\n{self.kill()}") from None
        return Outcome(self.process.returncode, stdout, stderr, self.stage.audit()[self._audit_before:])

    def kill(self):
        """Ends everything, none of it knowing of another's end, and waits until it has let go of all."""
        processes.stop(self.tree())
        processes.kill(self.tree())
        try:
            stdout, stderr = self.process.communicate(timeout=RUN_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as held:  # somebody in a session still has the other ends
            stdout, stderr = held.stdout, held.stderr
        return Outcome(self.process.returncode, stdout or b"", stderr or b"",
                       self.stage.audit()[self._audit_before:])


# For commands inside: `checkpoint NAME` says that it came there, and waits to be let on.
CHECKPOINT_SH = 'checkpoint() { : >"$PWD_AT_START/.at-$1"; until [ -e "$PWD_AT_START/.go-$1" ]; do sleep 0.05; done; }\n' \
                'PWD_AT_START=$PWD\n'


class Stage:
    def __init__(self, flavour, config_extra="", upstream=None, ca_pem=None, token=TOKEN):
        """`upstream`: the address of another upstream than the forge, with `ca_pem` for its certificate."""
        self.flavour = flavour
        self.runner_uid = 0 if flavour is Flavour.AS_ROOT else TEST_UID
        self.sandbox_uid = TEST_UID
        self.token = token
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="stage-"))
        self.root.chmod(0o755)
        self._own(self.root, self.runner_uid)
        self.home = self.folder("home", self.runner_uid, 0o700)
        self.state = self.folder("home/state", self.runner_uid, 0o700)
        self.config_home = self.folder("home/config", self.runner_uid, 0o700)
        self.folder("home/config/sallyport", self.runner_uid, 0o700)
        self.runtime = self.folder("home/run", self.runner_uid, 0o700)
        self.tmp = self.folder("home/tmp", self.runner_uid, 0o700)
        self.work = self.folder("work", self.sandbox_uid, 0o755)
        self.config = self.config_home / "sallyport/config.toml"
        self.token_file = self.home / "token"
        self.policy = self.work / "sallyport.toml"
        self.audit_file = self.state / "sallyport/audit.jsonl"
        self.forge = forge_module.Forge(token, parent=self.root)
        self.runs = []
        self.traffic_sources = []  # more callables, each counting what reached something
        try:
            self.forge.start()
            self.write(self.token_file, token + "\n", self.runner_uid, 0o600)
            self.ca = self.write(self.home / "ca.pem", pathlib.Path(ca_pem or self.forge.ca_pem).read_text(),
                                 self.runner_uid)
            self.write_config(upstream or self.forge.address, config_extra)
            self.write_policy(WIDGET_PUSH)
            self.snapshot = processes.Snapshot(TEST_UID, [self.runtime, self.tmp], self.root.name)
        except BaseException:
            self.close()
            raise

    def end_runs(self):
        """Whatever a failed test has left running."""
        for running in self.runs:
            if running.process.poll() is None:
                running.kill()
        self.runs.clear()

    def close(self):
        self.end_runs()
        self.forge.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    # --- files ---

    def folder(self, name, uid, mode):
        path = self.root / name
        path.mkdir(parents=True)
        path.chmod(mode)
        self._own(path, uid)
        return path

    def write(self, path, text, uid, mode=0o644):
        path = pathlib.Path(path)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        self._own(path, uid)
        return path

    def put(self, name, text, mode=0o755):
        """A file in the workspace, as the user would have made it."""
        return self.write(self.work / name, text, self.sandbox_uid, mode)

    def write_policy(self, text):
        self.write(self.policy, text, self.sandbox_uid)

    def write_config(self, address, extra="", mode=0o600, approve=APPROVE_ALL):
        self.write(self.config, "version = 1\n" + approve + "\n"
                   f'[credential.forge]\nsource = {{ file = "{self.token_file}" }}\n\n'
                   f'[host."{forge_module.HOST}"]\nkind = "generic"\nca = "{self.ca}"\naddress = "{address}"\n'
                   + extra, self.runner_uid, mode)

    @staticmethod
    def _own(path, uid):
        if os.getuid() == 0:
            os.chown(path, uid, uid)

    # --- runs ---

    def environment(self, **more):
        keep = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS") or k == "LLVM_PROFILE_FILE"}
        return keep | {"PATH": PATH, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb",
                       "XDG_CONFIG_HOME": str(self.config_home), "XDG_STATE_HOME": str(self.state),
                       "XDG_RUNTIME_DIR": str(self.runtime), "TMPDIR": str(self.tmp)} | more

    def identity(self):
        if os.getuid() != 0 or self.runner_uid == 0:
            return {}
        return {"user": self.runner_uid, "group": self.runner_uid, "extra_groups": []}

    def spawn(self, argv, cwd=None, env=None, **popen):
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | popen
        before = len(self.audit())
        process = subprocess.Popen([str(a) for a in argv], cwd=cwd or self.work,
                                   env=self.environment() if env is None else env, **self.identity(), **popen)
        running = Running(self, process, before)
        self.runs.append(running)
        return running

    def start(self, command, options=(), **popen):
        """`sallyport run OPTIONS -- COMMAND`; a string is a shell script that stops at the first error."""
        if isinstance(command, str):
            command = ["sh", "-ec", CHECKPOINT_SH + command]
        if OTHER_GIT:
            options = (*options, "--mount", f"{OTHER_GIT}:ro", "--env", f"PATH={OTHER_GIT}/bin:{PATH}")
        return self.spawn([SALLYPORT, "run", *options, "--", *command], **popen)

    def run(self, command, options=(), timeout=RUN_TIMEOUT_SECONDS, **popen):
        return self.start(command, options, **popen).finish(timeout)

    def cli(self, *argv, **popen):
        """`sallyport ARGV` without a sandbox."""
        return self.spawn([SALLYPORT, *argv], **popen).finish()

    def serve(self, *options):
        """`sallyport serve OPTIONS`; returns the run, and what --json said once it was ready."""
        running = self.spawn([SALLYPORT, "serve", "--json", *options])
        line = running.process.stdout.readline()
        if not line:
            raise AssertionError(str(running.finish()))
        return running, json.loads(line)

    def run_in_terminal(self, command, options=(), typed=b"", timeout=RUN_TIMEOUT_SECONDS,
                        program=(SALLYPORT, "run")):
        """The same with a terminal of its own around it; returns the exit code and what the terminal showed.

        `typed`: bytes, or a callable that gets what was shown so far and returns bytes to type (or b"").
        """
        argv = [*map(str, program), *map(str, options), *(["--"] if program else []),
                *(["sh", "-c", CHECKPOINT_SH + command] if isinstance(command, str) else command)]
        before = len(self.audit())
        controller, terminal = pty.openpty()
        process = subprocess.Popen(["setsid", "--ctty", "--wait", *argv], cwd=self.work, env=self.environment(),
                                   stdin=terminal, stdout=terminal, stderr=terminal, **self.identity())
        os.close(terminal)
        shown = b""
        deadline = time.monotonic() + timeout
        if isinstance(typed, bytes):
            os.write(controller, typed)
        while time.monotonic() < deadline:
            ready, _, _ = select.select([controller], [], [], 0.1)
            if ready:
                try:
                    piece = os.read(controller, 65536)
                except OSError:  # EIO: the last holder of the terminal is gone
                    break
                shown += piece
                if callable(typed) and (answer := typed(shown)):
                    os.write(controller, answer)
            elif process.poll() is not None:
                break
        os.close(controller)
        running = Running(self, process, before)
        try:
            process.wait(max(1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            running.kill()
            raise AssertionError(f"still running; the terminal shows:\n{shown.decode(errors='replace')}") from None
        return Outcome(process.returncode, shown, b"", self.audit()[before:])

    # --- what happened ---

    def audit(self, path=None):
        path = path or self.audit_file
        if not path.exists():
            return []
        # What is being written ends in the middle of a line.
        return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def traffic(self):
        return (self.forge.traffic(), *(source() for source in self.traffic_sources))


class E2E(unittest.TestCase):
    """One test, one stage."""

    flavour = Flavour.ROOTLESS
    maxDiff = None

    def setUp(self):
        if not SALLYPORT.exists():
            self.fail(f"{SALLYPORT} is not built (set SALLYPORT_BIN_DIR)")
        if self.flavour is Flavour.AS_ROOT and os.getuid() != 0:
            self.skipTest("only root can show what root gets")
        processes.adopt_orphans()
        self.accounted = set()  # refused lines that an assertion has spoken for
        self.stage = self.make_stage()
        self.addCleanup(self.stage.close)
        self.forge = self.stage.forge
        self.run_inside = self.stage.run

    def make_stage(self):
        return Stage(self.flavour)

    def tearDown(self):
        self.stage.end_runs()
        left = self.stage.snapshot.left_over(self.stage.forge.pids())
        self.check_audit(self.stage.audit())
        self.check_refusals(self.stage.audit())
        self.assertEqual(left, [], "left behind")

    def every_request_has_its_end(self):
        """In the log: a client has its answer before that."""
        kinds = [line["kind"] for line in self.stage.audit()]
        return kinds.count("begin") == kinds.count("end")

    # --- asserts ---

    def assert_ok(self, outcome):
        self.assertEqual(outcome.code, 0, str(outcome))
        return outcome

    def assert_failed(self, outcome):
        self.assertNotEqual(outcome.code, 0, str(outcome))
        return outcome

    def assert_shows(self, outcome, *fragments):
        for fragment in fragments:
            self.assertIn(fragment, outcome.text, str(outcome))

    def assert_refused(self, reason, command, options=(), shows=(), succeeds=False, lines=1, **popen):
        """Runs it: it fails, `lines` audit lines give that reason, nothing is allowed, and nothing was sent anywhere.

        `reason` may be several. `lines=None`: one or more, for DNS alone, where clients ask several times.
        """
        before = self.stage.traffic()
        outcome = self.run_inside(command, options, **popen)
        self.assertEqual(outcome.code == 0, succeeds, str(outcome))
        self.assert_all_refused(outcome, reason, lines, before)
        self.assert_shows(outcome, *shows)
        return outcome

    def assert_all_refused(self, outcome, reason, lines, traffic_before):
        """What a refusal is, of a run that was made in another way: the right reason, exactly so many audit lines,
        and neither a lookup nor a socket nor a credential went out. `traffic_before`: stage.traffic() then."""
        refused = outcome.events("refused")
        self.assertTrue(refused, f"nothing was refused\n{outcome}")
        self.assertLessEqual({line["reason"] for line in refused},
                             {reason} if isinstance(reason, str) else set(reason), str(outcome))
        if lines is None:
            self.assertEqual({line["entry"] for line in refused}, {"dns"}, f"lines=None is for DNS\n{outcome}")
        else:
            self.assertEqual(len(refused), lines, str(outcome))
        # The sandbox's packets have none: nobody is told of them.
        ids = [line["request"] for line in refused if line["entry"] not in ("udp", "icmp")]
        self.assertNotIn("", ids, f"a refusal without id\n{outcome}")
        self.assertEqual(len(set(ids)), len(ids), f"two refusals with one id\n{outcome}")
        for kind in ("coalesced", "begin", "credential"):
            self.assertEqual(outcome.events(kind), [], str(outcome))
        self.assertEqual(self.stage.traffic(), traffic_before, f"something was sent\n{outcome}")
        self.account_for(refused)

    def account_for(self, refused):
        """Speaks for refused lines whose reason, number and harmlessness the test has asserted by itself."""
        self.accounted |= {(line["session"], line["seq"]) for line in refused}

    def check_refusals(self, lines):
        """A refusal that no assertion has spoken for is a test that would not notice a wrong one.

        Clients that went away and the gateway's own trouble are left out: nobody has judged anything there, and tests
        that kill processes cannot tell how many there will be.
        """
        silent = [line for line in lines if line["kind"] == "refused" and line["reason"] not in unjudged_reasons()
                  and (line["session"], line["seq"]) not in self.accounted]
        self.assertEqual(len(silent), 0, "refused, and no assertion spoke for it: use assert_refused(), or assert reason, "
                                         f"number of lines and traffic, and account_for() them: {silent[:3]}")

    def check_audit(self, lines):
        """What docs/audit.md says of every line, held against every line of every test."""
        common, by_kind = audit_schema()
        last = {}
        begun, ended = set(), set()
        text = "\n".join(map(json.dumps, lines))
        self.assertEqual(canary.find_in(text.encode(), canary.forms(self.stage.token)), [], "in the audit log")
        for line in lines:
            where = json.dumps(line)
            self.assertIn(line["kind"], by_kind, where)
            self.assertEqual(set(line), common | by_kind[line["kind"]], where)
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}Z$", where)
            self.assertRegex(line["session"], r"^[0-9a-f]{32}$", where)
            self.assertEqual(line["seq"], last.get(line["session"], 0) + 1, where)
            last[line["session"]] = line["seq"]
            self.assertIn(line.get("entry", ""), ENTRIES, where)
            self.assertRegex(line.get("reason", "none"), r"^[a-z_]+$", where)
            if line["kind"] == "begin":
                self.assertNotIn(line["request"], begun, where)
                begun.add(line["request"])
            if line["kind"] == "end":
                self.assertIn(line["request"], begun - ended, where)
                ended.add(line["request"])

    # --- git ---

    def refs_pushed(self, outcome):
        """{ref: (old, new)} as the audit tells."""
        return {ref["ref"]: (ref["old"], ref["new"]) for line in outcome.audit for ref in line.get("refs") or ()}


def main():
    unittest.main(verbosity=2)
