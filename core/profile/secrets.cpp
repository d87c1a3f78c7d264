#include "profile/secrets.hpp"

#include <algorithm>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kNameParts[] = {
    "token",   "key",        "secret",  "passw",  "passphrase", "pwd",     "cookie",
    "private", "credential", "authori", "bearer", "signature",  "webhook",
};

// Matched only as the last word of a name or as the entire name.
constexpr std::string_view kLastWords[] = {"pat", "auth", "pass", "pw", "jwt", "dsn"};

constexpr std::string_view kValueStarts[] = {
    "sk-",   "sk_",  "pk_",    "rk_",    "ghp_", "gho_",    "ghs_",   "ghu_",  "ghr_",
    "xoxb-", "AKIA", "glpat-", "xapp-",  "AIza", "github_", "xoxp-",  "ntn_",  "secret_",
    "eyJ",   "npm_", "hf_",    "Bearer", "Basi", "lin_api", "dop_v1", "figd_", "ATATT",
};

// Returns true if the authority contains a ':' that is not followed by a port. The password then
// contains a slash, which has cut off the rest of the authority, as in "//user:pass/word@host".
bool half_userinfo(std::string_view authority) {
  const std::size_t colon = authority.find(':');
  return colon != std::string_view::npos && !authority.starts_with('[') &&
         authority.find("${") == std::string_view::npos &&
         authority.find_first_not_of("0123456789", colon + 1) != std::string_view::npos;
}

std::string masked_path(std::string_view path) {
  std::string out;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    out += token_like(part) || credential_value(part) ? kMask : part;
    if (slash == std::string_view::npos) return out;
    out += '/';
    path.remove_prefix(slash + 1);
  }
}

std::string masked_query(std::string_view query) {
  std::string out;
  while (true) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      out += kMask;  // a value without a name ("?TOKEN")
    } else {
      const std::string_view value = pair.substr(equals + 1);
      const bool reference = value.starts_with("${") && value.find('}') == value.size() - 1 &&
                             value.find(":-") == std::string_view::npos;
      out += pair.substr(0, equals + 1);
      out += reference ? value : kMask;
    }
    if (end == std::string_view::npos) return out;
    out += '&';
    query.remove_prefix(end + 1);
  }
}

// Removes the default values of references (${NAME:-default}), which may be credentials.
std::string without_defaults(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t open = text.find("${");
    const std::size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) return out.append(text);
    const std::string_view reference = text.substr(open, close - open);
    const std::size_t fallback = reference.find(":-");
    out += text.substr(0, open);
    if (fallback == std::string_view::npos) {
      out.append(reference) += '}';
    } else {
      out.append(reference.substr(0, fallback + 2)).append(kMask) += '}';
    }
    text.remove_prefix(close + 1);
  }
}

}  // namespace

bool credential_name(std::string_view name) {
  const std::string word = bh::lowered(name);
  for (const std::string_view part : kNameParts)
    if (word.find(part) != std::string::npos) return true;
  for (const std::string_view last : kLastWords) {
    if (!word.ends_with(last)) continue;
    if (word.size() == last.size()) return true;
    const std::size_t at = word.size() - last.size();
    const bool camel = name[at] != word[at] && name[at - 1] == word[at - 1];  // as in "dbPass"
    if (camel || std::string_view("_-.").find(name[at - 1]) != std::string_view::npos) return true;
  }
  return false;
}

std::string_view auth_scheme(std::string_view value) {
  for (const std::string_view scheme : {"Bearer ", "bearer ", "Basic ", "Token ", "token "})
    if (value.starts_with(scheme)) return scheme;
  return {};
}

bool only_references(std::string_view value) {
  value.remove_prefix(auth_scheme(value).size());
  while (value.starts_with("${")) {
    const std::size_t end = value.find('}');
    constexpr std::string_view plain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:";
    if (end == std::string_view::npos ||
        value.substr(0, end).find(":-") != std::string_view::npos ||
        value.substr(2, end - 2).find_first_not_of(plain) != std::string_view::npos)
      return false;
    value.remove_prefix(end + 1);
  }
  return value.empty();
}

std::size_t userinfo_end(std::string_view url, std::size_t authority) {
  std::size_t end = url.find_first_of("/?#", authority);
  if (end != std::string_view::npos && half_userinfo(url.substr(authority, end - authority)))
    end = std::string_view::npos;
  const std::size_t at = url.substr(0, end).rfind('@');
  return at != std::string_view::npos && at >= authority ? at : std::string_view::npos;
}

bool credential_value(std::string_view value) {
  for (const std::string_view start : kValueStarts)
    if (value.starts_with(start) && value.size() > start.size() + 3) return true;
  const std::size_t scheme = value.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::size_t at = userinfo_end(value, scheme + 3);
  return at != std::string_view::npos;
}

bool token_like(std::string_view part) {
  if (part.size() < 20 || part.find("${") != std::string_view::npos) return false;
  const auto digits = std::count_if(part.begin(), part.end(), bh::is_digit);
  return digits >= 3;
}

std::string masked_url(std::string_view original) {
  const std::string text = without_defaults(original);
  std::string_view url = text;
  std::string out;
  const std::size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) {
    out = url.substr(0, scheme + 3);
    const std::size_t at = userinfo_end(url, scheme + 3);
    if (at != std::string_view::npos) out.append(kMask) += '@';
    url.remove_prefix(at == std::string_view::npos ? scheme + 3 : at + 1);
  }
  const std::size_t fragment = url.find('#');
  if (fragment != std::string_view::npos) url = url.substr(0, fragment);
  const std::size_t query = url.find('?');
  out += masked_path(url.substr(0, query));
  if (query != std::string_view::npos) out += '?' + masked_query(url.substr(query + 1));
  if (fragment != std::string_view::npos) out.append("#").append(kMask);
  return out;
}

namespace {

// Returns true if the argument is JSON that contains a name or string that looks like a credential.
bool json_credential(std::string_view arg) {
  if (!arg.starts_with('{') && !arg.starts_with('[')) return false;
  while (true) {
    const std::size_t quote = arg.find('"');
    const std::string_view piece = arg.substr(0, quote);
    if (credential_name(piece) || credential_value(piece)) return true;
    if (quote == std::string_view::npos) return false;
    arg.remove_prefix(quote + 1);
  }
}

// Returns true if the argument, or the value of an option, consists of references. They are not
// credentials, so they are shown.
bool refers(std::string_view value) {
  return !value.empty() && only_references(value);
}

}  // namespace

std::vector<std::string> masked_args(const std::vector<std::string> &args) {
  std::vector<std::string> out;
  bool next = false;  // whether the previous argument was an option whose value is a credential
  for (const std::string &arg : args) {
    const std::size_t split = arg.find_first_of("=:");
    const bool option = arg.starts_with('-');
    const std::size_t bearer = bh::lowered(arg).find("bearer ");
    const bool header =
        bearer != std::string::npos && !refers(std::string_view(arg).substr(bearer));
    if ((next && !option && !refers(arg)) || header || json_credential(arg) ||
        (split == std::string::npos && credential_value(arg))) {
      out.emplace_back(kMask);
      next = false;
      continue;
    }
    const bool named = credential_name(std::string_view(arg).substr(0, split));
    next = option && named && split == std::string::npos;
    const bool url = arg.find("://") != std::string::npos;
    const std::string_view value = std::string_view(arg).substr(split == arg.npos ? 0 : split + 1);
    const bool json = option && split != arg.npos && json_credential(value);
    const bool reference =
        refers(value.substr(std::min(value.find_first_not_of(' '), value.size())));
    if (split != std::string::npos && !reference && (named || json || credential_value(value))) {
      out.push_back(arg.substr(0, split + 1).append(kMask));
    } else {
      out.push_back(url ? masked_url(arg) : arg);
    }
  }
  return out;
}

std::string variable_for(std::string_view server, std::string_view key) {
  const auto upper = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      const bool plain = (c >= 'A' && c <= 'Z') || bh::is_digit(c);
      out += plain ? c : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : '_';
    }
    return out;
  };
  const std::string prefix = upper(server) + "_";
  std::string out = upper(key);
  if (!out.starts_with(prefix)) out.insert(0, prefix);
  if (out[0] >= '0' && out[0] <= '9') out.insert(0, "_");
  return out;
}

}  // namespace bulkhead::profiles
