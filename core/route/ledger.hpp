// What the next process of the gateway must know of its clients' sessions: in memory that outlives
// this one, because the supervisor keeps it and hands it to every process of the endpoint.
//
// Bounds: all of it is laid out in advance, and what does not fit is not remembered. Whatever ends
// the process, and when, each record is found as it was before or after its last change: it is
// written beside the valid one, and made valid by one store. A reader trusts nothing of it, since
// the process that wrote it may have been taken over.
//
// Owner: the Host. Thread: [io]. No function but the constructors, those that read and leave()
// allocates.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/archive.hpp"
#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "route/record_ring.hpp"

namespace bulkhead {

// One session.
struct LedgerRecord {
  std::string id;  // the transport's; empty: the carried one's
  std::uint8_t revision = 0;
  std::uint32_t caps = 0;
  std::int32_t log_level = -1;
  std::uint8_t listed = 0;
  std::vector<std::string> subscriptions;  // URI tokens, JSON text as the client wrote it
};
template <class Ar>
void archive(Ar &ar, LedgerRecord &v) {
  auto &[id, revision, caps, log_level, listed, subscriptions] = v;
  ar(id, revision, caps, log_level, listed, subscriptions);
}

// A request that had no answer yet when its process ended.
struct LedgerRequest {
  std::uint64_t stream = 0;
  std::string id;  // JSON text; not checked
  bool initialize = false;
};

class Ledger {
 public:
  static constexpr std::uint32_t max_sessions = 4096;
  static constexpr std::size_t max_id_bytes = 64;        // of a session
  static constexpr std::size_t max_record_bytes = 4080;  // with its subscriptions
  static constexpr std::uint32_t max_requests = 2048;    // of the carried session
  static constexpr std::size_t max_request_id_bytes = 112;
  static constexpr std::size_t max_unread_bytes = 256u << 10;
  static constexpr std::uint32_t max_ended = 65'536;  // ids of sessions that ended
  // So many processes in a row that ended without having done anything: it may be what they read
  // here that ends them, and is dropped.
  static constexpr std::uint32_t max_fruitless = 5;

  using Slot = std::uint32_t;
  static constexpr Slot carried = 0;  // of the client that comes with the process; others: 1 and on
  static constexpr Slot none = UINT32_MAX;

  // The memory, empty: it can neither shrink nor grow. The supervisor's part.
  static Result<OwnedFd> make();
  // Maps it, for the life of the result; `fd` can be closed. Null: it is not what make() gives, or
  // cannot be mapped.
  static std::unique_ptr<Ledger> open(int fd);
  ~Ledger();
  Ledger(const Ledger &) = delete;
  Ledger &operator=(const Ledger &) = delete;

  // ---- sessions ----
  // A place for a session of this process; none: there is none left, or the id is too long.
  Slot claim(std::string_view id);
  // Takes over the place of a session of an earlier process.
  Slot take(std::string_view id);
  // Places of earlier processes that were not taken can be claimed from now on.
  void forget_left();
  // The session of this place ends and may come back, with this id: take() finds it. Its place is
  // given away once no other is free, those that were left first before the others.
  void leave(Slot slot, std::string_view id) { evicted_.emplace_back(id, slot); }
  bool any_left() const noexcept { return !left_.empty(); }
  // Subscriptions that do not fit are left out.
  void write(Slot slot, LedgerRecord record);
  std::optional<LedgerRecord> read(Slot slot) const;  // nothing: empty or damaged
  void release(Slot slot);
  // Remembers that the session with this id (RecentIds::key_of()) has ended for good; the earliest
  // of more than max_ended are forgotten.
  void add_ended(std::uint64_t key) noexcept;
  std::vector<std::uint64_t> ended() const;  // the earliest first

  // ---- the carried session ----
  // Registers a request; false: too many, or its id is too long. Several may have one stream.
  bool add_request(std::uint64_t stream, std::string_view id, bool initialize) noexcept;
  // Removes the requests of this stream, which need no answer.
  void settle(std::uint64_t stream) noexcept;
  std::vector<LedgerRequest> requests() const;
  std::uint64_t last_stream() const noexcept;  // the greatest of requests()
  std::uint64_t note() const noexcept;         // 64 bits of the transport's own
  void set_note(std::uint64_t note) noexcept;
  // Stores bytes of the client that were not handled: appends them (more) or replaces the stored
  // ones. False: too many; none is stored then.
  bool keep(std::string_view bytes, bool more) noexcept;
  // The first n of them are going to be handled; commit() when it is known what they are. Until
  // then the next process would find them, too.
  void taken(std::uint64_t n) noexcept { taken_ += n; }
  void commit() noexcept {
    if (taken_ != 0) drop_taken();
  }
  std::string_view unread() const noexcept;  // until the next keep()
  void end_carried() noexcept;               // all of it is forgotten

  // ---- records that no telemetry plugin has acknowledged yet ----
  RecordRing &records() noexcept { return records_; }

  // This process has done something: what it has read here does no harm.
  void prove() noexcept {
    if (!proven_) set_proven();
  }

 private:
  struct File;
  explicit Ledger(File *file);
  void look_for_left();
  void wipe() noexcept;
  void set_proven() noexcept;
  void drop_taken() noexcept;

  File *const file_;
  RecordRing records_;
  std::vector<Slot> free_;
  std::vector<std::pair<std::string, Slot>> left_;    // of earlier processes, by id
  std::deque<std::pair<std::string, Slot>> evicted_;  // of this process; at most max_sessions
  std::uint64_t taken_ = 0;                           // of unread(), not committed
  bool proven_ = false;
};

}  // namespace bulkhead
