#include "sandbox/child_policy.hpp"

#include <rapidjson/document.h>

#include <charconv>

namespace bulkhead {
namespace {

// Numbers are kept as text, so RapidJSON scans numbers in untrusted input but does not convert
// them.
constexpr unsigned parse_flags = rapidjson::kParseIterativeFlag |
                                 rapidjson::kParseValidateEncodingFlag |
                                 rapidjson::kParseNumbersAsStringsFlag;

using Value = rapidjson::Value;

const Value *find(const Value &object, const char *name) {
  const auto it = object.FindMember(name);
  return it == object.MemberEnd() || it->value.IsNull() ? nullptr : &it->value;
}

std::string text_of(const Value &value) {
  return {value.GetString(), value.GetStringLength()};
}

bool read_texts(const Value &object, const char *name, std::vector<std::string> *out) {
  const Value *list = find(object, name);
  if (list == nullptr) return true;
  if (!list->IsArray()) return false;
  for (const Value &text : list->GetArray()) {
    if (!text.IsString()) return false;
    out->push_back(text_of(text));
  }
  return true;
}

bool read_paths(const Value &object, const char *name, std::vector<std::string> *out) {
  if (!read_texts(object, name, out)) return false;
  for (const std::string &path : *out) {
    if (!path.starts_with('/') || path.find('\0') != std::string::npos) return false;
  }
  return true;
}

bool read_number(const Value &object, const char *name, std::uint64_t *out) {
  const Value *number = find(object, name);
  if (number == nullptr) return true;
  if (!number->IsString()) return false;
  const std::string digits = text_of(*number);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *out);
  return error == std::errc() && end == digits.data() + digits.size();
}

bool read_mode(const Value &object, ChildPolicy::Mode *out) {
  const Value *mode = find(object, "mode");
  if (mode == nullptr) return true;
  if (!mode->IsString()) return false;
  const std::string text = text_of(*mode);
  if (text == "strict") {
    *out = ChildPolicy::Mode::strict;
  } else if (text == "off") {
    *out = ChildPolicy::Mode::off;
  } else {
    return text == "home-read-only";
  }
  return true;
}

// Returns the name of the first invalid member, or null if all are valid.
const char *read_sandbox(const Value &sandbox, ChildPolicy *out) {
  if (!sandbox.IsObject()) return "sandbox";
  if (!read_mode(sandbox, &out->mode)) return "sandbox.mode";
  if (!read_paths(sandbox, "read", &out->read)) return "sandbox.read";
  if (!read_paths(sandbox, "write", &out->write)) return "sandbox.write";
  if (const Value *network = find(sandbox, "network")) {
    if (!network->IsBool()) return "sandbox.network";
    out->network = network->GetBool();
  }
  if (const Value *ipc = find(sandbox, "ipc")) {
    if (!ipc->IsString()) return "sandbox.ipc";
    const std::string word = text_of(*ipc);
    if (word != "host" && word != "private") return "sandbox.ipc";
    out->host_ipc = word == "host";
  }
  if (!read_number(sandbox, "memory_bytes", &out->memory_bytes)) return "sandbox.memory_bytes";
  if (!read_number(sandbox, "processes", &out->processes)) return "sandbox.processes";
  if (!read_number(sandbox, "cache_bytes", &out->cache_bytes)) return "sandbox.cache_bytes";
  return nullptr;
}

const char *read_definition(const Value &root, ChildPolicy *out) {
  if (const Value *command = find(root, "command")) {
    if (command->IsString()) out->command = text_of(*command);
  }
  if (const Value *cwd = find(root, "cwd")) {
    if (!cwd->IsString()) return "cwd";
    out->cwd = text_of(*cwd);
  }
  if (!read_texts(root, "args", &out->args)) return "args";
  if (const Value *env = find(root, "env")) {
    if (!env->IsObject()) return "env";
    for (const auto &variable : env->GetObject()) {
      if (!variable.value.IsString()) continue;
      out->env_values.push_back(text_of(variable.value));
      if (text_of(variable.name) == "HOME") out->home = out->env_values.back();
    }
  }
  const Value *sandbox = find(root, "sandbox");
  return sandbox == nullptr ? nullptr : read_sandbox(*sandbox, out);
}

}  // namespace

Result<ChildPolicy> parse_child_policy(std::string_view server, std::string_view definition) {
  const std::string who = "the definition of server \"" + std::string(server) + "\": ";
  rapidjson::Document root;
  root.Parse<parse_flags>(definition.data(), definition.size());
  if (root.HasParseError() || !root.IsObject())
    return fail(BH_E_INVALID, who + "not a JSON object");
  ChildPolicy policy;
  if (const char *wrong = read_definition(root, &policy)) {
    return fail(BH_E_INVALID, who + "\"" + wrong + "\" has an invalid value");
  }
  return policy;
}

}  // namespace bulkhead
