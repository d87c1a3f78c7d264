#include "builtin-files/resources.hpp"

#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "builtin-files/encoding.hpp"

namespace builtin_files {
namespace {

constexpr std::string_view scheme = "file://";
constexpr int not_found = -32002;  // MCP error code "resource not found"

std::string percent_encoded(std::string_view path) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto b = static_cast<unsigned char>(c);
    const bool plain =
        bh::is_letter_or_digit(c) || std::string_view("-._~/").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += {'%', digits[b >> 4], digits[b & 15]};
    }
  }
  return out;
}

// Decodes percent escapes. Returns false if a "%" is not followed by two hexadecimal digits.
bool percent_decoded(std::string_view text, std::string *out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      *out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = bh::hex_value(text[i + 1]);
    const int low = bh::hex_value(text[i + 2]);
    if (high < 0 || low < 0) return false;
    *out += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return true;
}

std::string error(bool *failed, std::string_view sentence) {
  *failed = true;
  return "{\"code\":" + std::to_string(not_found) + ",\"message\":" + bh::json::quoted(sentence) +
         "}";
}

// Reads a file of at most max_text_bytes into *out. Returns the error, or an empty string on
// success.
std::string read_whole(const Located &file, std::string *out) {
  const Opened opened = file.workspace->open(file.path, O_RDONLY);
  if (!opened.fd.valid()) return opened.problem;
  struct stat s{};
  if (::fstat(opened.fd.get(), &s) != 0 || !S_ISREG(s.st_mode)) {
    return shown(file.path) + " is not a regular file";
  }
  if (static_cast<std::uint64_t>(s.st_size) > max_text_bytes) {
    return shown(file.path) + " is larger than 1 MiB; use file_read to read parts of it";
  }
  out->resize(max_text_bytes);
  std::size_t size = 0;
  while (size < out->size()) {
    const ssize_t n = ::read(opened.fd.get(), out->data() + size, out->size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return "reading " + shown(file.path) + " failed: " + bh::error_name(errno);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  out->resize(size);
  return {};
}

}  // namespace

std::string file_uri(const Workspace &workspace, std::string_view path) {
  const std::string slash = workspace.root() == "/" ? "" : "/";
  return std::string(scheme) + percent_encoded(workspace.root() + slash + std::string(path));
}

std::string resource_templates(const std::vector<Workspace> &workspaces) {
  std::string out = "[";
  for (const Workspace &w : workspaces) {
    const std::string title = "Files of the workspace " + w.name();
    out += (out.size() > 1 ? "," : "") + std::string("{\"uriTemplate\":") +
           bh::json::quoted(file_uri(w, "") + "{+path}") +
           ",\"name\":" + bh::json::quoted(w.name()) + ",\"title\":" + bh::json::quoted(title) +
           ",\"description\":\"A file by its path in the workspace, up to 1 MiB\"}";
  }
  return out + "]";
}

Located locate(const std::vector<Workspace> &workspaces, std::string_view uri) {
  std::string path;
  if (!uri.starts_with(scheme) || !percent_decoded(uri.substr(scheme.size()), &path)) return {};
  Located out;
  std::size_t longest = 0;  // the innermost of nested workspaces is used
  for (const Workspace &w : workspaces) {
    const std::string root = w.root() == "/" ? "/" : w.root() + "/";
    if (!path.starts_with(root) || root.size() <= longest) continue;
    longest = root.size();
    out = {&w, path.substr(root.size())};
  }
  return out;
}

std::string read_resource(const std::vector<Workspace> &workspaces, std::string_view uri,
                          bool *failed) {
  const Located file = locate(workspaces, uri);
  if (file.workspace == nullptr) {
    return error(failed, "no workspace has " + shown(uri) + "; see the resource templates");
  }
  std::string bytes;
  if (std::string problem = read_whole(file, &bytes); !problem.empty()) {
    return error(failed, problem);
  }
  const bool is_text = bytes.find('\0') == bytes.npos && bh::is_utf8(bytes);
  std::string out = "{\"contents\":[{\"uri\":" + bh::json::quoted(uri);
  out += is_text ? ",\"mimeType\":\"text/plain\",\"text\":" + bh::json::quoted(bytes)
                 : ",\"mimeType\":\"application/octet-stream\",\"blob\":\"" + base64(bytes) + "\"";
  return out + "}]}";
}

std::string subscribe(const std::vector<Workspace> &workspaces, const std::string &uri,
                      Watcher *watcher, bool *failed) {
  const Located file = locate(workspaces, uri);
  if (file.workspace == nullptr) {
    return error(failed, "no workspace has " + shown(uri) + "; see the resource templates");
  }
  const std::string problem = watcher->add(uri, *file.workspace, file.path);
  return problem.empty() ? "{}" : error(failed, problem);
}

}  // namespace builtin_files
