// A whole session as a probe: diagnose_session() of diagnosis.h.

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/random.h"
#include "session/diagnosis.h"
#include "session/session.h"

namespace sallyport::session {
namespace {

// A folder of its own for the trial, gone with it.
class Ground {
 public:
  static Result<std::unique_ptr<Ground>> make(const Identities& identities) {
    std::error_code error;
    // Root's TMPDIR may be closed to whom the sandbox runs as.
    const std::filesystem::path parent =
        identities.become_sandbox ? "/tmp" : std::filesystem::temp_directory_path(error);
    std::string path = parent.string() + "/sallyport-trial-XXXXXX";
    if (error || ::mkdtemp(path.data()) == nullptr) return fail_errno(Reason::Internal, "make " + path);
    std::unique_ptr<Ground> ground(new Ground(path));
    const bool made = ::chmod(path.c_str(), 0711) == 0 && ::mkdir(ground->work().c_str(), 0700) == 0 &&
                      ::mkdir(ground->state().c_str(), 0700) == 0;
    const auto& owner = identities.become_sandbox;
    if (!made || (owner && ::chown(ground->work().c_str(), owner->uid, owner->gid) != 0)) {
      return fail_errno(Reason::Internal, "make a folder in " + path);
    }
    return ground;
  }
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;
  ~Ground() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string work() const { return path_ + "/work"; }
  std::string state() const { return path_ + "/state"; }

 private:
  explicit Ground(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Request trial_request(const Ground& ground, const Identities& identities) {
  Request request;
  request.command = {"true"};
  request.working_directory = ground.work();
  request.home = identities.home;
  request.sources.policy_path = ground.work() + "/sallyport.toml";
  request.sources.config_path = ground.state() + "/config.toml";
  request.sources.trust_folder = ground.state() + "/trust";
  request.audit_path = ground.state() + "/audit.jsonl";
  request.state_folder = ground.state();
  return request;
}

Result<std::array<Fd, 3>> no_stdio() {
  std::array<Fd, 3> stdio;
  for (Fd& fd : stdio) {
    fd = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!fd) return fail_errno(Reason::Internal, "/dev/null");
  }
  return stdio;
}

// "": it went well.
Result<std::string> run_trial(const Identities& identities) {
  auto ground = Ground::make(identities);
  if (!ground) return fail(std::move(ground));
  auto stdio = no_stdio();
  if (!stdio) return fail(std::move(stdio));
  ::setenv(kCanaryVariable, random_hex(16).c_str(), 1);
  os::EventLoop loop;
  Gateway gateway(loop);
  std::string problem;
  Session session(loop, gateway, trial_request(**ground, identities), std::move(*stdio),
                  {.on_notice = [](const std::string&) {},
                   .on_started = [] {},
                   .on_stopped = [] {},
                   .on_finished =
                       [&](int exit_code, const std::string&) {
                         if (exit_code != 0) problem = fmt::format("`true` failed in it, with {}", exit_code);
                         loop.stop();
                       },
                   .on_failed =
                       [&](const std::string& text) {
                         problem = text;
                         loop.stop();
                       }});
  const auto heard = loop.on_signals({SIGINT, SIGTERM, SIGHUP}, [&](int) { session.abandon("interrupted"); });
  if (!heard) return fail(Result<void>(heard));
  // From within the loop: a start may fail at once.
  loop.after(std::chrono::milliseconds(0), [&] { session.start(); });
  if (auto status = loop.run(); !status) return fail(std::move(status));
  return problem;
}

}  // namespace

Diagnosis diagnose_session(const Identities& identities) {
  const auto problem = run_trial(identities);
  if (!problem) return {.health = Health::Broken, .detail = problem.error().detail};
  if (!problem->empty()) return {.health = Health::Broken, .detail = *problem};
  return {.health = Health::Ok,
          .detail = "gate and vault confined themselves, the pre-flight passed, a command ran"};
}

}  // namespace sallyport::session
