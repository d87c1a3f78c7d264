#include "route/record_ring.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/text.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t capacity = RecordRing::memory_bytes;
// If the next entry would start at or after this offset and there is room at the beginning, the
// ring wraps around early. A ring with few entries therefore touches little memory.
constexpr std::uint32_t soft_end = 256u << 10;
// Stored in place of an entry's size; it means that the next entry is at offset 0.
constexpr std::uint32_t wrap = UINT32_MAX;
constexpr std::uint32_t alignment = 8;
constexpr std::size_t texts = 16;

struct Head {
  std::uint32_t size;  // size of the entry, including this header
  std::uint32_t outcome, action, flags, kind, client_revision, server_revision, unused;
  std::uint64_t number, exchange, session, start_unix_ns, duration_ns, bytes_in, bytes_out,
      params_bytes, result_bytes, intent;
  std::uint32_t lengths[texts];
};

// The string fields of a record, in the order in which an entry stores them.
constexpr bh_str bh_record::*fields[texts] = {
    &bh_record::transport,    &bh_record::peer,         &bh_record::principal,
    &bh_record::process_name, &bh_record::method,       &bh_record::server,
    &bh_record::name,         &bh_record::rule,         &bh_record::error,
    &bh_record::reason,       &bh_record::request_id,   &bh_record::trace_id,
    &bh_record::detail,       &bh_record::claimed_name, &bh_record::request,
    &bh_record::response};
constexpr std::size_t request_field = texts - 2;  // followed by the response

// Calls f for each field except the request and the response. Unrolled because it runs for every
// call.
template <class F>
inline void each_field(F f) noexcept {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (f.template operator()<i>(), ...);
  }(std::make_index_sequence<request_field>());
}

// Returns the number of bytes to store. Longer strings are truncated to max_text at a character
// boundary.
std::uint64_t kept_size(bh_str text) noexcept {
  if (text.n <= RecordRing::max_text) return text.n;
  return bh::character_boundary(bh::view(text), RecordRing::max_text);
}

// Optimized for strings of 8 to 16 bytes.
inline char *copy_short(const char *from, std::uint64_t n, char *to) noexcept {
  if (n >= 8 && n <= 16) {
    std::uint64_t first = 0, last = 0;
    std::memcpy(&first, from, 8);
    std::memcpy(&last, from + n - 8, 8);
    std::memcpy(to, &first, 8);
    std::memcpy(to + n - 8, &last, 8);
  } else {
    std::memcpy(to, from, n);
  }
  return to + n;
}

constexpr std::uint32_t aligned(std::size_t size) noexcept {
  return static_cast<std::uint32_t>((size + alignment - 1) / alignment * alignment);
}

}  // namespace

RecordRing::Ends RecordRing::ends() const noexcept {
  const std::uint64_t now = memory_.ends.load(std::memory_order_acquire);
  const Ends out{static_cast<std::uint32_t>(now >> 32), static_cast<std::uint32_t>(now)};
  const bool sound = out.begin < capacity && out.end < capacity && out.begin % alignment == 0 &&
                     out.end % alignment == 0;
  return sound ? out : Ends{0, 0};
}

void RecordRing::set_ends(Ends ends) noexcept {
  if (ends.begin == ends.end) ends = {0, 0};
  memory_.ends.store(std::uint64_t{ends.begin} << 32 | ends.end, std::memory_order_release);
}

bool RecordRing::empty() const noexcept {
  const Ends now = ends();
  return now.begin == now.end;
}

bool RecordRing::nearly_full() const noexcept {
  const Ends now = ends();
  const std::uint32_t used =
      now.begin <= now.end ? now.end - now.begin : capacity - (now.begin - now.end);
  return used > capacity - capacity / 8;
}

bool RecordRing::put(const bh_record &r) noexcept {
  const std::uint64_t request = kept_size(r.request), response = kept_size(r.response);
  // The strings are in memory, so the sum of their sizes cannot overflow 64 bits, and it is
  // sufficient to check the total once.
  std::uint64_t size = sizeof(Head) + request + response;
  each_field([&]<std::size_t i>() { size += (r.*fields[i]).n; });
  if (size > max_record) return false;
  const std::uint32_t room = aligned(size);
  const Ends now = ends();
  std::uint32_t place = now.end;
  // Keep `alignment` bytes free after each entry. They hold the `wrap` marker at the end of the
  // memory, and they distinguish a full ring from an empty ring.
  const bool wrapped = now.end < now.begin;
  const std::uint32_t limit = wrapped ? now.begin : capacity;
  const bool at_begin = !wrapped && room + alignment <= now.begin;
  if (at_begin && (place >= soft_end || place + room + alignment > limit)) {
    std::memcpy(memory_.bytes.data() + place, &wrap, sizeof wrap);
    place = 0;
  } else if (place + room + alignment > limit) {
    return false;
  }
  // Write the entry. It becomes valid only when set_ends() is called.
  auto &head = *new (memory_.bytes.data() + place) Head;
  head.size = room;
  head.outcome = r.outcome;
  head.action = r.action;
  head.flags = r.flags;
  if (request < r.request.n) head.flags |= BH_RECORD_REQUEST_CUT;
  if (response < r.response.n) head.flags |= BH_RECORD_RESPONSE_CUT;
  head.kind = r.kind;
  head.client_revision = r.client_revision;
  head.server_revision = r.server_revision;
  head.number = r.number;
  head.exchange = r.exchange;
  head.session = r.session;
  head.start_unix_ns = r.start_unix_ns;
  head.duration_ns = r.duration_ns;
  head.bytes_in = r.bytes_in;
  head.bytes_out = r.bytes_out;
  head.params_bytes = r.params_bytes;
  head.result_bytes = r.result_bytes;
  head.intent = r.intent;
  char *to = reinterpret_cast<char *>(&head + 1);
  each_field([&]<std::size_t i>() {
    const bh_str text = r.*fields[i];
    head.lengths[i] = static_cast<std::uint32_t>(text.n);
    if (text.n != 0) to = copy_short(text.p, text.n, to);
  });
  head.lengths[request_field] = static_cast<std::uint32_t>(request);
  head.lengths[request_field + 1] = static_cast<std::uint32_t>(response);
  if (request != 0) std::memcpy(to, r.request.p, request);
  if (response != 0) std::memcpy(to + request, r.response.p, response);
  set_ends({now.begin, place + room});
  return true;
}

// Moves *place to the next entry, following a `wrap` marker if there is one. Returns the size of
// the entry, or 0 if there are no more entries or the memory is damaged.
std::uint32_t RecordRing::find_entry(Ends now, std::uint32_t *place) const noexcept {
  for (int tries = 0; tries < 2; ++tries) {
    if (*place == now.end) return 0;
    const bool before_wrap = now.begin > now.end && *place >= now.begin;
    const std::uint32_t limit = before_wrap ? capacity : now.end;
    if (*place > limit || limit - *place < alignment) return 0;
    std::uint32_t size = 0;
    std::memcpy(&size, memory_.bytes.data() + *place, sizeof size);
    if (size == wrap && before_wrap) {
      *place = 0;
      continue;
    }
    const bool sound = size >= sizeof(Head) && size % alignment == 0 && size <= limit - *place &&
                       size <= aligned(max_record);
    return sound ? size : 0;
  }
  return 0;
}

void RecordRing::release(std::uint64_t below) noexcept {
  Ends now = ends();
  const std::uint32_t before = now.begin;
  while (now.begin != now.end) {
    std::uint32_t place = now.begin;
    const std::uint32_t size = find_entry(now, &place);
    if (size == 0) {
      if (place != now.end) return clear();  // damaged: later entries cannot be found
      now.begin = place;
      break;
    }
    std::uint64_t number = 0;
    std::memcpy(&number, memory_.bytes.data() + place + offsetof(Head, number), sizeof number);
    if (number >= below) break;
    now.begin = place + size;
  }
  if (now.begin != before) set_ends(now);
}

bool RecordRing::for_each(const std::function<void(const bh_record &)> &f) const {
  const Ends now = ends();
  std::vector<char> copy;  // a copy, because another process could modify the ring after the check
  std::uint32_t place = now.begin;
  while (const std::uint32_t size = find_entry(now, &place)) {
    copy.assign(memory_.bytes.data() + place, memory_.bytes.data() + place + size);
    Head head;
    std::memcpy(&head, copy.data(), sizeof head);
    bh_record r{};
    r.size = sizeof r;
    r.outcome = head.outcome;
    r.action = head.action;
    r.flags = head.flags;
    r.kind = head.kind;
    r.client_revision = head.client_revision;
    r.server_revision = head.server_revision;
    r.number = head.number;
    r.exchange = head.exchange;
    r.session = head.session;
    r.start_unix_ns = head.start_unix_ns;
    r.duration_ns = head.duration_ns;
    r.bytes_in = head.bytes_in;
    r.bytes_out = head.bytes_out;
    r.params_bytes = head.params_bytes;
    r.result_bytes = head.result_bytes;
    r.intent = head.intent;
    std::size_t at = sizeof head;
    for (std::size_t i = 0; i < texts; ++i) {
      if (head.lengths[i] > size - at) return false;
      r.*fields[i] = {copy.data() + at, head.lengths[i]};
      at += head.lengths[i];
    }
    f(r);
    place += size;
  }
  return place == now.end;
}

}  // namespace bulkhead
