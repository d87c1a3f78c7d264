#include "builtin-http/cache.hpp"

#include <algorithm>
#include <iterator>

#include "builtin-http/freshness.hpp"

namespace builtin_http {
namespace {

std::size_t size_of(const std::string &url, const Response &response) {
  std::size_t n = 1024 + url.size() + response.body.size();
  for (const Header &h : response.headers) n += h.name.size() + h.value.size() + 64;
  return n;
}

bool has_validator(const Response &response) {
  return !response.header("etag").empty() || !response.header("last-modified").empty();
}

std::uint64_t later(std::uint64_t now_ns, std::uint64_t seconds) {
  return now_ns + seconds * 1'000'000'000;
}

}  // namespace

bool Cache::is_for(const Request &request) {
  return request.method == "GET" && request.headers.empty() && !request.head_only &&
         !request.any_status;
}

Cache::Entries::iterator Cache::entry_of(const Url &url) {
  const std::string text = url.text();
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry &e) { return e.url == text; });
  if (entry != entries_.end()) entries_.splice(entries_.begin(), entries_, entry);
  return entry;
}

void Cache::drop(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

Cache::Found Cache::find(const Url &url, std::uint64_t now_ns) {
  const auto entry = entry_of(url);
  if (entry == entries_.end()) return {};
  if (now_ns < entry->fresh_until_ns) return {&entry->response, true};
  if (has_validator(entry->response)) return {&entry->response, false};
  drop(entry);
  return {};
}

void Cache::store(const Url &url, const Response &response, std::uint64_t now_ns, std::time_t now) {
  if (const auto old = entry_of(url); old != entries_.end()) drop(old);
  const Freshness freshness = freshness_of(response, now);
  const bool useful = freshness.seconds > 0 || has_validator(response);
  const std::size_t bytes = size_of(url.text(), response);
  if (!freshness.store || !useful || bytes > max_bytes_ / 8) return;
  entries_.push_front({url.text(), response, later(now_ns, freshness.seconds), bytes});
  bytes_ += bytes;
  while (bytes_ > max_bytes_ || entries_.size() > max_entries) drop(std::prev(entries_.end()));
}

void Cache::renew(const Url &url, const Response &not_modified, std::uint64_t now_ns,
                  std::time_t now) {
  const auto entry = entry_of(url);
  if (entry == entries_.end()) return;
  Response head = not_modified;
  head.status = 200;  // treated like a new 200 response
  entry->fresh_until_ns = later(now_ns, freshness_of(head, now).seconds);
}

}  // namespace builtin_http
