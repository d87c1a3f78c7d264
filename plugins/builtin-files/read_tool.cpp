// Implements file_read, which returns lines of a text file, or a small file as Base64.
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "builtin-files/encoding.hpp"
#include "builtin-files/resources.hpp"
#include "builtin-files/tools.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

constexpr std::size_t chunk_bytes = 256u << 10;
// file_read searches at most this many bytes for the first requested line.
constexpr std::uint64_t max_scan_bytes = 256u << 20;

// Collects the requested lines while the file is read in chunks.
struct Lines {
  std::uint64_t first;
  std::uint64_t behind;  // one past the last requested line
  std::uint64_t line = 1;
  std::size_t line_start = 0;  // offset in `text` at which `line` starts
  std::string text{};
  bool more = false;  // the file has more lines after `text`
  bool cut = false;   // a line was truncated because it exceeds the response size limit
};

// Processes the next chunk of the file. Returns false if no more chunks are needed.
bool take(Lines *lines, std::string_view chunk) {
  while (!chunk.empty()) {
    if (lines->line >= lines->behind) {
      lines->more = true;
      return false;
    }
    const std::size_t newline = chunk.find('\n');
    const std::string_view piece = chunk.substr(0, newline == chunk.npos ? newline : newline + 1);
    chunk.remove_prefix(piece.size());
    const bool wanted = lines->line >= lines->first;
    if (wanted && lines->text.size() + piece.size() > max_text_bytes) {
      lines->more = true;
      lines->cut = lines->line_start == 0;
      if (lines->cut) {
        lines->text.append(piece.substr(0, max_text_bytes + 4 - lines->text.size()));
        lines->text.resize(bh::character_boundary(lines->text, max_text_bytes));
      } else {
        lines->text.resize(lines->line_start);
      }
      return false;
    }
    if (wanted) lines->text.append(piece);
    if (newline == chunk.npos && piece.back() != '\n') break;
    ++lines->line;
    if (wanted) lines->line_start = lines->text.size();
  }
  return true;
}

std::string not_text(const std::string &path, std::int64_t size) {
  return tool_kit::error_result("\"" + path + "\" is not a text file (" + std::to_string(size) +
                                " bytes); read it with encoding \"base64\", or use file_info");
}

std::string numbered(std::string_view text, std::uint64_t line) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string number = std::to_string(line++);
    out.append(number.size() < 6 ? 6 - number.size() : 0, ' ').append(number) += '\t';
    out.append(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

struct Page {
  const std::string &path;
  std::int64_t size;
  bool line_numbers;
};

// Returns the tool result. The first content block contains only the lines. Notes, if any, are in a
// second block.
std::string lines_result(const Page &page, Lines *lines) {
  if (page.line_numbers) lines->text = numbered(lines->text, lines->first);
  const std::string text = bh::json::quoted(lines->text);
  std::string out = "{\"content\":[{\"type\":\"text\",\"text\":" + text + "}";
  std::string structured = "{\"path\":" + bh::json::quoted(page.path) +
                           ",\"size\":" + std::to_string(page.size) +
                           ",\"first_line\":" + std::to_string(lines->first);
  if (lines->more) {
    const std::uint64_t next = lines->cut ? lines->line + 1 : lines->line;
    std::string note = "Lines " + std::to_string(lines->first) + " to " + std::to_string(next - 1) +
                       "; more of the file remains: next offset " + std::to_string(next) + ".";
    if (lines->cut) note += " The line is longer than 1 MiB and was truncated.";
    out += ",{\"type\":\"text\",\"text\":" + bh::json::quoted(note) + "}";
    structured += ",\"next_offset\":" + std::to_string(next);
  }
  return out + "],\"structuredContent\":" + structured + ",\"text\":" + text + "}}";
}

std::string read_lines(const Call &call, const Page &page, int fd, Lines lines) {
  const std::string &path = page.path;
  const auto chunk = std::make_unique<std::array<char, chunk_bytes>>();
  for (std::uint64_t scanned = 0;;) {
    if (call.must_stop()) return tool_kit::error_result("the call was cancelled or timed out");
    call.report(static_cast<double>(scanned), static_cast<double>(page.size), "bytes");
    const ssize_t n = ::read(fd, chunk->data(), chunk->size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return tool_kit::error_result("reading \"" + path + "\" failed: " + bh::error_name(errno));
    }
    const std::string_view piece(chunk->data(), static_cast<std::size_t>(n));
    if (piece.find('\0') != piece.npos) return not_text(path, page.size);
    if (n == 0 || !take(&lines, piece)) break;
    scanned += piece.size();
    if (scanned > max_scan_bytes) {
      return tool_kit::error_result("line " + std::to_string(lines.first) + " of \"" + path +
                                    "\" is beyond the first 256 MiB of the file");
    }
  }
  if (!bh::is_utf8(lines.text)) return not_text(path, page.size);
  if (lines.text.empty() && lines.first > 1) {
    return tool_kit::error_result("\"" + path + "\" has no line " + std::to_string(lines.first));
  }
  return lines_result(page, &lines);
}

std::string_view mime_type(std::string_view path) {
  static constexpr std::pair<std::string_view, std::string_view> types[] = {
      {".png", "image/png"},      {".jpg", "image/jpeg"},  {".jpeg", "image/jpeg"},
      {".gif", "image/gif"},      {".webp", "image/webp"}, {".pdf", "application/pdf"},
      {".zip", "application/zip"}};
  for (const auto &[suffix, type] : types) {
    if (path.ends_with(suffix)) return type;
  }
  return "application/octet-stream";
}

std::string read_base64(const Workspace &workspace, const std::string &path, int fd) {
  std::string bytes(max_text_bytes + 1, '\0');
  std::size_t size = 0;
  for (ssize_t n = 1; n > 0 && size < bytes.size();) {
    n = ::read(fd, bytes.data() + size, bytes.size() - size);
    if (n < 0) {
      return tool_kit::error_result("reading \"" + path + "\" failed: " + bh::error_name(errno));
    }
    size += static_cast<std::size_t>(n);
  }
  if (size > max_text_bytes) {
    return tool_kit::error_result("\"" + path + "\" is larger than 1 MiB");
  }
  bytes.resize(size);
  const std::string_view type = mime_type(path);
  std::string out = "{\"content\":[";
  if (type.starts_with("image/")) {
    out += "{\"type\":\"image\",\"data\":\"" + base64(bytes) + "\",\"mimeType\":\"";
    out += std::string(type) + "\"}";
  } else {
    const std::string uri = file_uri(workspace, path);
    out += "{\"type\":\"resource\",\"resource\":{\"uri\":" + bh::json::quoted(uri);
    out += ",\"mimeType\":\"" + std::string(type) + "\",\"blob\":\"" + base64(bytes) + "\"}}";
  }
  return out + "],\"structuredContent\":{\"path\":" + bh::json::quoted(path) +
         ",\"size\":" + std::to_string(size) + "}}";
}

}  // namespace

std::string file_read(const Call &call) {
  const Workspace &workspace = call.workspace();
  const std::string path = call.arguments.text("path");
  const std::uint64_t offset = call.arguments.whole("offset", 1, 1, 1'000'000'000'000);
  const std::uint64_t limit = call.arguments.whole("limit", 2000, 1, 100'000);
  const bool as_text = call.arguments.choice("encoding", {"text", "base64"}) == "text";
  const bool line_numbers = call.arguments.flag("line_numbers", false);
  if (const std::string &p = call.arguments.problem(); !p.empty()) return tool_kit::error_result(p);

  const Opened opened = workspace.open(path, O_RDONLY);
  if (!opened.fd.valid()) return tool_kit::error_result(opened.problem);
  struct stat status{};
  if (::fstat(opened.fd.get(), &status) != 0) return tool_kit::error_result(bh::error_name(errno));
  if (S_ISDIR(status.st_mode)) {
    return tool_kit::error_result("\"" + path + "\" is a folder; list it with dir_list");
  }
  if (!S_ISREG(status.st_mode)) {
    return tool_kit::error_result("\"" + path + "\" is not a regular file");
  }
  if (!as_text) return read_base64(workspace, path, opened.fd.get());
  return read_lines(call, {path, status.st_size, line_numbers}, opened.fd.get(),
                    {.first = offset, .behind = offset + limit});
}

}  // namespace builtin_files
