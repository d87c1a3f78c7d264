#include "profile/expand.hpp"

#include "bulkhead/cpp/text.hpp"
#include "profile/diagnostics.hpp"
#include "profile/secrets.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::size_t kExpandedBytes = 1u << 20;  // maximum size of one value

bool variable_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    const bool good = bh::is_letter_or_digit(c) || c == '_';
    if (!good) return false;
  }
  return true;
}

// Returns true for VS Code variables, which are not environment variables.
bool editor_word(std::string_view name) {
  for (const std::string_view word : {"workspaceFolder", "workspaceFolderBasename", "userHome",
                                      "cwd", "pathSeparator", "file", "fileDirname"})
    if (name == word) return true;
  return false;
}

// Formats a reference for a message. Text with unexpected characters is hidden, because it may be a
// credential that happens to contain "${".
std::string reference(std::string_view body) {
  for (const char c : body) {
    const bool plain =
        bh::is_letter_or_digit(c) || std::string_view("_-.:").find(c) != std::string_view::npos;
    if (!plain) return "\"${...}\"";
  }
  return "${" + printable(body, 40) + "}";
}

void add(Expanded &out, std::string what, bool missing = false) {
  out.problems.push_back({std::move(what), missing});
}

// Resolves ${input:ID}. An editor would prompt the user for the value; here, it comes from an
// environment variable.
void resolve_input(std::string_view id, std::string_view server,
                   const ProfileEnvironment &environment, Expanded &out) {
  const std::string name = variable_for(server, id);
  const auto value = environment.getenv ? environment.getenv(name) : std::nullopt;
  if (value && bh::is_utf8(*value)) {
    out.text += *value;
  } else if (value) {
    add(out, "the environment variable " + printable(name) + " is not UTF-8 text", true);
  } else {
    add(out, "the environment variable " + printable(name) +
                 " is not set; set it to the value of " + reference("input:" + std::string(id)));
    out.problems.back().asked = true;
  }
}

// Resolves one reference. `body` is the text between "${" and "}".
void resolve(std::string_view body, const ProfileEnvironment &environment, std::string_view server,
             Expanded &out) {
  if (body.starts_with("secret:")) {
    return add(out, "${secret:...} is not supported yet; use ${env:NAME}");
  }
  if (body.starts_with("input:")) return resolve_input(body.substr(6), server, environment, out);
  if (body.starts_with("env:")) body.remove_prefix(4);
  const std::size_t fallback = body.find(":-");
  const std::string_view name = body.substr(0, fallback);
  if (!variable_name(name)) {
    return add(out, reference(name) +
                        " is not a valid reference; use ${env:NAME} or ${env:NAME:-default}");
  }
  auto value = environment.getenv ? environment.getenv(std::string(name)) : std::nullopt;
  if (fallback != std::string_view::npos && (!value || value->empty())) {
    out.text += body.substr(fallback + 2);
  } else if (value && !bh::is_utf8(*value)) {
    add(out, "the environment variable " + printable(name) + " is not UTF-8 text", true);
  } else if (value) {
    out.text += *value;
  } else {
    add(out,
        "the environment variable " + printable(name) + " is not set" +
            (editor_word(name) ? " (a VS Code variable; write the path itself)"
                               : "; set it, or write ${env:" + printable(name) + ":-default}"),
        true);
  }
}

}  // namespace

Expanded expand(std::string_view text, ExpandMode mode, const ProfileEnvironment &environment,
                std::string_view server) {
  Expanded out;
  while (true) {
    const std::size_t open = text.find("${");
    out.text += text.substr(0, open);
    if (open == std::string_view::npos) break;
    text.remove_prefix(open + 2);
    const bool ours =
        mode == ExpandMode::inputs
            ? text.starts_with("input:")
            : mode == ExpandMode::all || text.starts_with("env:") || text.starts_with("secret:");
    if (!ours) {
      out.text += "${";
      continue;
    }
    out.referred = true;
    const std::size_t close = text.find('}');
    if (close == std::string_view::npos) {
      add(out,
          "\"${\" without \"}\"; to pass these characters literally, put the value in an "
          "environment variable");
      break;
    }
    const std::string_view body = text.substr(0, close);
    if (body.find("${") != std::string_view::npos) {
      add(out, "nested references are not allowed");
      break;
    }
    resolve(body, environment, server, out);
    text.remove_prefix(close + 1);
    if (out.text.size() > kExpandedBytes) {
      add(out, "the value is larger than " + std::to_string(kExpandedBytes) + " bytes");
      break;
    }
    if (out.problems.size() > 20) {
      add(out, "more than 20 references cannot be resolved");
      break;
    }
  }
  return out;
}

}  // namespace bulkhead::profiles
