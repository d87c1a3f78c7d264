#include "record-store/files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

namespace record_store {
namespace {

bool consume_number(std::string_view *text, char end, std::uint32_t *out) {
  const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), *out);
  if (error != std::errc() || rest == text->data() || rest == text->data() + text->size() ||
      *rest != end) {
    return false;
  }
  text->remove_prefix(static_cast<std::size_t>(rest - text->data()) + 1);
  return true;
}

void add_file(const std::string &path, SegmentFile *file) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return;
  file->bytes += static_cast<std::uint64_t>(status.st_size);
  file->changed_ns = std::max<std::int64_t>(
      file->changed_ns, status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec);
}

}  // namespace

std::string segment_name(std::uint32_t chain, std::uint32_t number) {
  char name[48];
  std::snprintf(name, sizeof name, "calls-%u-%06u.db", chain, number);
  return name;
}

bool parse_segment_name(std::string_view name, std::uint32_t *chain, std::uint32_t *number) {
  constexpr std::string_view prefix = "calls-";
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return consume_number(&name, '-', chain) && consume_number(&name, '.', number) && name == "db";
}

std::vector<SegmentFile> segment_files(const std::string &folder) {
  std::vector<SegmentFile> out;
  std::error_code ec;
  for (std::filesystem::directory_iterator at(folder, ec), end; !ec && at != end;
       at.increment(ec)) {
    SegmentFile file;
    if (!parse_segment_name(at->path().filename().native(), &file.chain, &file.number)) continue;
    file.path = at->path().native();
    add_file(file.path, &file);
    add_file(file.path + "-wal", &file);
    out.push_back(std::move(file));
  }
  std::sort(out.begin(), out.end(), [](const SegmentFile &a, const SegmentFile &b) {
    return a.chain != b.chain ? a.chain < b.chain : a.number < b.number;
  });
  return out;
}

}  // namespace record_store
