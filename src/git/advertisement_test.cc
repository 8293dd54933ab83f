#include "git/advertisement.h"

#include <gtest/gtest.h>

#include "git/pktline.h"

namespace sallyport::git {
namespace {

using namespace std::string_literals;
using policy::GitService;

std::string pkts(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    if (line.empty()) {
      out += kFlushPkt;
    } else {
      append_pkt(out, line);
    }
  }
  return out;
}

std::string filtered(GitService service, const std::string& bytes) {
  AdvertisementFilter whole(service);
  const std::string out = whole.feed(bytes).value();
  EXPECT_TRUE(whole.finish());
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    AdvertisementFilter pieces(service);
    std::string again = pieces.feed(bytes.substr(0, cut)).value();
    again += pieces.feed(bytes.substr(cut)).value();
    EXPECT_EQ(again, out) << cut;
  }
  return out;
}

TEST(Advertisement, OfV2LosesWhatNamesOtherHosts) {
  const std::vector<std::string> service{"# service=git-upload-pack\n", ""};
  for (const bool with_service : {false, true}) {
    std::vector<std::string> in{"version 2\n",           "agent=git/2.55\n",
                                "bundle-uri\n",          "fetch=shallow packfile-uris filter\n",
                                "packfile-uris=https\n", "promisor-remote=name=x,url=https://evil.test\n",
                                "server-option\n",       ""};
    std::vector<std::string> out{"version 2\n", "agent=git/2.55\n", "fetch=shallow filter\n",
                                 "server-option\n", ""};
    if (with_service) {
      in.insert(in.begin(), service.begin(), service.end());
      out.insert(out.begin(), service.begin(), service.end());
    }
    EXPECT_EQ(filtered(GitService::UploadPack, pkts(in)), pkts(out));
  }
}

TEST(Advertisement, OfV0AndV1PassesByteForByte) {
  const std::string v0 = pkts({"# service=git-upload-pack\n", "",
                               std::string(40, '1') + " HEAD\0multi_ack bundle-uri agent=git/2.39.5\n"s,
                               std::string(40, '1') + " refs/heads/bundle-uri\n", ""});
  EXPECT_EQ(filtered(GitService::UploadPack, v0), v0);
}

TEST(Advertisement, OfAPushLosesCertificatesAndOptions) {
  const std::string id(40, '1');
  EXPECT_EQ(
      filtered(
          GitService::ReceivePack,
          pkts({"# service=git-receive-pack\n", "",
                id + " refs/heads/a\0report-status push-cert=123-abc atomic push-options agent=git/2.39.5\n"s,
                id + " refs/heads/push-options\n", ""})),
      pkts({"# service=git-receive-pack\n", "",
            id + " refs/heads/a\0report-status atomic agent=git/2.39.5\n"s, id + " refs/heads/push-options\n",
            ""}));
}

TEST(Advertisement, KeepsTheSpellingOfWhatItDoesNotChange) {
  const std::string upper = "001F# service=git-receive-pack\n0000";
  EXPECT_EQ(filtered(GitService::ReceivePack, upper), upper);
}

TEST(Advertisement, HoldsNoMoreThanOnePktLine) {
  AdvertisementFilter filter(GitService::UploadPack);
  EXPECT_EQ(filter.feed("000").value(), "");
  EXPECT_FALSE(filter.finish());
  EXPECT_EQ(filter.feed("0000").value(), "0000");
  EXPECT_EQ(filter.finish().error().reason, Reason::UpstreamTruncated);
}

TEST(Advertisement, IsRefusedWhenItIsNoPktLines) {
  AdvertisementFilter filter(GitService::UploadPack);
  EXPECT_EQ(filter.feed("<html>").error().reason, Reason::UpstreamMalformed);
}

}  // namespace
}  // namespace sallyport::git
