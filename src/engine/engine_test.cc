#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "engine/fake_engine.h"

namespace sallyport::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What a real engine does with these calls is tested in tests/e2e/test_engine.py.
class EngineCalls : public WithFakeEngine {
 protected:
  void answer_json(std::string body, int status = 200) {
    start([this, body = std::move(body), status](Connection& connection) {
      request_ = connection->request;
      connection->send_json(body, status);
    });
  }
  template <class T>
  On<T> into(Result<T>& result) {
    return [this, &result](Result<T> value) {
      result = std::move(value);
      stop();
    };
  }
  // The call's status; "" when it is done.
  std::string done(const std::function<Call(OnDone)>& begin) {
    Status status;
    const Call call = begin([&](Status told) {
      status = std::move(told);
      stop();
    });
    run();
    return status ? "" : status.error().detail;
  }
  std::string line() const { return request_.substr(0, request_.find(" HTTP/")); }

  Engine calls_{*client_};
  std::string request_;
};

TEST_F(EngineCalls, EncodeNames) {
  EXPECT_EQ(encoded("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(encoded("a/../b?c=d&e#f %\r\n\xff"), "a%2F..%2Fb%3Fc%3Dd%26e%23f%20%25%0D%0A%FF");
  answer_json("{}", 404);
  Result<ContainerState> state;
  const Call call = calls_.inspect("x\r\nEvil: 1/../../y", into(state));
  run();
  EXPECT_EQ(line(), "GET /containers/x%0D%0AEvil%3A%201%2F..%2F..%2Fy/json");
  EXPECT_EQ(state.error().reason, Reason::EngineNotFound);
}

TEST_F(EngineCalls, AreDoneWhenItIsSoAlready) {
  answer_json("", 304);
  EXPECT_EQ(done([&](OnDone on_done) { return calls_.start("c", std::move(on_done)); }), "");
  EXPECT_EQ(
      done([&](OnDone on_done) { return calls_.stop("c", std::chrono::seconds(3), std::move(on_done)); }),
      "");
  EXPECT_EQ(line(), "POST /containers/c/stop?t=3");
  answer_json(R"({"message":"No such container: c"})", 404);
  EXPECT_EQ(done([&](OnDone on_done) { return calls_.remove("c", Force::Yes, std::move(on_done)); }), "");
  EXPECT_EQ(line(), "DELETE /containers/c?v=1&force=1");
  EXPECT_EQ(done([&](OnDone on_done) { return calls_.start("c", std::move(on_done)); }),
            "the container engine answered POST /containers/c/start with 404: No such container: c");
}

TEST_F(EngineCalls, ReadAList) {
  answer_json(R"([{"Id":"1","Names":["/a","/b/a"],"ImageID":"sha256:x","State":"exited","Labels":{"l":"v"},
                   "HostConfig":{"NetworkMode":"none"}},
                  {"Id":"2","Names":null,"ImageID":"sha256:y","State":"created","Labels":null}])");
  Result<std::vector<ListedContainer>> list;
  const Call call = calls_.list("l=v", into(list));
  run();
  EXPECT_EQ(line(), "GET /containers/json?all=1&filters=%7B%22label%22%3A%5B%22l%3Dv%22%5D%7D");
  ASSERT_TRUE(list) << list.error().detail;
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ((*list)[0].name, "a");
  EXPECT_EQ((*list)[0].labels.at("l"), "v");
  EXPECT_EQ((*list)[0].network_mode, "none");
  EXPECT_EQ((*list)[1].name, "");
  EXPECT_EQ((*list)[1].network_mode, "");
}

TEST_F(EngineCalls, RefuseAListThatMakesNoSense) {
  for (const auto& [body, words] : {std::pair{"{}", "containers: not a list"},
                                    {"[1]", "containers[0]: not an object"},
                                    {R"([{"Id":"1"}])", "containers[0].ImageID: missing"}}) {
    answer_json(body);
    Result<std::vector<ListedContainer>> list;
    const Call call = calls_.list("l", into(list));
    run();
    ASSERT_FALSE(list);
    EXPECT_THAT(list.error().detail, HasSubstr(words));
  }
}

TEST_F(EngineCalls, FindAnErrorInTheProgressOfAnImport) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"status\":\"Extracting\"}\r\n{\"status\":\"sha256:abc\"}\r\n", nullptr},
      {"{\"status\":\"x\"}\r\n{\"errorDetail\":{},\"error\":\"no space\"}\r\n",
       "the container engine could not import the image: no space"},
      {"", "the container engine imported an image, and does not say which"},
      {"{\"status\":\"x\"}", "the container engine imported an image, and does not say which"},
  };
  for (const auto& [body, words] : cases) {
    answer_json(body);
    Result<std::string> id;
    const Call call = calls_.import_image(Fd(::memfd_create("tar", MFD_CLOEXEC)), "r/n", "t", into(id));
    run();
    EXPECT_EQ(line(), "POST /images/create?fromSrc=-&repo=r%2Fn%3At");
    EXPECT_EQ(id ? "sha256:abc" : id.error().detail, words == nullptr ? "sha256:abc" : words);
  }
}

TEST_F(EngineCalls, ReadAnImage) {
  answer_json(R"({"Id":"sha256:x","RepoTags":["a:b"],"Architecture":"amd64","Config":{"User":"7","Cmd":["c"],
                  "Entrypoint":null,"Env":["A=b"],"WorkingDir":"/w","Volumes":{"/v":{}}}})");
  Result<ImageState> image;
  const Call call = calls_.inspect_image("a:b", into(image));
  run();
  ASSERT_TRUE(image) << image.error().detail;
  EXPECT_EQ(image->user, "7");
  EXPECT_THAT(image->command, ElementsAre("c"));
  EXPECT_THAT(image->volumes, ElementsAre("/v"));
}

TEST_F(EngineCalls, TellAPlainVolumeFromOthers) {
  for (const auto& [body, plain] : {std::pair{R"({"Name":"v","Driver":"local","Options":null})", true},
                                    {R"({"Name":"v","Driver":"local","Options":{}})", true},
                                    {R"({"Name":"v","Driver":"local","Options":{"device":"/"}})", false},
                                    {R"({"Name":"v","Driver":"nfs","Options":null})", false}}) {
    answer_json(body);
    Result<VolumeState> volume;
    const Call call = calls_.inspect_volume("v", into(volume));
    run();
    ASSERT_TRUE(volume);
    EXPECT_EQ(volume->plain(), plain) << body;
  }
}

TEST_F(EngineCalls, SayWhatShallBeExecuted) {
  answer_json(R"({"Id":"e"})", 201);
  ExecSpec spec;
  spec.command = {"a", "b"};
  spec.user = "1";
  spec.environment = {"A=b"};
  spec.working_directory = "/w";
  spec.terminal = true;
  Result<std::string> id;
  const Call call = calls_.exec_create("c", spec, into(id));
  run();
  EXPECT_EQ(*id, "e");
  EXPECT_THAT(request_,
              HasSubstr(R"({"Cmd":["a","b"],"AttachStdin":false,"AttachStdout":true,"AttachStderr":true,)"
                        R"("Tty":true,"Env":["A=b"],"User":"1","WorkingDir":"/w"})"));
}

TEST_F(EngineCalls, AskForNoMoreLogThanTheLimit) {
  answer_json("x");
  Result<std::string> text;
  const Call call = calls_.logs("c", 4'000'000, into(text));
  run();
  EXPECT_EQ(*text, "x");
  EXPECT_THAT(line(), StartsWith("GET /containers/c/logs?stdout=1&stderr=1&tail=10000"));
}

}  // namespace
}  // namespace sallyport::engine
