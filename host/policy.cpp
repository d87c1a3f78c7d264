// policy check, explain, test: what the rules of a profile say, without a gateway.
#include <unistd.h>

#include <cerrno>
#include <expected>
#include <fstream>
#include <sstream>

#include "bulkhead/abi/ext/draft/explain.h"
#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/cpp/basics.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "mcp/scan.hpp"
#include "paths.hpp"
#include "plugin/instance.hpp"
#include "profile_source.hpp"
#include "reactor/reactor.hpp"
#include "text.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t max_call_bytes = std::size_t{64} << 20;
constexpr std::size_t max_cases_bytes = std::size_t{64} << 20;

// A policy here is asked by nobody who would wait for it.
constexpr bh_host_policy inert_policy{
    sizeof(bh_host_policy), 0,
    [](void *, std::uint64_t, const bh_verdict *) -> bh_status { return BH_STALE; }, [](void *) {},
    [](void *, std::uint64_t, std::uint32_t) -> bh_status { return BH_STALE; }};

// The profile's policy, alone: configured, never started.
class Policy {
 public:
  explicit Policy(const Arguments &arguments) : arguments_(arguments) {}

  // False: the mistakes have been printed.
  bool load() {
    auto loaded = load_for(arguments_, Transports::none);
    if (!loaded) return refuse(loaded.error());
    file_ = loaded->file;
    const Profile &profile = loaded->profile;
    if (profile.policies.empty()) return refuse({"the profile has no policy"});
    const PluginUse &use = profile.policies.front();
    name_ = use.plugin;
    auto reactor = Reactor::create();
    if (!reactor) return refuse({reactor.error().text});
    reactor_ = std::move(*reactor);
    context_.reactor = reactor_.get();
    context_.name = "bulkhead";
    context_.version = BULKHEAD_VERSION;
    // A policy with several mistakes logs each and returns the first.
    context_.log = [this](std::int32_t level, std::string_view, std::string_view text) {
      if (level >= BH_LOG_ERROR) mistakes_.emplace_back(text);
    };
    context_.extra_ext = [](Instance &, std::string_view id) -> const void * {
      return id == BH_EXT_HOST_POLICY ? &inert_policy : nullptr;
    };
    LoadOptions options;
    options.dirs = profile.plugin_dirs;
    options.init_timeout_ms = profile.limits.plugin_init_ms;
    options.sha256 = use.sha256;
    auto library = Library::load(use.plugin, nullptr, options);
    if (!library) return refuse({library.error().text});
    auto instance = Instance::create(use.id, std::move(*library), context_);
    if (!instance) return refuse({instance.error().text});
    instance_ = std::move(*instance);
    const auto configured = instance_->configure(use.config_json);
    if (configured) return true;
    return refuse(mistakes_.size() > 1 ? mistakes_
                                       : std::vector<std::string>{configured.error().text});
  }

  Result<std::string> explain(std::string_view call) const {
    const auto *table = instance_->ext<bh_explain>(BH_EXT_EXPLAIN);
    if (table == nullptr) {
      return fail(BH_E_UNSUPPORTED, "the policy plugin \"" + name_ +
                                        "\" cannot explain what it decides (bh.explain/1)");
    }
    bh_buf out{};
    bh_error error = bh::make_error();
    const bh_status status = table->explain(instance_->self(), bh::str(call), &out, &error);
    if (status != BH_OK) return fail(status, std::string(bh::text(error)));
    const bh::Buf text(out);
    return std::string(text.view());
  }
  const std::string &name() const { return name_; }
  const std::string &file() const { return file_; }

 private:
  static bool refuse(const std::vector<std::string> &lines) {
    report_config_errors(lines);
    return false;
  }

  const Arguments &arguments_;
  std::string name_, file_;
  std::vector<std::string> mistakes_;
  std::unique_ptr<Reactor> reactor_;
  HostContext context_;
  std::unique_ptr<Instance> instance_;
};

std::string text_of(std::string_view object, std::string_view key) {
  const std::string_view value = mcp::member(object, key);
  if (value.empty() || value.front() != '"') return "";
  std::string scratch;
  return std::string(mcp::unquote(value, &scratch));
}

std::expected<std::string, std::string> read_all(const std::string &path, std::size_t most) {
  std::ostringstream text;
  if (path == "-") {
    char buffer[16'384];
    for (ssize_t n = 1; n != 0 && static_cast<std::size_t>(text.tellp()) <= most;) {
      n = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (n < 0 && errno != EINTR) break;
      if (n > 0) text.write(buffer, n);
    }
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file || !(text << file.rdbuf())) return std::unexpected(path + " cannot be read");
  }
  if (static_cast<std::size_t>(text.tellp()) > most)
    return std::unexpected(path + " is larger than " + std::to_string(most >> 20) + " MiB");
  return text.str();
}

std::string headline(std::string_view answer) {
  const std::string rule = text_of(answer, "rule"), reason = text_of(answer, "reason");
  std::string out = text_of(answer, "decision");
  if (!rule.empty()) out += " by " + rule;
  if (mcp::member(answer, "warned") == "true") out += ", with a warning";
  if (!reason.empty()) out += ": " + reason;
  return out;
}

void add_answer(std::string *out, std::string_view what, std::string_view answer) {
  if (answer.empty()) return;
  *out += std::string(what) + ": " + printable(headline(answer)) + "\n";
  Table table({"RULE", "DECISION", "FOUND", "PLACE"});
  mcp::for_each_item(mcp::member(answer, "rules"), &table, [](void *arg, std::string_view rule) {
    static_cast<Table *>(arg)->add(
        {printable(text_of(rule, "rule")), printable(text_of(rule, "decision")),
         printable(text_of(rule, "found")), printable(text_of(rule, "place"))});
    return true;
  });
  *out += table.str();
  const std::string_view rewritten = mcp::member(answer, "rewritten");
  if (!rewritten.empty()) *out += "becomes " + printable(std::string(rewritten)) + "\n";
}

// One line of a file of cases. Empty: it is as expected.
std::string failure_of(const Policy &policy, std::string_view line) {
  if (!mcp::valid_json(line) || !line.starts_with('{')) return "a case is a JSON object";
  const std::string_view call = mcp::member(line, "call");
  if (call.empty()) return "\"call\" is missing";
  const auto said = policy.explain(call);
  if (!said) return said.error().text;
  const auto differs = [&](std::string_view event, const char *decision,
                           const char *rule) -> std::string {
    const std::string_view answer = mcp::member(*said, event);
    const std::string wanted = text_of(line, decision), by = text_of(line, rule);
    if (wanted.empty() && by.empty()) return "";
    if (answer.empty()) return "the call has no \"result\"";
    // A rule may be given by its name alone.
    const std::string is = text_of(answer, "rule");
    const bool same_rule = by.empty() || is == by || is.ends_with("." + by);
    if ((wanted.empty() || text_of(answer, "decision") == wanted) && same_rule) return "";
    return std::string(event) + ": " + headline(answer) + "; expected " + wanted +
           (by.empty() ? "" : " by " + by);
  };
  if (text_of(line, "expect").empty() && text_of(line, "expect_response").empty())
    return "\"expect\" or \"expect_response\" is missing: allow, ask, block or rewrite";
  const std::string request = differs("request", "expect", "rule");
  return request.empty() ? differs("response", "expect_response", "response_rule") : request;
}

int run_check(const Arguments &arguments) {
  Policy policy(arguments);
  if (!policy.load()) return exit_failed;
  const std::string where = policy.file().empty() ? "no profile" : tilde(policy.file());
  return write_stdout(printable(where + ": " + policy.name() + " has taken the rules") + "\n")
             ? exit_ok
             : exit_failed;
}

int run_explain(const Arguments &arguments) {
  Policy policy(arguments);
  if (!policy.load()) return exit_failed;
  const auto call = read_all(arguments.policy_file, max_call_bytes);
  if (!call) return complain(call.error());
  const auto said = policy.explain(*call);
  if (!said) return complain(tilde(arguments.policy_file) + ": " + said.error().text);
  std::string out = *said + "\n";
  if (!arguments.json) {
    out.clear();
    add_answer(&out, "request", mcp::member(*said, "request"));
    add_answer(&out, "response", mcp::member(*said, "response"));
  }
  return write_stdout(out) ? exit_ok : exit_failed;
}

int run_test(const Arguments &arguments) {
  Policy policy(arguments);
  if (!policy.load()) return exit_failed;
  const auto cases = read_all(arguments.policy_file, max_cases_bytes);
  if (!cases) return complain(cases.error());
  std::istringstream lines(*cases);
  std::string out;
  std::size_t number = 0, passed = 0, failed = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const std::string_view text = std::string_view(line).substr(first);
    const std::string failure = failure_of(policy, text);
    ++(failure.empty() ? passed : failed);
    if (failure.empty()) continue;
    out += printable(tilde(arguments.policy_file) + ":" + std::to_string(number) + ": " + failure) +
           "\n";
  }
  out += std::to_string(passed) + " as expected, " + std::to_string(failed) + " not\n";
  return write_stdout(out) && failed == 0 ? exit_ok : exit_failed;
}

}  // namespace

int run_policy(const Arguments &arguments) {
  switch (arguments.command) {
    case Command::policy_check:
      return run_check(arguments);
    case Command::policy_explain:
      return run_explain(arguments);
    default:
      return run_test(arguments);
  }
}

}  // namespace bulkhead::program
