#include "route/ledger.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace bulkhead {
namespace {

// "bledger4"; must change when the layout changes.
constexpr std::uint64_t magic = 0x34'72'65'67'64'65'6c'62;
constexpr std::uint32_t slots = Ledger::max_sessions + 1;
// Maximum number of indexes that are tried for a request. The first one is `stream % max_requests`.
constexpr std::uint32_t reach = 64;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

struct Half {
  std::uint32_t size;
  char bytes[Ledger::max_record_bytes];
};

struct RequestText {
  std::uint8_t size;
  std::uint8_t initialize;
  char id[Ledger::max_request_id_bytes];
};

// Maximum size of a record without its subscriptions.
constexpr std::size_t fixed_bytes = 128;
// Bytes that a subscription needs in addition to its URI.
constexpr std::size_t count_bytes = sizeof(std::uint32_t);

constexpr std::uint64_t range(std::uint64_t begin, std::uint64_t end) {
  return begin << 32 | end;
}

}  // namespace

struct Ledger::File {
  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint32_t> fruitless;
  std::uint32_t unused;
  std::atomic<std::uint64_t> note;
  // 0 if the slot has no record; otherwise 1 or 2, the number of the valid copy of the record.
  std::array<std::atomic<std::uint32_t>, slots> valid;
  std::array<std::atomic<std::uint64_t>, max_requests> stream;  // 0 if the slot is free
  std::array<RequestText, max_requests> request;
  std::atomic<std::uint64_t> unread;  // start and end of the unread bytes, 32 bits each
  std::array<char, max_unread_bytes> unread_bytes;
  std::array<std::array<Half, 2>, slots> record;
  // Total number of keys that have been added. `ended` is a ring buffer of the last max_ended keys.
  std::atomic<std::uint64_t> ended_count;
  std::array<std::atomic<std::uint64_t>, max_ended> ended;
  RecordRing::Memory records;
};

Result<OwnedFd> Ledger::make() {
  OwnedFd fd(::memfd_create("bulkhead-ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), sizeof(File)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) {
    return fail(BH_E_LIMIT, "out of memory for session resumption data");
  }
  return fd;
}

std::unique_ptr<Ledger> Ledger::open(int fd) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  struct stat facts{};
  // If the file could be truncated, another process could crash this process by truncating it.
  const int sealed = ::fcntl(fd, F_GET_SEALS);
  if (sealed < 0 || (sealed & F_SEAL_SHRINK) == 0 || ::fstat(fd, &facts) != 0 ||
      static_cast<std::uint64_t>(facts.st_size) != sizeof(File)) {
    return nullptr;
  }
  void *at = ::mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return nullptr;
  return std::unique_ptr<Ledger>(new Ledger(static_cast<File *>(at)));
}

Ledger::Ledger(File *file) : file_(file), records_(file->records) {
  const bool known = file_->magic.load(std::memory_order_acquire) == magic;
  const std::uint32_t fruitless = file_->fruitless.load(std::memory_order_relaxed);
  if (!known || fruitless >= max_fruitless) wipe();
  file_->fruitless.store(known && fruitless < max_fruitless ? fruitless + 1 : 0,
                         std::memory_order_relaxed);
  file_->magic.store(magic, std::memory_order_release);
  look_for_left();
}

Ledger::~Ledger() {
  ::munmap(file_, sizeof(File));
}

// Clears only the tables. Other data is never read unless a table marks it as valid.
void Ledger::wipe() noexcept {
  for (auto &valid : file_->valid) valid.store(0, std::memory_order_relaxed);
  for (auto &stream : file_->stream) stream.store(0, std::memory_order_relaxed);
  file_->note.store(0, std::memory_order_relaxed);
  file_->unread.store(0, std::memory_order_relaxed);
  file_->ended_count.store(0, std::memory_order_relaxed);
  records_.clear();
}

void Ledger::look_for_left() {
  free_.reserve(max_sessions);
  for (Slot slot = slots - 1; slot > carried; --slot) {
    const auto record = read(slot);
    if (record && !record->id.empty()) {
      left_.emplace_back(record->id, slot);
    } else {
      release(slot);
    }
  }
  std::sort(left_.begin(), left_.end());
}

void Ledger::set_proven() noexcept {
  proven_ = true;
  file_->fruitless.store(0, std::memory_order_relaxed);
}

// ---- sessions --------------------------------------------------------------------------------

Ledger::Slot Ledger::claim(std::string_view id) {
  if (id.empty() || id.size() > max_id_bytes) return none;
  if (free_.empty() && !evicted_.empty()) {
    release(evicted_.front().second);
    evicted_.pop_front();
  }
  if (free_.empty()) return none;
  const Slot slot = free_.back();
  free_.pop_back();
  return slot;
}

void Ledger::add_ended(std::uint64_t key) noexcept {
  const std::uint64_t count = file_->ended_count.load(std::memory_order_relaxed);
  file_->ended[count % max_ended].store(key, std::memory_order_relaxed);
  file_->ended_count.store(count + 1, std::memory_order_release);
}

std::vector<std::uint64_t> Ledger::ended() const {
  const std::uint64_t count = file_->ended_count.load(std::memory_order_acquire);
  const std::uint64_t n = std::min<std::uint64_t>(count, max_ended);
  std::vector<std::uint64_t> keys;
  keys.reserve(n);
  for (std::uint64_t i = count - n; i != count; ++i) {
    keys.push_back(file_->ended[i % max_ended].load(std::memory_order_relaxed));
  }
  return keys;
}

Ledger::Slot Ledger::take(std::string_view id) {
  const auto at =
      std::lower_bound(left_.begin(), left_.end(), id,
                       [](const auto &left, auto wanted) { return left.first < wanted; });
  if (at != left_.end() && at->first == id) {
    const Slot slot = at->second;
    left_.erase(at);
    return slot;
  }
  const auto evicted = std::find_if(evicted_.begin(), evicted_.end(),
                                    [id](const auto &entry) { return entry.first == id; });
  if (evicted == evicted_.end()) return none;
  const Slot slot = evicted->second;
  evicted_.erase(evicted);
  return slot;
}

void Ledger::forget_left() {
  for (const auto &[id, slot] : left_) release(slot);
  left_.clear();
}

void Ledger::write(Slot slot, LedgerRecord record) {
  if (slot >= slots || record.id.size() > max_id_bytes) return;
  std::size_t size = fixed_bytes;
  std::erase_if(record.subscriptions, [&](const std::string &uri) {
    const bool fits = size + uri.size() + count_bytes <= max_record_bytes;
    if (fits) size += uri.size() + count_bytes;
    return !fits;
  });
  const std::string bytes = to_bytes(record);
  const std::uint32_t now = file_->valid[slot].load(std::memory_order_relaxed) == 1 ? 2 : 1;
  Half &half = file_->record[slot][now - 1];
  half.size = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(half.bytes, bytes.data(), bytes.size());
  file_->valid[slot].store(now, std::memory_order_release);
}

std::optional<LedgerRecord> Ledger::read(Slot slot) const {
  if (slot >= slots) return std::nullopt;
  const std::uint32_t valid = file_->valid[slot].load(std::memory_order_acquire);
  if (valid != 1 && valid != 2) return std::nullopt;
  const Half &half = file_->record[slot][valid - 1];
  const std::uint32_t size = half.size;
  if (size > max_record_bytes) return std::nullopt;
  LedgerRecord record;
  if (!from_bytes({half.bytes, size}, &record) || record.id.size() > max_id_bytes) {
    return std::nullopt;
  }
  return record;
}

void Ledger::release(Slot slot) {
  if (slot >= slots) return;
  file_->valid[slot].store(0, std::memory_order_release);
  if (slot != carried) free_.push_back(slot);
}

// ---- the carried session -----------------------------------------------------------------------

bool Ledger::add_request(std::uint64_t stream, std::string_view id, bool initialize) noexcept {
  if (stream == 0 || id.empty() || id.size() > max_request_id_bytes) return false;
  for (std::uint32_t i = 0; i < reach; ++i) {
    const std::size_t at = (stream + i) % max_requests;
    if (file_->stream[at].load(std::memory_order_relaxed) != 0) continue;
    RequestText &text = file_->request[at];
    text.size = static_cast<std::uint8_t>(id.size());
    text.initialize = initialize ? 1 : 0;
    std::memcpy(text.id, id.data(), id.size());
    file_->stream[at].store(stream, std::memory_order_release);
    return true;
  }
  return false;
}

void Ledger::settle(std::uint64_t stream) noexcept {
  if (stream == 0) return;
  for (std::uint32_t i = 0; i < reach; ++i) {
    auto &at = file_->stream[(stream + i) % max_requests];
    if (at.load(std::memory_order_relaxed) == stream) at.store(0, std::memory_order_release);
  }
}

std::vector<LedgerRequest> Ledger::requests() const {
  std::vector<LedgerRequest> out;
  for (std::size_t at = 0; at < max_requests; ++at) {
    const std::uint64_t stream = file_->stream[at].load(std::memory_order_acquire);
    const RequestText &text = file_->request[at];
    const std::size_t size = text.size;
    const bool in_place = (at + max_requests - stream % max_requests) % max_requests < reach;
    if (stream == 0 || !in_place || size == 0 || size > max_request_id_bytes) continue;
    out.push_back({stream, std::string(text.id, size), text.initialize != 0});
  }
  std::sort(out.begin(), out.end(), [](const LedgerRequest &a, const LedgerRequest &b) {
    return a.stream != b.stream ? a.stream < b.stream : a.id < b.id;
  });
  return out;
}

std::uint64_t Ledger::last_stream() const noexcept {
  std::uint64_t last = 0;
  for (const auto &stream : file_->stream) {
    last = std::max(last, stream.load(std::memory_order_relaxed));
  }
  return last;
}

std::uint64_t Ledger::note() const noexcept {
  return file_->note.load(std::memory_order_acquire);
}

void Ledger::set_note(std::uint64_t note) noexcept {
  file_->note.store(note, std::memory_order_release);
}

bool Ledger::keep(std::string_view bytes, bool more) noexcept {
  const std::string_view before = more ? unread() : std::string_view();
  const std::size_t begin =
      before.empty() ? 0 : static_cast<std::size_t>(before.data() - file_->unread_bytes.data());
  const std::size_t end = begin + before.size();
  const bool fits = bytes.size() <= max_unread_bytes - end;
  if (before.empty() || !fits) {
    file_->unread.store(0, std::memory_order_release);
    taken_ = 0;
  }
  if (!fits || bytes.empty()) return fits;
  std::memcpy(file_->unread_bytes.data() + end, bytes.data(), bytes.size());
  file_->unread.store(range(begin, end + bytes.size()), std::memory_order_release);
  return true;
}

void Ledger::drop_taken() noexcept {
  const std::string_view left = unread();
  const std::uint64_t n = std::exchange(taken_, 0);
  if (left.empty()) return;
  const auto begin = static_cast<std::uint64_t>(left.data() - file_->unread_bytes.data());
  const bool all = n >= left.size();
  file_->unread.store(all ? 0 : range(begin + n, begin + left.size()), std::memory_order_release);
}

std::string_view Ledger::unread() const noexcept {
  const std::uint64_t now = file_->unread.load(std::memory_order_acquire);
  const std::uint64_t begin = now >> 32, end = now & UINT32_MAX;
  if (begin >= end || end > max_unread_bytes) return {};
  return {file_->unread_bytes.data() + begin, end - begin};
}

void Ledger::end_carried() noexcept {
  file_->valid[carried].store(0, std::memory_order_release);
  for (auto &stream : file_->stream) stream.store(0, std::memory_order_release);
  set_note(0);
  file_->unread.store(0, std::memory_order_release);
  taken_ = 0;
}

}  // namespace bulkhead
