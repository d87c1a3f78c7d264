#include "approve/approve_value.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "approve/approve_text.hpp"
#include "mcp/description_audit.hpp"
#include "profile/secrets.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t hidden_to = 8, shown_characters = 3;
constexpr std::size_t max_paths = 100;

// Variables that name what is run, loaded or looked into; no credential is kept in them.
constexpr std::string_view deciding[] = {"PATH",   "ENV",   "BASH_ENV", "IFS",     "SHELL",
                                         "EDITOR", "PAGER", "HOME",     "RUBYOPT", "PERL5LIB"};
constexpr std::string_view deciding_starts[] = {"LD_", "DYLD_", "PYTHON", "GIT_CONFIG", "PERL5"};
constexpr std::string_view deciding_ends[] = {"_OPTIONS", "OPTS", "_COMMAND", "PATH", "_ARGS"};

bool decides(std::string_view name) {
  std::string upper(name);
  for (char &c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  const auto any = [](const auto &list, auto fits) {
    return std::any_of(std::begin(list), std::end(list), fits);
  };
  return any(deciding, [&](std::string_view one) { return upper == one; }) ||
         any(deciding_starts, [&](std::string_view one) { return upper.starts_with(one); }) ||
         any(deciding_ends, [&](std::string_view one) { return upper.ends_with(one); }) ||
         (upper.starts_with("NODE_") && !profiles::credential_name(name));
}

// Letters and digits without a word or a file name in them.
bool random_text(std::string_view value) {
  const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '=';
  });
  return plain && !value.starts_with('-') && profiles::token_like(value);
}

// As the inside of a JSON string.
std::string visible(std::string_view text) {
  const std::string quoted = verbatim(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string masked_piece(std::string_view text) {
  std::size_t characters = 0, end = 0;
  for (std::size_t at = 0, size = 0; at < text.size() && characters <= hidden_to; at += size) {
    mcp::first_character(text.substr(at), &size);
    if (++characters == shown_characters) end = at + size;
  }
  return characters <= hidden_to ? "***" : visible(text.substr(0, end)) + "***";
}

// A reference is split from what is around it: "a${NAME:-x}b" calls literal("a"), then
// reference("NAME", "x", true), then literal("b"). What is no name is a literal.
template <typename Literal, typename Reference>
void each_piece(std::string_view value, Literal literal, Reference reference) {
  while (!value.empty()) {
    const std::size_t open = value.find("${"), close = value.find('}', open);
    if (open == std::string_view::npos || close == std::string_view::npos) return literal(value);
    std::string_view body = value.substr(open + 2, close - open - 2);
    if (body.starts_with("env:")) body.remove_prefix(4);
    const std::size_t split = body.find(":-");
    const std::string_view name = body.substr(0, split);
    const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!good) {
      literal(value.substr(0, close + 1));
    } else {
      if (open > 0) literal(value.substr(0, open));
      const bool has_default = split != std::string_view::npos;
      reference(value.substr(open, close - open + 1), name,
                has_default ? body.substr(split + 2) : std::string_view(), has_default);
    }
    value.remove_prefix(close + 1);
  }
}

// What the gateway would hand to the program, should its environment be this one. Nothing if it
// would hold what looks like a credential.
std::optional<std::string> resolved(std::string_view value) {
  std::string out;
  bool known = true;
  each_piece(
      value, [&](std::string_view text) { out += text; },
      [&](std::string_view, std::string_view name, std::string_view fallback, bool) {
        const char *found = std::getenv(std::string(name).c_str());
        if (found != nullptr && profiles::credential_name(name)) known = false;
        out += found != nullptr && *found != 0 ? std::string_view(found) : fallback;
      });
  if (!known) return std::nullopt;
  return out;
}

}  // namespace

std::string masked_value(std::string_view value) {
  std::string out;
  each_piece(
      value, [&](std::string_view text) { out += masked_piece(text); },
      [&](std::string_view whole, std::string_view, std::string_view fallback, bool has_default) {
        if (!has_default) return void(out += whole);
        out += whole.substr(0, whole.size() - fallback.size() - 1);
        out += masked_piece(fallback) + "}";
      });
  return out.empty() ? "***" : out;
}

std::optional<std::string> masked_setting(std::string_view name, std::string_view value) {
  const std::size_t reference = value.find("${"), scheme = value.find("://");
  const bool url = scheme != std::string_view::npos && scheme < reference && !decides(name) &&
                   value.find('/') > scheme && profiles::credential_value(value);
  if (url) return visible(profiles::masked_url(value));
  const bool secret =
      profiles::credential_name(name) || profiles::credential_value(value) || random_text(value);
  if (!secret || value.empty() || decides(name)) return std::nullopt;
  const bool may_be_path = value.find('/') != std::string_view::npos;
  if (may_be_path && (value.starts_with('/') || reference != std::string_view::npos))
    return std::nullopt;
  for (const std::string_view word : {"Bearer ", "Basic "})
    if (value.starts_with(word)) return std::string(word) + masked_value(value.substr(word.size()));
  return masked_value(value);
}

std::vector<std::string> named_paths(const ProjectEntry &entry) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view text) {
    if (!text.starts_with('/') || out.size() >= max_paths) return;
    std::string path = std::filesystem::path(text).lexically_normal().string();
    if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
  };
  for (const auto &arg : entry.args) {
    add(arg);
    if (const std::size_t at = arg.find("=/"); at != std::string::npos)
      add(std::string_view(arg).substr(at + 1));
  }
  for (const auto &[name, value] : entry.env)
    if (const auto text = resolved(value)) add(*text);
  return out;
}

}  // namespace bulkhead::program
