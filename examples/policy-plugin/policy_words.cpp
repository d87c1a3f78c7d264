// An example policy plugin. It rejects calls with a listed word in their arguments, and results
// that contain a listed word. It needs the SDK only. README.md describes how to build and use it.
//
// All functions run on the reactor thread and must not block.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

// Returns the value of a string member. Escape sequences are not supported; a real plugin should
// use a JSON library.
std::string text_member(std::string_view json, std::string_view name) {
  std::string key = "\"";
  key.append(name).append("\"");
  auto at = json.find(key);
  if (at == std::string_view::npos) return {};
  at = json.find_first_not_of(" \t\r\n:", at + key.size());
  if (at == std::string_view::npos || json[at] != '"') return {};
  return std::string(json.substr(at + 1, json.find('"', at + 1) - at - 1));
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (comma != 0) out.push_back(lower(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return out;
}

class PolicyWords {
 public:
  // The host validates the configuration with this schema before it calls configure().
  static constexpr bh::Info info{
      .id = "policy-words",
      .name = "Word filter",
      .version = "1.0.0",
      .vendor = "Example",
      .config_schema =
          R"({"type":"object","additionalProperties":false,"required":["words"],"properties":{)"
          R"("words":{"type":"string","pattern":"^[a-zA-Z0-9_.,-]+$"},)"
          R"("rehearse":{"type":"boolean"}}})",
      .provides = {BH_EXT_POLICY}};

  explicit PolicyWords(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *) {
    words_ = split(text_member(bh::view(json), "words"));
    rehearse_ = bh::view(json).find("\"rehearse\":true") != std::string_view::npos;
    return BH_OK;
  }
  // Applies a changed configuration at run time (bulkhead reload). A plugin without this function
  // has to be restarted.
  bh_status reconfigure(bh_str json, bh_error *error) { return configure(json, error); }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<PolicyWords>() : nullptr;
  }

  // The gateway calls only the functions, and sends only the data, that needs() requests.
  std::uint32_t needs() const noexcept {
    return BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_RESULTS;
  }

  bh_status decide(const bh_policy_request &request, bh_verdict *out, bh_error *error) {
    const std::string_view arguments = bh::view(request.arguments);
    if (rehearse_) {
      const std::string fault = text_member(arguments, "rehearse");
      if (!fault.empty()) return misbehave(fault, out, error);
    }
    return judge(arguments, out);
  }
  bh_status observe(const bh_policy_request &, bh_str result, bh_verdict *out, bh_error *) {
    return judge(bh::view(result), out);
  }

 private:
  bh_status judge(std::string_view text, bh_verdict *out) {
    const std::string low = lower(text);
    const auto found = std::find_if(words_.begin(), words_.end(), [&](const std::string &word) {
      return low.find(word) != std::string::npos;
    });
    out->verdict = found == words_.end() ? BH_VERDICT_ALLOW : BH_VERDICT_BLOCK;
    if (found == words_.end()) return BH_OK;
    reason_ = "the word \"" + *found + "\" is not allowed";
    out->rule = bh::str("words");
    out->reason = bh::str(reason_);  // must be valid until the next call of this instance
    return BH_OK;
  }

  // Fails in the specified way, to demonstrate how the gateway handles faulty policies. Used only
  // if `rehearse` is true.
  static bh_status misbehave(std::string_view fault, bh_verdict *out, bh_error *error) {
    if (fault == "throw") throw std::runtime_error("a rehearsed exception");
    if (fault == "error") return bh::fail(error, BH_E_INTERNAL, "a rehearsed error");
    if (fault == "crash") std::abort();
    if (fault == "garbage") {
      out->verdict = 4711;
      return BH_OK;
    }
    for (volatile bool forever = fault == "hang"; forever;) {
    }
    return BH_PENDING;  // "silence": the verdict is never sent
  }

  const bh::Host host_;
  std::vector<std::string> words_;
  std::string reason_;
  bool rehearse_ = false;
};

}  // namespace

BH_PLUGIN(PolicyWords)
