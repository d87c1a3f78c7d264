// Data about client sessions for the next endpoint process. It is stored in memory that outlives
// the current process: the supervisor keeps the memory and passes it to every endpoint process. The
// "carried session" is the session of the client that is connected to the process itself.
//
// Limits: the memory is laid out in advance, and data that does not fit is not stored. A record is
// written beside the valid one and becomes valid with a single store, so it is consistent whenever
// the process ends. A reader does not trust the contents because the process that wrote them may
// have been compromised.
//
// Owner: the Host. Runs on the reactor thread. Only the constructors, the functions that read, and
// leave() allocate memory.
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
  std::string id;  // the transport's id; empty for the carried session
  std::uint8_t revision = 0;
  std::uint32_t caps = 0;
  std::int32_t log_level = -1;
  std::uint8_t listed = 0;
  std::vector<std::string> subscriptions;  // URI tokens: JSON text as the client wrote it
};
template <class Ar>
void archive(Ar &ar, LedgerRecord &v) {
  auto &[id, revision, caps, log_level, listed, subscriptions] = v;
  ar(id, revision, caps, log_level, listed, subscriptions);
}

// A request that had not been answered when its process ended.
struct LedgerRequest {
  std::uint64_t stream = 0;
  std::string id;  // JSON text, not validated
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
  static constexpr std::uint32_t max_ended = 65'536;  // ids of ended sessions
  // Number of consecutive processes that may end without having done any work. After that, the
  // contents are dropped because reading them may be what ends the processes.
  static constexpr std::uint32_t max_fruitless = 5;

  using Slot = std::uint32_t;
  // The slot of the carried session; other slots start at 1.
  static constexpr Slot carried = 0;
  static constexpr Slot none = UINT32_MAX;

  // Creates the memory, empty and of a fixed size. Called by the supervisor.
  static Result<OwnedFd> make();
  // Maps the memory for the lifetime of the returned object; `fd` can then be closed. Returns null
  // if the memory was not created by make() or cannot be mapped.
  static std::unique_ptr<Ledger> open(int fd);
  ~Ledger();
  Ledger(const Ledger &) = delete;
  Ledger &operator=(const Ledger &) = delete;

  // ---- sessions ----
  // Returns a slot for a session of this process, or `none` if no slot is free or the id is too
  // long.
  Slot claim(std::string_view id);
  // Takes over the slot of an earlier process's session, or of a session passed to leave(). Returns
  // `none` if there is none.
  Slot take(std::string_view id);
  // Frees the slots from earlier processes that were not taken over.
  void forget_left();
  // Called when this slot's session ends but may resume with this id; take() then finds the slot by
  // this id. If no other slot is free, the slot passed to leave() first is reused.
  void leave(Slot slot, std::string_view id) { evicted_.emplace_back(id, slot); }
  bool any_left() const noexcept { return !left_.empty(); }
  // Omits subscriptions that do not fit.
  void write(Slot slot, LedgerRecord record);
  std::optional<LedgerRecord> read(Slot slot) const;  // nullopt if empty or damaged
  void release(Slot slot);
  // Records that the session with this id (RecentIds::key_of()) has ended permanently. If there are
  // more than max_ended, the oldest ids are forgotten.
  void add_ended(std::uint64_t key) noexcept;
  std::vector<std::uint64_t> ended() const;  // oldest first

  // ---- the carried session ----
  // Registers a request. Returns false if there are too many or its id is too long. Several
  // requests may have the same stream.
  bool add_request(std::uint64_t stream, std::string_view id, bool initialize) noexcept;
  // Removes this stream's requests. They no longer need an answer.
  void settle(std::uint64_t stream) noexcept;
  std::vector<LedgerRequest> requests() const;
  std::uint64_t last_stream() const noexcept;  // the highest stream in requests()
  std::uint64_t note() const noexcept;         // 64 bits for use by the transport
  void set_note(std::uint64_t note) noexcept;
  // Stores bytes received from the client that have not been processed. If `more` is true, they are
  // appended; otherwise they replace the stored bytes. If there are too many, returns false and
  // stores none.
  bool keep(std::string_view bytes, bool more) noexcept;
  // Called when the first n bytes are about to be processed. commit() is called when the messages
  // in them are known; until then, the next process can also find these bytes.
  void taken(std::uint64_t n) noexcept { taken_ += n; }
  void commit() noexcept {
    if (taken_ != 0) drop_taken();
  }
  std::string_view unread() const noexcept;  // valid until the next keep()
  void end_carried() noexcept;               // removes all data of the carried session

  // ---- records not yet acknowledged by telemetry plugins ----
  RecordRing &records() noexcept { return records_; }

  // Called when this process has done useful work, which proves that the contents it read are
  // harmless.
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
  std::uint64_t taken_ = 0;                           // uncommitted bytes of unread()
  bool proven_ = false;
};

}  // namespace bulkhead
