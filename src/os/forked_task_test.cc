#include "os/forked_task.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

namespace sallyport::os {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = ForkedTask::Texts;

class ForkedTaskTest : public ::testing::Test {
 protected:
  struct Answer {
    Texts said;
    Status whole = fail(Reason::Internal, "not called");
  };
  Answer run(const ForkedTask::Work& work, std::vector<int> kept = {},
             std::chrono::milliseconds limit = 60s) {
    Answer answer;
    auto task = ForkedTask::start(loop_, work, std::move(kept), limit, [&](Texts said, Status whole) {
      answer = {std::move(said), std::move(whole)};
      loop_.stop();
    });
    if (!task) return {{}, fail(std::move(task))};
    EXPECT_TRUE(loop_.run());
    return answer;
  }

  EventLoop loop_;
};

TEST_F(ForkedTaskTest, GivesTheTextsWhateverTheyHold) {
  const Texts texts = {"one", "", std::string("a\0b:7\n", 6), std::string(300'000, 'x')};
  const Answer answer = run([&](const ForkedTask::Say& say) {
    for (const std::string& text : texts) say(text);
  });
  EXPECT_TRUE(answer.whole) << answer.whole.error().detail;
  EXPECT_EQ(answer.said, texts);
  const Answer nothing = run([](const ForkedTask::Say&) {});
  EXPECT_TRUE(nothing.whole);
  EXPECT_TRUE(nothing.said.empty());
}

TEST_F(ForkedTaskTest, TheLoopGoesOnMeanwhile) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reading(ends[0]);
  const Fd writing(ends[1]);
  loop_.after(0ms, [&] { EXPECT_EQ(::write(writing.get(), "y", 1), 1); });
  // It waits for a word that only the loop can say.
  const Answer answer = run(
      [&](const ForkedTask::Say& say) {
        char word = 'n';
        say(::read(reading.get(), &word, 1) == 1 ? std::string(1, word) : "nothing");
      },
      {reading.get()});
  EXPECT_THAT(answer.said, ElementsAre("y"));
}

TEST_F(ForkedTaskTest, HasTheDescriptorsThatItKeepsAndNoOthers) {
  const Fd kept(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd also(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Answer answer = run(
      [&](const ForkedTask::Say& say) {
        for (const Fd* fd : {&also, &kept, &other}) {
          say(::fcntl(fd->get(), F_GETFD) >= 0 ? "open" : "closed");
        }
      },
      {also.get(), kept.get()});
  EXPECT_THAT(answer.said, ElementsAre("open", "open", "closed"));
}

[[noreturn]] void say_and_stay(const ForkedTask::Say& say) {
  say("first");
  for (;;) ::pause();
}

TEST_F(ForkedTaskTest, FailsWhenItTakesTooLong) {
  EXPECT_THAT(run(say_and_stay, {}, 1ms).whole.error().detail, HasSubstr("too long"));
}

TEST_F(ForkedTaskTest, WhatItSaidBeforeItWasKilledCounts) {
  const Answer answer = run([](const ForkedTask::Say& say) {
    say("first");
    ::raise(SIGKILL);
  });
  EXPECT_THAT(answer.whole.error().detail, HasSubstr("signal 9"));
  EXPECT_THAT(answer.said, ElementsAre("first"));
}

TEST_F(ForkedTaskTest, IsNotWholeWhenItThrowsOrSaysTooMuch) {
  const Answer thrown = run([](const ForkedTask::Say& say) {
    say("first");
    throw std::runtime_error("x");
  });
  EXPECT_THAT(thrown.whole.error().detail, HasSubstr("exit code 1"));
  EXPECT_THAT(thrown.said, ElementsAre("first"));
  const Answer much =
      run([](const ForkedTask::Say& say) { say(std::string(ForkedTask::kMaxAnswerBytes, 'x')); });
  EXPECT_THAT(much.whole.error().detail, HasSubstr("too much"));
}

TEST_F(ForkedTaskTest, EndsWithTheOneWhoAsked) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  auto task = ForkedTask::start(loop_, say_and_stay, {writing.get()}, 60s, [](const Texts&, const Status&) {
    ADD_FAILURE() << "nobody waits for it any more";
  });
  ASSERT_TRUE(task) << task.error().detail;
  writing.reset();
  task->reset();
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0);  // nobody has the other end
}

TEST_F(ForkedTaskTest, CanBeWaitedForWithoutTheLoop) {
  const Fd made(::memfd_create("made", MFD_CLOEXEC));
  auto task = ForkedTask::start(
      loop_,
      [&](const ForkedTask::Say& say) {
        say(std::string(1 << 20, 'x'));  // more than a pipe holds
        EXPECT_EQ(::write(made.get(), "x", 1), 1);
      },
      {made.get()}, 60s, [](const Texts&, const Status&) { ADD_FAILURE() << "nobody ran the loop"; });
  ASSERT_TRUE(task) << task.error().detail;
  (*task)->wait(60s);
  task->reset();
  EXPECT_EQ(::lseek(made.get(), 0, SEEK_END), 1);
}

TEST_F(ForkedTaskTest, MayBeDestroyedByItsAnswer) {
  std::unique_ptr<ForkedTask> task;
  auto started = ForkedTask::start(
      loop_, [](const ForkedTask::Say& say) { say("x"); }, {}, 60s,
      [&](const Texts& said, const Status&) {
        task.reset();
        EXPECT_THAT(said, ElementsAre("x"));
        loop_.stop();
      });
  ASSERT_TRUE(started) << started.error().detail;
  task = std::move(*started);
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(task, nullptr);
}

}  // namespace
}  // namespace sallyport::os
