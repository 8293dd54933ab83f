#include "engine/client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "engine/fake_engine.h"

namespace sallyport::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class EngineClient : public WithFakeEngine {};

TEST_F(EngineClient, AsksAndIsAnswered) {
  std::string request;
  start([&](Connection& connection) {
    request = connection->request;
    connection->send_json(R"({"a":1})", 201);
  });
  const auto answer = ask({.method = "POST", .target = "/things?x=1", .body = "{}"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body, R"({"a":1})");
  EXPECT_EQ(request,
            "POST /things?x=1 HTTP/1.1\r\nHost: sallyport\r\nConnection: close\r\nContent-Type: "
            "application/json\r\n"
            "Content-Length: 2\r\n\r\n{}");
}

TEST_F(EngineClient, ReadsAnAnswerByteByByte) {
  start([&](Connection& connection) {
    const std::string bytes =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;ext=1\r\nd\r\n0\r\n\r\n";
    std::vector<std::function<void()>> steps;
    std::shared_ptr<FakeEngine::Connection> kept = std::move(connection);
    for (const char c : bytes) steps.push_back([kept, c] { kept->send({&c, 1}); });
    in_turns(std::move(steps));
  });
  const auto answer = ask();
  ASSERT_TRUE(answer) << answer.error().detail;
  EXPECT_EQ(answer->body, "abcd");
}

TEST_F(EngineClient, ReadsABodyThatEndsWithTheConnection) {
  answer_with("HTTP/1.0 200 OK\r\n\r\nall of it");
  const auto answer = ask();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "all of it");
}

TEST_F(EngineClient, TakesTheFirstOfTwoAnswers) {
  answer_with("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 500 x\r\n\r\n");
  const auto answer = ask();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
}

TEST_F(EngineClient, RefusesWhatIsNoAnswerOrNoWholeOne) {
  const std::string huge(kMaxAnswerHeadBytes + 1, 'x');
  const std::pair<std::string, std::string> cases[] = {
      {"", "closed the connection before its answer was whole"},
      {"HTTP/1.1 200 OK\r\nContent-Le", "closed the connection before its answer was whole"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
       "closed the connection before its answer was whole"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
       "closed the connection before its answer was whole"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "cannot be read"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + huge + huge, "cannot be read"},
      {"\x15\x03\x01\x02\x02\x32 or so", "cannot be read"},
      {"SSH-2.0-OpenSSH_9.2p1\r\n", "cannot be read"},
      {"HTTP/1.1 200 OK\r\nX: " + huge, "its head has more than 32768 bytes"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n", "it has more than 16777216 bytes"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "cannot be read"},
  };
  for (const auto& [bytes, words] : cases) {
    answer_with(bytes);
    const auto answer = ask();
    ASSERT_FALSE(answer) << bytes.substr(0, 80);
    EXPECT_THAT(answer.error().detail, AllOf(StartsWith("GET /x: "), HasSubstr(words)));
  }
}

TEST_F(EngineClient, RefusesAnEndlessBody) {
  start([&](Connection& connection) {
    connection->send("HTTP/1.1 200 OK\r\n\r\n");
    std::shared_ptr<FakeEngine::Connection> kept = std::move(connection);
    ASSERT_TRUE(os::set_nonblocking(kept->fd.get()));
    const int fd = kept->fd.get();
    loop_.watch(fd, POLLOUT, [this, kept, fd](short) {
      const std::string piece(64 * 1024, 'x');
      if (::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) < 0 && !os::would_block(errno))
        loop_.unwatch(fd);
    });
  });
  const auto answer = ask();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().detail, HasSubstr("it has more than 16777216 bytes"));
}

TEST_F(EngineClient, GivesUpOnAnEngineThatSaysNothing) {
  std::vector<Connection> kept;
  start([&](Connection& connection) { kept.push_back(std::move(connection)); });
  Request request{.method = "GET", .target = "/info", .body = {}};
  request.timeout = std::chrono::milliseconds(20);
  const auto answer = ask(std::move(request));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, Reason::EngineUnavailable);
  EXPECT_EQ(answer.error().detail,
            "the container engine at " + path_ + " did not answer GET /info within 0.02 seconds");
}

TEST_F(EngineClient, SaysHowToStartAnEngine) {
  EXPECT_EQ(ask().error().detail,
            "there is no container engine at " + path_ + ": start it with `sudo systemctl start docker`");
  {
    start([](Connection&) {});
    engine_->pause();
    // Its socket stays when it dies.
    const std::string kept = path_ + ".kept";
    std::filesystem::create_hard_link(path_, kept);
    engine_.reset();
    std::filesystem::rename(kept, path_);
  }
  EXPECT_EQ(ask().error().detail, "the container engine at " + path_ +
                                      " does not run: start it with `sudo systemctl start docker`");
  EXPECT_THAT(cannot_connect("/run/docker.sock", EACCES).detail,
              HasSubstr("`sudo usermod -aG docker $USER`"));
  EXPECT_THAT(cannot_connect("/run/user/7/podman/podman.sock", ENOENT).detail,
              HasSubstr("`systemctl --user start podman.socket`"));
  EXPECT_THAT(cannot_connect("/run/podman/podman.sock", ECONNREFUSED).detail,
              HasSubstr("`sudo systemctl start podman.socket`"));
  Client far(loop_, std::string(200, 'x'));
  std::string words;
  const Call call = far.request({}, [&](const Result<Answer>& answer) {
    words = answer.error().detail;
    stop();
  });
  run();
  EXPECT_THAT(words, HasSubstr("File name too long"));
}

TEST_F(EngineClient, CallsNobodyBackWhoHasCancelled) {
  Call call;
  start([&](Connection& connection) {
    call.reset();
    connection->send_json("{}");
    loop_.after(std::chrono::milliseconds(0), [&] { stop(); });
  });
  call =
      client_->request({.method = "GET", .target = "/x", .body = {}}, [](const Result<Answer>&) { FAIL(); });
  run();
}

TEST_F(EngineClient, MayBeAskedAgainFromItsOwnCallback) {
  int left = 5;
  Call call;
  std::function<void()> next = [&] {
    call = client_->request({.method = "GET", .target = "/x", .body = {}}, [&](const Result<Answer>& answer) {
      EXPECT_TRUE(answer);
      if (--left == 0) return stop();
      next();
    });
  };
  answer_with("HTTP/1.1 204 x\r\n\r\n");
  next();
  run();
  EXPECT_EQ(engine_->connections, 5);
}

TEST_F(EngineClient, LetsOnlySoManyRequestsRunAtOnce) {
  std::vector<Connection> held;
  start([&](Connection& connection) {
    EXPECT_LT(held.size(), kMaxRequests);
    held.push_back(std::move(connection));
    if (held.size() < kMaxRequests) return;
    // One turn for others that should not be there.
    loop_.after(std::chrono::milliseconds(0), [&] {
      for (auto& each : held) each->send_json("{}");
      held.clear();
    });
  });
  std::size_t answered = 0;
  std::vector<Call> calls;
  for (std::size_t i = 0; i < 3 * kMaxRequests; ++i) {
    calls.push_back(
        client_->request({.method = "GET", .target = "/x", .body = {}}, [&](const Result<Answer>& answer) {
          EXPECT_TRUE(answer);
          if (++answered == 2 * kMaxRequests) stop();
        }));
  }
  calls.resize(2 * kMaxRequests);  // those that wait may be cancelled too
  run();
  EXPECT_EQ(engine_->connections, static_cast<int>(2 * kMaxRequests));
}

TEST_F(EngineClient, RefusesMoreThanMayWait) {
  std::vector<Call> calls;
  std::vector<Connection> held;
  start([&](Connection& connection) { held.push_back(std::move(connection)); });
  std::string words;
  for (std::size_t i = 0; i <= kMaxRequests + kMaxQueuedRequests; ++i) {
    calls.push_back(
        client_->request({.method = "GET", .target = "/x", .body = {}}, [&](const Result<Answer>& answer) {
          words = answer ? "answered" : answer.error().detail;
          stop();
        }));
  }
  run();
  EXPECT_EQ(words, "more than 4096 requests wait for the container engine");
}

TEST_F(EngineClient, TriesAgainWhenTheBacklogIsFull) {
  start([](Connection& connection) { connection->send_json("{}"); }, 0);
  engine_->pause();
  loop_.after(std::chrono::milliseconds(1), [&] { engine_->resume(); });
  std::size_t answered = 0;
  std::vector<Call> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(
        client_->request({.method = "GET", .target = "/x", .body = {}}, [&](const Result<Answer>& answer) {
          EXPECT_TRUE(answer);
          if (++answered == 4) stop();
        }));
  }
  run();
}

Fd file_of(const std::string& text) {
  Fd file(::memfd_create("body", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

TEST_F(EngineClient, SendsAFileWhole) {
  const std::string text(3'000'000, 'y');
  std::string request;
  start([&](Connection& connection) {
    request = connection->request;
    connection->send_json("{}");
  });
  Request upload{.method = "POST", .target = "/images/create?fromSrc=-", .body = {}};
  upload.file = file_of(text);
  ASSERT_TRUE(ask(std::move(upload)));
  EXPECT_THAT(request,
              AllOf(HasSubstr("Content-Length: 3000000\r\n"), HasSubstr("Content-Type: application/x-tar")));
  EXPECT_TRUE(request.ends_with("\r\n\r\n" + text));
}

TEST_F(EngineClient, HearsWhyAnUploadIsNotRead) {
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  loop_.watch(listener.get(), POLLIN, [&](short) {
    FakeEngine::Connection connection{Fd(::accept(listener.get(), nullptr, nullptr)), ""};
    connection.send_json(R"({"message":"no space"})", 507);
    loop_.unwatch(listener.get());
  });
  Request upload{.method = "POST", .target = "/images/create", .body = {}};
  upload.file = file_of(std::string(5'000'000, 'y'));
  const auto answer = ask(std::move(upload));
  ASSERT_TRUE(answer) << answer.error().detail;
  EXPECT_EQ(refusal(*answer, "POST /images/create").detail,
            "the container engine answered POST /images/create with 507: no space");
}

TEST_F(EngineClient, SendsNothingButRegularFiles) {
  auto pair = os::socket_pair(os::SocketKind::Stream);
  ASSERT_TRUE(pair);
  Request upload{.method = "POST", .target = "/images/create", .body = {}};
  upload.file = std::move(pair->first);
  const auto answer = ask(std::move(upload));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().detail, "what shall be sent to the container engine is no regular file");
}

TEST_F(EngineClient, TellsTheEnginesOwnWords) {
  EXPECT_EQ(refusal({404, R"({"message":"No such container: x"})"}, "GET /containers/x/json").reason,
            Reason::EngineNotFound);
  EXPECT_EQ(refusal({409, R"({"message":"name in use"})"}, "POST /c").detail,
            "the container engine answered POST /c with 409: name in use");
  EXPECT_EQ(refusal({500, "<html>"}, "POST /c").detail,
            "the container engine answered POST /c with 500: it does not say why");
  EXPECT_EQ(refusal({500, R"({"message":"\u001b[31m"})"}, "POST /c").detail,
            "the container engine answered POST /c with 500: \\x1b[31m");
}

class RawConnection : public WithFakeEngine {
 protected:
  Result<RawStream> ask_raw() {
    Result<RawStream> result = fail(Reason::Internal, "never called");
    const Call call = client_->raw({.method = "POST", .target = "/exec/1/start", .body = "{}"},
                                   [&](Result<RawStream> stream) {
                                     result = std::move(stream);
                                     stop();
                                   });
    run();
    return result;
  }
};

TEST_F(RawConnection, IsHandedOverWithWhatCameAlready) {
  for (const char* head : {"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n"}) {
    Connection kept;
    start([&](Connection& connection) {
      EXPECT_THAT(connection->request, HasSubstr("Connection: Upgrade\r\nUpgrade: tcp\r\n"));
      connection->send(std::string(head) + "first");
      kept = std::move(connection);
    });
    auto stream = ask_raw();
    ASSERT_TRUE(stream) << stream.error().detail;
    EXPECT_EQ(stream->already_read, "first");
    ASSERT_EQ(::write(stream->fd.get(), "in", 2), 2);
    char bytes[8];
    EXPECT_EQ(::recv(kept->fd.get(), bytes, sizeof bytes, 0), 2);
    kept->send("out");
    ASSERT_TRUE(*os::wait_readable(stream->fd.get(), std::chrono::seconds(10)));
    EXPECT_EQ(::recv(stream->fd.get(), bytes, sizeof bytes, 0), 3);
  }
}

TEST_F(RawConnection, IsNotThereWhenTheEngineRefuses) {
  start([](Connection& connection) { connection->send_json(R"({"message":"is paused"})", 409); });
  EXPECT_EQ(ask_raw().error().detail, "the container engine answered /exec/1/start with 409: is paused");
}

constexpr char kVersion[] = R"({"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12",
  "Components":[{"Name":"Engine"}]})";
constexpr char kInfo[] =
    R"({"ID":"ABCD","Driver":"overlay2","CgroupVersion":"1","DockerRootDir":"/var/lib/docker",
  "SecurityOptions":["name=seccomp,profile=default","name=apparmor"],"LiveRestoreEnabled":true,"DefaultRuntime":"runc"})";

class Negotiating : public WithFakeEngine {
 protected:
  Result<EngineInfo> negotiate(const std::string& version, const std::string& info) {
    start([=, this](Connection& connection) {
      if (connection->is("GET /version ")) return connection->send_json(version);
      info_line_ = connection->request.substr(0, connection->request.find('\r'));
      connection->send_json(info, info.empty() ? 500 : 200);
    });
    Result<EngineInfo> result = fail(Reason::Internal, "never called");
    Call call = client_->negotiate([&](Result<EngineInfo> told) {
      result = std::move(told);
      call.reset();  // it may
      stop();
    });
    run();
    return result;
  }
  std::string info_line_;
};

TEST_F(Negotiating, FindsTheVersionAndWhatTheEngineCan) {
  const auto info = negotiate(kVersion, kInfo);
  ASSERT_TRUE(info) << info.error().detail;
  EXPECT_EQ(info_line_, "GET /v1.41/info HTTP/1.1");
  EXPECT_EQ(info->kind, EngineKind::Docker);
  EXPECT_EQ(info->cgroups, CgroupVersion::One);
  EXPECT_TRUE(info->seccomp && info->apparmor && info->live_restore);
  EXPECT_FALSE(info->user_namespaces);
  EXPECT_EQ(info->privilege, Privilege::Root);
}

TEST_F(Negotiating, KnowsPodmanWithoutRoot) {
  const auto info = negotiate(
      R"({"Version":"4.3.1","ApiVersion":"1.41","MinAPIVersion":"1.24","Components":[{"Name":"Podman Engine"}]})",
      R"({"Driver":"overlay","CgroupVersion":"2","SecurityOptions":["name=rootless"]})");
  ASSERT_TRUE(info) << info.error().detail;
  EXPECT_EQ(info->kind, EngineKind::Podman);
  EXPECT_EQ(info->privilege, Privilege::Rootless);
  EXPECT_EQ(info->cgroups, CgroupVersion::Two);
}

TEST_F(Negotiating, SpeaksOlderThanANewEngineCould) {
  ASSERT_TRUE(negotiate(R"({"Version":"29.0","ApiVersion":"1.52","MinAPIVersion":"1.44"})", kInfo));
  EXPECT_EQ(info_line_, "GET /v1.44/info HTTP/1.1");
}

TEST_F(Negotiating, RefusesEnginesTooOldOrTooNew) {
  EXPECT_EQ(
      negotiate(R"({"Version":"19.03","ApiVersion":"1.40","MinAPIVersion":"1.12"})", kInfo).error().detail,
      "Docker 19.03 speaks version 1.12 to 1.40 of the engine's API, Sallyport 1.41 to 1.44: update Docker");
  EXPECT_THAT(
      negotiate(R"({"Version":"40","ApiVersion":"1.99","MinAPIVersion":"1.45"})", kInfo).error().detail,
      HasSubstr("update Sallyport"));
}

TEST_F(Negotiating, RefusesWhatMakesNoSense) {
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "no object"},
      {"", "no JSON"},
      {R"({"Version":"1"})", "ApiVersion: missing"},
      {R"({"Version":"1","ApiVersion":"latest"})", "version is none"},
      {R"({"Version":"1","ApiVersion":"1.41","MinAPIVersion":"0x1.2"})", "version is none"},
  };
  for (const auto& [version, words] : cases) {
    EXPECT_THAT(negotiate(version, kInfo).error().detail, HasSubstr(words));
  }
  EXPECT_THAT(negotiate(kVersion, "{}").error().detail, HasSubstr("Driver: missing"));
  EXPECT_THAT(negotiate(kVersion, "").error().detail, HasSubstr("GET /info with 500"));
}

}  // namespace
}  // namespace sallyport::engine
