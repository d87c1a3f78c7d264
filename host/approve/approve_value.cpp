#include "approve/approve_value.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "approve/approve_text.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/description_audit.hpp"
#include "profile/secrets.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t hidden_to = 8, shown_characters = 3;
constexpr std::size_t max_paths = 100;

// Variables that determine which programs and files are used and that do not contain credentials.
constexpr std::string_view deciding[] = {"PATH",   "ENV",   "BASH_ENV", "IFS",     "SHELL",
                                         "EDITOR", "PAGER", "HOME",     "RUBYOPT", "PERL5LIB"};
constexpr std::string_view deciding_starts[] = {"LD_", "DYLD_", "PYTHON", "GIT_CONFIG", "PERL5"};
constexpr std::string_view deciding_ends[] = {"_OPTIONS", "OPTS", "_COMMAND", "PATH", "_ARGS"};

bool decides_anything(std::string_view name) {
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

// Returns true if the text looks like a random string of letters and digits, without words or file
// names.
bool random_text(std::string_view value) {
  const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
    return bh::is_letter_or_digit(c) || c == '_' || c == '-' || c == '+' || c == '=';
  });
  return plain && !value.starts_with('-') && profiles::token_like(value);
}

// Returns the text as it would appear inside a JSON string, with hidden characters escaped.
std::string visible(std::string_view text) {
  const std::string quoted = verbatim(text);
  return quoted.substr(1, quoted.size() - 2);
}

// Masks a piece of a value. If the piece is long and *shows is true, its first characters are shown
// and *shows becomes false, so only one piece of each value shows its beginning.
std::string masked_piece(std::string_view text, bool *shows) {
  std::size_t characters = 0, end = 0;
  for (std::size_t at = 0, size = 0; at < text.size() && characters <= hidden_to; at += size) {
    bh::first_character(text.substr(at), &size);
    if (++characters == shown_characters) end = at + size;
  }
  if (characters <= hidden_to || !std::exchange(*shows, false)) return "***";
  return visible(text.substr(0, end)) + "***";
}

// Splits a value into references and literal text. For example, "a${NAME:-x}b" leads to the calls
// literal("a"), reference("${NAME:-x}", "NAME", "x", true) and literal("b"). A reference with an
// invalid name is treated as literal text.
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
      return bh::is_letter_or_digit(c) || c == '_';
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

// Returns the value that a gateway in this environment would pass to the program, or nullopt if the
// value refers to a credential.
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

// Masks the tokens in a path, because a credential may also begin with a slash.
std::string path_without_tokens(std::string_view path) {
  std::string out;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    out += profiles::token_like(part) ? std::string(part.substr(0, shown_characters)) + "***"
                                      : std::string(part);
    if (slash == std::string_view::npos) return out;
    out += '/';
    path.remove_prefix(slash + 1);
  }
}

// ---- text that contains passwords -------------------------------------------------------------

constexpr std::string_view quotes = "\"'";

bool is_name_character(char c) noexcept {
  return bh::is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
}

// Returns the end of the value that begins at `from`: the closing quote, or a separator if there is
// no quote.
std::size_t value_end(std::string_view text, std::size_t from, char quote) noexcept {
  const std::string_view ends = quote != 0 ? std::string_view(&quote, 1) : " \t\r\n;&,\"'`)]}#";
  std::size_t at = from;
  while (at < text.size()) {
    if (text.substr(at).starts_with("${")) {
      const std::size_t close = text.find('}', at);
      if (close != text.npos) {
        at = close + 1;
        continue;
      }
    }
    if (ends.find(text[at]) != ends.npos) break;
    ++at;
  }
  return at;
}

constexpr std::string_view code_characters = "$`|<>(){}!\\\n\r";

// Returns true if the name is that of a credential, such as "token". Names such as
// "credential.helper" and "key-file" refer to programs and paths, which must be shown.
bool names_secret(std::string_view name) {
  const std::string lower = bh::lowered(name);
  for (const std::string_view end :
       {"helper", "command", "cmd", "program", "exec", "script", "file", "path", "dir", "folder",
        "url", "host", "server", "store"}) {
    if (lower.ends_with(end)) return false;
  }
  return profiles::credential_name(name);
}

// Returns true if the value may be masked. Shell code and paths must be shown.
bool is_plain_secret(std::string_view value) {
  const auto begins = [value](std::string_view with) { return value.starts_with(with); };
  if (value.empty() || begins("/") || begins("./") || begins("../") || begins("~/") ||
      value.find("://") != value.npos) {
    return false;
  }
  bool code = false, literal = false;
  each_piece(
      value,
      [&](std::string_view piece) {
        literal = true;
        code = code || piece.find_first_of(code_characters) != piece.npos;
      },
      [&](std::string_view, std::string_view, std::string_view fallback, bool) {
        literal = literal || !fallback.empty();
        code = code || fallback.find_first_of(code_characters) != fallback.npos;
      });
  return literal && !code;
}

// Masks a value. References in it are kept, but without their defaults.
std::string hidden_secret(std::string_view value) {
  std::string out;
  bool shows = false;
  each_piece(
      value, [&](std::string_view text) { out += masked_piece(text, &shows); },
      [&](std::string_view whole, std::string_view, std::string_view fallback, bool has_default) {
        out += has_default && !fallback.empty()
                   ? std::string(whole.substr(0, whole.size() - fallback.size() - 1)) + "***}"
                   : std::string(whole);
      });
  return out;
}

struct Part {
  std::size_t begin = 0, end = 0;
};

// Finds the password in "user:password@" after "://". If there is only "user@", finds the user
// name, provided that it looks like a token.
Part password_of_url(std::string_view text, std::size_t authority) {
  std::size_t end = authority;
  while (end < text.size() &&
         std::string_view("/?# \t\r\n\"'`").find(text[end]) == std::string_view::npos)
    ++end;
  const std::size_t at = text.substr(0, end).rfind('@');
  if (at == text.npos || at < authority) return {};
  const std::size_t colon = text.find(':', authority);
  if (colon < at) return {colon + 1, at};
  const std::string_view user = text.substr(authority, at - authority);
  if (profiles::credential_value(user) || profiles::token_like(user)) return {authority, at};
  return {};
}

// Finds the value in NAME=VALUE or NAME:VALUE if NAME is the name of a credential. `sign` is the
// position of the '=' or ':'.
Part named_secret(std::string_view text, std::size_t sign) {
  std::size_t name_end = sign;
  while (name_end > 0 && (text[name_end - 1] == ' ' || text[name_end - 1] == '\\')) --name_end;
  if (name_end > 0 && quotes.find(text[name_end - 1]) != quotes.npos) --name_end;
  while (name_end > 0 && text[name_end - 1] == '\\') --name_end;
  std::size_t name = name_end;
  while (name > 0 && is_name_character(text[name - 1])) --name;
  if (name == name_end || !names_secret(text.substr(name, name_end - name))) return {};
  std::size_t from = sign + 1;
  while (from < text.size() && text[from] == ' ') ++from;
  for (const std::string_view scheme : {"Bearer ", "bearer ", "Basic ", "basic "}) {
    if (text.substr(from).starts_with(scheme)) from += scheme.size();
  }
  while (from < text.size() && text[from] == '\\') ++from;
  const bool quoted = from < text.size() && quotes.find(text[from]) != quotes.npos;
  if (quoted) ++from;
  std::size_t end = value_end(text, from, quoted ? text[from - 1] : '\0');
  if (quoted && end > from && text[end - 1] == '\\') --end;
  return {from, end};
}

}  // namespace

bool decides_what_runs(std::string_view name) {
  return decides_anything(name);
}

std::string masked_value(std::string_view value) {
  if (value.empty()) return "\"\"";
  std::string out;
  bool shows = true;
  each_piece(
      value, [&](std::string_view text) { out += masked_piece(text, &shows); },
      [&](std::string_view whole, std::string_view, std::string_view fallback, bool has_default) {
        if (!has_default) return void(out += whole);
        out += whole.substr(0, whole.size() - fallback.size() - 1);
        out += masked_piece(fallback, &shows) + "}";
      });
  return out;
}

std::optional<std::string> masked_header(std::string_view name, std::string_view value) {
  const bool secret =
      profiles::credential_name(name) || profiles::credential_value(value) || random_text(value);
  if (!secret || value.empty()) return std::nullopt;
  for (const std::string_view word : {"Bearer ", "Basic "})
    if (value.starts_with(word)) return std::string(word) + masked_value(value.substr(word.size()));
  return masked_value(value);
}

std::string without_passwords(std::string_view text) {
  std::string out;
  std::size_t from = 0;  // the text before this position has been appended to `out`
  const auto hide = [&](Part part) {
    if (part.begin < from || part.begin >= part.end) return;
    const std::string_view value = text.substr(part.begin, part.end - part.begin);
    if (!is_plain_secret(value)) return;
    out.append(text.substr(from, part.begin - from)).append(hidden_secret(value));
    from = part.end;
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at < from) continue;
    if (text.substr(at).starts_with("://")) {
      hide(password_of_url(text, at + 3));
    } else if (text[at] == '=' || text[at] == ':') {
      hide(named_secret(text, at));
    }
  }
  return out.append(text.substr(from));
}

std::vector<std::string> args_without_passwords(const std::vector<std::string> &args) {
  std::vector<std::string> out;
  bool next = false;  // the previous argument is an option whose value is a credential
  for (const std::string &arg : args) {
    const bool option = arg.starts_with('-');
    const bool hides = next && !option && is_plain_secret(arg);
    next = option && arg.find_first_of("=: ") == std::string::npos && names_secret(arg);
    out.push_back(hides ? hidden_secret(arg) : without_passwords(arg));
  }
  return out;
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
  for (const auto &[name, value] : entry.env) {
    auto text = resolved(value);
    if (!text) continue;
    if (profiles::credential_name(name)) text = path_without_tokens(*text);
    add(*text);
  }
  return out;
}

}  // namespace bulkhead::program
