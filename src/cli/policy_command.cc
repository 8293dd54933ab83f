#include "cli/policy_command.h"

#include <fmt/core.h>

#include <boost/json.hpp>

#include "cli/paths.h"
#include "cli/report.h"
#include "cli/trust_command.h"
#include "policy/explain.h"

namespace sallyport::cli {
namespace {

namespace json = boost::json;

json::value to_json(const std::optional<policy::ExplainedRule>& rule) {
  if (!rule) return nullptr;
  return {{"kind", policy::name(rule->kind)}, {"says", rule->says}, {"source", rule->source}};
}

json::value to_json(const policy::Explanation& explanation) {
  return {{"allowed", explanation.allowed},    {"reason", code(explanation.reason)},
          {"asked", explanation.asked},        {"sentence", explanation.sentence},
          {"rule", to_json(explanation.rule)}, {"closest", to_json(explanation.closest)},
          {"advice", explanation.advice},      {"add", explanation.add}};
}

json::value to_json(const config::Problem& problem) {
  return {{"file", problem.place.file},
          {"line", problem.place.line},
          {"column", problem.place.column},
          {"message", problem.message},
          {"remedy", problem.remedy}};
}

int report_problems(const config::Problems& problems, Format format) {
  if (format == Format::Json) {
    json::array array;
    for (const config::Problem& problem : problems) array.push_back(to_json(problem));
    print_json({{"ok", false}, {"problems", std::move(array)}, {"consent", nullptr}});
  } else {
    fmt::print(stderr, "{}\n", config::text_of(problems));
  }
  return kExitNo;
}

}  // namespace

int policy_check(const CheckOptions& options) {
  const auto paths = find_paths();
  if (!paths) return failed(paths.error());
  config::Sources sources = sources_of(options.files, *paths);
  sources.policy = config::Presence::Named;  // there is nothing to check without one
  const auto loaded = config::load(sources);
  if (!loaded) return report_problems(loaded.error(), options.format);
  const auto consent = session::find_consent(*loaded, sources.trust_folder);
  if (!consent) return failed(consent.error());
  if (options.format == Format::Json) {
    print_json(
        {{"ok", true}, {"problems", json::array()}, {"consent", consent_json(sources, *loaded, *consent)}});
  } else {
    print_missing_consent(sources, *loaded, *consent);
  }
  return kExitOk;
}

int policy_explain(const ExplainOptions& options) {
  const auto paths = find_paths();
  if (!paths) return failed(paths.error());
  const config::Sources sources = sources_of(options.files, *paths);
  const auto loaded = config::load(sources);
  if (!loaded) {
    fmt::print(stderr, "{}\n", config::text_of(loaded.error()));
    return kExitNo;
  }
  const auto consent = session::find_consent(*loaded, sources.trust_folder);
  if (!consent) return failed(consent.error());
  const policy::Explanation explanation =
      options.push ? policy::explain_push(loaded->grant, *options.push)
                   : policy::explain_url(loaded->grant, options.url, options.method);
  if (options.format == Format::Json) {
    json::object answer = to_json(explanation).as_object();
    answer["consent"] = consent_json(sources, *loaded, *consent);
    print_json(answer);
  } else {
    fmt::print("{}", explanation.text());
    print_missing_consent(sources, *loaded, *consent);
  }
  return explanation.allowed ? kExitOk : kExitNo;
}

}  // namespace sallyport::cli
