#include "session/workspace_looks.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "os/act_as.h"
#include "sandbox/git_links.h"

namespace sallyport::session {
namespace {

using Texts = os::ForkedTask::Texts;

// The links; an empty text; and of each armed repository its path and what it would run.
void say_first_look(const os::ForkedTask::Say& say, const sandbox::WorkspaceGuard& guard,
                    const std::optional<os::Ids>& become) {
  for (const std::string& link : sandbox::links_before(guard)) say(link);
  say("");
  for (const auto& [path, print] : sandbox::armed_repositories(guard, become)) {
    say(path);
    say(print);
  }
}

}  // namespace

WorkspaceLooks::WorkspaceLooks(os::EventLoop& loop, os::FileWatcher& watcher,
                               const sandbox::WorkspaceGuard& guard, std::optional<os::Ids> become,
                               Report report)
    : loop_(loop), watcher_(watcher), guard_(guard), become_(std::move(become)), report_(std::move(report)) {}

WorkspaceLooks::~WorkspaceLooks() {
  if (looking_ && copy_) copy_->wait(kLookLimit);
}

void WorkspaceLooks::begin(std::function<void(Status)> done) {
  watch_.emplace(watcher_, guard_, report_);
  if (auto status = watch_->begin(); !status) return done(status);
  if (nothing_to_look_at()) {
    looked_ = true;
    return done({});
  }
  ask_copy([this](const os::ForkedTask::Say& say) { say_first_look(say, guard_, become_); },
           [this, done = std::move(done)](Texts said, const Status& whole) {
             done(on_first(std::move(said), whole));
           });
}

Status WorkspaceLooks::on_first(Texts said, const Status& whole) {
  if (!whole) {
    return fail(
        Reason::Internal,
        fmt::format("the repositories in {} cannot be looked at ({}). Has an earlier sandbox filled "
                    "them? Look for links and for folders that you do not know (`find .git -type l`), "
                    "and remove them",
                    tops(), whole.error().detail));
  }
  auto text = said.begin();
  while (!text->empty()) links_.insert(std::move(*text++));
  for (++text; text != said.end(); text += 2) armed_.emplace(std::move(text[0]), std::move(text[1]));
  looked_ = true;
  return {};
}

// Without the first look nobody knows what is the user's own; and no sandbox was there.
void WorkspaceLooks::look_last(std::function<void()> done) {
  if (looked_) look();
  watch_.reset();
  copy_.reset();
  if (!looked_ || nothing_to_look_at()) return done();
  looking_ = true;
  // What would run programs first: links without end are no way to keep it there.
  ask_copy(
      [this](const os::ForkedTask::Say& say) {
        for (const auto& finding : sandbox::set_armed_repositories_aside(guard_, armed_, become_)) {
          say(finding.text);
        }
        for (const auto& finding : sandbox::set_links_aside(guard_, links_)) say(finding.text);
      },
      [this, done = std::move(done)](const Texts& said, const Status& whole) {
        looking_ = false;
        on_last(said, whole);
        done();
      });
}

// What is found then ends nothing any more: the texts are all there is to it.
void WorkspaceLooks::on_last(const Texts& said, const Status& whole) {
  std::vector<sandbox::Finding> findings;
  for (const std::string& text : said) findings.push_back({sandbox::Finding::Consequence::Report, text});
  if (!whole) {
    findings.push_back(
        {sandbox::Finding::Consequence::Report,
         fmt::format(
             "what the sandbox left in {} was not looked at to its end ({}): call no git there before "
             "you have looked for repositories and links that you do not know, and removed them",
             tops(), whole.error().detail)});
  }
  report_(findings);
}

std::string WorkspaceLooks::tops() const {
  std::string text;
  for (const sandbox::GuardedTop& top : guard_.tops) {
    if (!text.empty()) text += " and ";
    text += escaped(guard_.folders[top.folder].path);
  }
  return text;
}

void WorkspaceLooks::ask_copy(const os::ForkedTask::Work& work, os::ForkedTask::Done done) {
  std::vector<int> kept;
  for (const sandbox::GuardedFolder& folder : guard_.folders) kept.push_back(folder.fd.get());
  // As the client from the start, so that the copy ends with this process.
  auto copy = [&] {
    const os::ActAs as_client(guard_.client);
    return os::ForkedTask::start(loop_, work, std::move(kept), kLookLimit, done);
  }();
  if (!copy) return done({}, fail(std::move(copy)));
  copy_ = std::move(*copy);
}

}  // namespace sallyport::session
