#!/usr/bin/python3
"""The harness's own checks: a test of a refusal that does not look at it properly fails."""

import unittest

import harness
from harness import E2E, Flavour, Outcome


class FakeForge:
    def pids(self):
        return []


class FakeStage:
    """A stage on which every run comes to `audit`, and `sent` requests reach the forge meanwhile."""

    def __init__(self, *events, sent=0):
        self.events, self.sent = events, sent
        self.token, self.forge, self.snapshot = "canary", FakeForge(), self
        self._audit, self._traffic = [], 0

    def run(self, *_, **__):
        common, by_kind = harness.audit_schema()
        lines = []
        for event in self.events:
            line = dict.fromkeys(common | by_kind[event["kind"]], "") | {
                "time": "2026-01-01T00:00:00.000000Z", "session": "0" * 32, "reason": "none", "entry": "tls"} | event
            self._audit.append(line | {"seq": len(self._audit) + 1})
            lines.append(self._audit[-1])
        self._traffic += self.sent
        return Outcome(1, b"", b"", lines)

    def traffic(self):
        return self._traffic

    def audit(self):
        return self._audit

    def left_over(self, _):
        return []

    def end_runs(self):
        pass

    def close(self):
        pass


def refused(reason="not_git", request="a", **more):
    return {"kind": "refused", "reason": reason, "request": request} | more


BEGIN = {"kind": "begin", "request": "b"}


class RefusalCheck(unittest.TestCase):
    def outcome_of(self, stage, body):
        """What becomes of a test with that body on that stage: "" or why it failed."""
        class Case(E2E):
            flavour = Flavour.ROOTLESS

            def make_stage(self):
                return stage

            def runTest(self):
                body(self)

        result = unittest.TestResult()
        Case().run(result)
        self.assertEqual(result.testsRun, 1)
        return "".join(text for _, text in result.failures + result.errors)

    def test_a_refusal_that_is_asserted_passes(self):
        self.assertEqual("", self.outcome_of(FakeStage(refused()), lambda case: case.assert_refused("not_git", "x")))

    def test_a_test_that_asserts_nothing_of_a_refusal_fails(self):
        for body in (lambda case: case.run_inside("x"),
                     lambda case: case.assert_failed(case.run_inside("x")),
                     lambda case: case.assertEqual(case.run_inside("x").events("refused")[0]["reason"], "not_git")):
            self.assertIn("no assertion spoke for it", self.outcome_of(FakeStage(refused()), body))

    def test_what_nobody_judged_needs_no_assertion(self):
        stage = FakeStage(*(refused(reason) for reason in ("client_closed", "vault_unavailable", "process_died")))
        self.assertEqual("", self.outcome_of(stage, lambda case: case.run_inside("x")))
        self.assertEqual("", self.outcome_of(FakeStage(), lambda case: case.run_inside("x")))

    def test_a_second_refusal_that_nobody_looks_at_fails(self):
        def body(case):
            case.assert_refused("not_git", "x")
            case.run_inside("x")
        self.assertIn("no assertion spoke for it", self.outcome_of(FakeStage(refused()), body))

    def test_what_is_wrong_with_a_refusal_fails(self):
        for why, stage in (("another reason", FakeStage(refused("bad_request"))),
                           ("no line", FakeStage()),
                           ("two lines", FakeStage(refused(request="a"), refused(request="b"))),
                           ("no id", FakeStage(refused(request=""))),
                           ("something was allowed", FakeStage(refused(), BEGIN)),
                           ("a credential was used", FakeStage(refused(), {"kind": "credential", "request": "b"})),
                           ("something was sent", FakeStage(refused(), sent=1))):
            with self.subTest(why):
                self.assertNotEqual("", self.outcome_of(stage, lambda case: case.assert_refused("not_git", "x")))

    def test_an_open_number_of_lines_is_for_dns(self):
        asked_twice = [refused("host_not_allowed", name, entry="dns") for name in "ab"]
        body = lambda case: case.assert_refused("host_not_allowed", "x", lines=None)  # noqa: E731
        self.assertEqual("", self.outcome_of(FakeStage(*asked_twice), body))
        self.assertIn("lines=None is for DNS", self.outcome_of(FakeStage(refused("host_not_allowed")), body))

    def test_a_command_that_succeeds_is_not_refused(self):
        stage = FakeStage(refused())
        self.assertNotEqual("", self.outcome_of(stage, lambda case: case.assert_refused("not_git", "x", succeeds=True)))


if __name__ == "__main__":
    harness.main()
