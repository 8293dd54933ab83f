#include "audit/mask.h"

#include <gtest/gtest.h>

namespace sallyport::audit {
namespace {

struct Case {
  const char* sentence;
  std::string text;
  std::string expected;
};

// Token bodies are put together here so that no scanner takes this file for a leak.
std::string x(std::size_t count) {
  return std::string(count, 'x');
}

TEST(Masked, HidesTokensAndLeavesTheRest) {
  const Case cases[] = {
      {"plain text stays", "/acme/widget/info/refs", "/acme/widget/info/refs"},
      {"GitHub personal", "a/ghp_" + x(36) + "/b", "a/ghp_***/b"},
      {"GitHub oauth", "gho_" + x(36), "gho_***"},
      {"GitHub server", "ghs_" + x(36), "ghs_***"},
      {"GitHub user", "ghu_" + x(36), "ghu_***"},
      {"GitHub fine-grained", "github_pat_" + x(22) + "_" + x(59), "github_pat_***"},
      {"GitLab", "glpat-" + x(20), "glpat-***"},
      {"Anthropic", "sk-ant-api03-" + x(90), "sk-ant-***"},
      {"OpenAI", "sk-proj-" + x(40), "sk-***"},
      {"Slack", "xoxb-12345-67890-" + x(24), "xoxb-***"},
      {"AWS", "AKIA" + std::string(16, 'A'), "AKIA***"},
      {"npm", "npm_" + x(36), "npm_***"},
      {"PyPI", "pypi-AgEI" + x(60), "pypi-***"},
      {"JSON Web Token", "eyJ" + x(20) + "." + x(30) + "." + x(43) + " end", "eyJ*** end"},
      {"an unsigned JSON Web Token", "eyJ" + x(20) + "." + x(30) + ".", "eyJ***"},
      {"user and password", "https://me:secret@host/path", "https://*@host/path"},
      {"a token as user", "https://tok@host", "https://*@host"},
      {"a password with @", "https://me:p@ss@host/", "https://*@host/"},
      {"an @ in the path is none", "https://host/@scope/x", "https://host/@scope/x"},
      {"two in one text", "ghp_" + x(36) + " https://a:b@c ghp_" + x(36), "ghp_*** https://*@c ghp_***"},
      {"a token glued to a word", "tokenghp_" + x(36), "tokenghp_***"},
      {"too short for a token", "ghp_short", "ghp_short"},
      {"words with sk-", "task-force-of-twenty-people-and-more", "task-force-of-twenty-people-and-more"},
      {"npm's variables", "npm_config_registry_and_some_more_words",
       "npm_config_registry_and_some_more_words"},
      {"Hugging Face", "hf_" + x(34), "hf_***"},
      {"a word with hf_", "shelf_" + x(34), "shelf_" + x(34)},
      {"Google key", "AIza" + x(35), "AIza***"},
      {"Google token", "ya29." + x(60), "ya29.***"},
      {"a key in a query", "/v1/x?key=opaque&alt=sse", "/v1/x?key=*&alt=sse"},
      {"in any case, wherever it stands", "/v1?a=b&Access_Token=opaque#x", "/v1?a=b&Access_Token=*#x"},
      {"a signature", "GET https://h/x?X-Amz-Signature=abc then", "GET https://h/x?X-Amz-Signature=* then"},
      {"no value", "/v1?key=&token", "/v1?key=&token"},
      {"a name that only begins so", "/v1?keys=1&keyword=2", "/v1?keys=1&keyword=2"},
      {"a prefix at the end", "ghp_", "ghp_"},
      {"nothing", "", ""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(masked(c.text), c.expected) << c.sentence;
    EXPECT_EQ(masked(masked(c.text)), c.expected) << c.sentence << ", twice";
  }
}

TEST(Masked, IsNeverLongerThanTheText) {
  for (const std::string& text :
       {std::string("://a@"), std::string("://@"), "ghp_" + x(20), std::string("?key=a")}) {
    EXPECT_LE(masked(text).size(), text.size()) << text;
  }
}

}  // namespace
}  // namespace sallyport::audit
