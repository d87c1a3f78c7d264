#include "check/check_plugin.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <system_error>

#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/text.hpp"
#include "check/file_checks.hpp"
#include "check/scenarios.hpp"
#include "common/signals.hpp"
#include "plugin/config_schema.hpp"

namespace bulkhead::check {
namespace {

// An empty folder, which is removed at the end.
class Folder {
 public:
  Folder() {
    std::error_code error;
    const auto parent = std::filesystem::temp_directory_path(error);
    if (error) {
      errno = error.value();
      return;
    }
    std::string name = (parent / "bulkhead-check-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  const std::string &path() const noexcept { return path_; }

 private:
  std::string path_;
};

bool provides(const Subject &subject, std::string_view id) {
  const auto &all = subject.library.manifest.provides;
  return std::find(all.begin(), all.end(), id) != all.end();
}

// Runs one trial after another.
class Trials {
 public:
  Trials(const Subject &subject, Report *report) : subject_(subject), report_(*report) {
    options_.network = provides(subject, BH_EXT_CONNECTOR) || provides(subject, BH_EXT_TRANSPORT);
  }

  // Returns false if the trial did not finish.
  bool run(void (*scenario)(Trial *, const Subject &)) {
    if (program::stop_requested()) return false;
    const Folder folder;
    if (folder.path().empty()) {
      report_.not_checked.push_back("cannot create a temporary folder: " + bh::error_name(errno));
      return false;
    }
    options_.folder = folder.path();
    options_.listeners = provides(subject_, BH_EXT_TRANSPORT);
    const auto finished = run_trial(
        subject_.library, options_,
        [&](Trial &trial) {
          scenario(&trial, subject_);
          trial.finished();
        },
        &report_);
    if (finished) return *finished;
    report_.not_checked.push_back(finished.error().text);
    return false;
  }
  void run_all(std::span<const Scenario> scenarios) {
    for (const Scenario &one : scenarios) {
      const bool applies = one.extension == nullptr || provides(subject_, one.extension);
      if (applies && !violated(one.unless)) run(one.run);
    }
  }
  bool violated(std::span<const Rule> rules) const {
    return std::any_of(rules.begin(), rules.end(),
                       [&](Rule rule) { return report_.violations.contains(rule); });
  }

 private:
  const Subject &subject_;
  Report &report_;
  TrialOptions options_;
};

void run_trials(const Subject &subject, Report *report) {
  Trials trials(subject, report);
  const std::string rest = "the remaining rules, because ";
  if (!trials.run(check_loading) ||
      trials.violated(std::array{Rule::loads, Rule::entry, Rule::descriptor, Rule::init})) {
    report->not_checked.push_back(rest + "the library cannot be loaded");
    return;
  }
  const std::size_t before = report->not_checked.size();
  if (!trials.run(check_instance) ||
      trials.violated(std::array{Rule::instance_table, Rule::extensions})) {
    report->not_checked.push_back(rest + "an instance does not complete its life");
    return;
  }
  trials.run_all(life_scenarios().first(3));  // these need no instance that starts
  if (report->not_checked.size() > before) return;
  trials.run_all(life_scenarios().subspan(3));
  trials.run_all(tools_scenarios());
  trials.run_all(content_scenarios());
  trials.run_all(policy_scenarios());
  trials.run_all(telemetry_scenarios());
  trials.run_all(wire_scenarios());
  trials.run_all(shutdown_scenarios());
}

// Evaluates the schema in a child, because it is as untrusted as the code.
void check_configuration(Trial *trial, const Subject &subject) {
  trial->step(Rule::descriptor, "the evaluation of its config_schema");
  const auto schema = schema_of(subject.library);
  if (!schema || schema->empty()) return;
  const auto valid = check_config(*schema, subject.config);
  if (!valid && valid.error().code != BH_E_ABI) {
    trial->violated(Rule::configure, valid.error().text);
  }
}

Result<void> check_option(const char *name, const std::string &json) {
  if (bh::json::valid(json) && bh::json::trimmed(json).starts_with('{')) return {};
  return fail(BH_E_INVALID, std::string(name) + " must be a JSON object, such as '{\"key\":1}'");
}

}  // namespace

Result<Report> check_plugin(const std::string &path, const CheckOptions &options) {
  for (const auto &[name, json] :
       {std::pair{"--config", &options.config}, std::pair{"--definition", &options.definition}}) {
    if (auto ok = check_option(name, *json); !ok) return std::unexpected(ok.error());
  }
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) {
    return fail(BH_E_NOT_FOUND, path + " does not exist");
  }
  Report report;
  report.file = path;
  auto library = check_files(path, &report);
  if (!library) {
    report.not_checked.emplace_back("the code, because a gateway would not load these files");
    return report;
  }
  if (const Folder folder; folder.path().empty()) {
    return fail(BH_E_IO, "cannot create a temporary folder: " + bh::error_name(errno));
  }
  const Subject subject{std::move(*library), options.config, options.definition};
  Report answer;
  const bool evaluated = Trials(subject, &answer).run(check_configuration);
  if (const auto wrong = answer.violations.find(Rule::configure);
      wrong != answer.violations.end()) {
    return fail(BH_E_INVALID,
                (options.config == "{}" ? "the plugin needs --config: "
                                        : "--config does not match the plugin's schema: ") +
                    wrong->second.front());
  }
  if (!evaluated) {
    for (const std::string &what : answer.violations[Rule::descriptor]) {
      report.violated(Rule::descriptor, what);
    }
    report.not_checked = answer.not_checked;
    report.not_checked.emplace_back("the code, because the config_schema cannot be evaluated");
    return report;
  }
  run_trials(subject, &report);
  return report;
}

}  // namespace bulkhead::check
