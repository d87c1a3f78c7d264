// Shared memory that keeps client sessions across restarts of the endpoint process. The supervisor
// owns the memory and passes it to each endpoint process. The "carried session" is the session of
// the client on the process's own connection (for example, standard input and output).
//
// Limits: the memory has a fixed layout, and data that does not fit is not stored. Each session has
// two copies of its record: a write goes to the unused copy, which then becomes valid with a single
// atomic store. Therefore, the record is consistent even if the process is killed during a write.
// Security: the contents are untrusted, because the process that wrote them may have been
// compromised.
//
// Owner: the Host. Runs on the reactor thread. Functions that are marked noexcept do not allocate
// memory.
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

// The stored state of one session.
struct LedgerRecord {
  std::string id;  // the transport's session id; empty for the carried session
  std::uint8_t revision = 0;
  std::uint32_t caps = 0;
  std::int32_t log_level = -1;
  std::uint8_t listed = 0;
  std::vector<std::string> subscriptions;  // URIs as JSON strings, exactly as the client wrote them
};
template <class Ar>
void archive(Ar &ar, LedgerRecord &v) {
  auto &[id, revision, caps, log_level, listed, subscriptions] = v;
  ar(id, revision, caps, log_level, listed, subscriptions);
}

// A request that was pending when its process exited.
struct LedgerRequest {
  std::uint64_t stream = 0;
  std::string id;  // JSON text, not validated
  bool initialize = false;
};

class Ledger {
 public:
  static constexpr std::uint32_t max_sessions = 4096;
  static constexpr std::size_t max_id_bytes = 64;        // for a session id
  static constexpr std::size_t max_record_bytes = 4080;  // including subscriptions
  static constexpr std::uint32_t max_requests = 2048;    // in the carried session
  static constexpr std::size_t max_request_id_bytes = 112;
  static constexpr std::size_t max_unread_bytes = 256u << 10;
  static constexpr std::uint32_t max_ended = 65'536;  // ids of ended sessions
  // Number of consecutive processes that may exit without having called prove(). After that, the
  // contents are discarded, because they may be the cause of the crashes.
  static constexpr std::uint32_t max_fruitless = 5;

  using Slot = std::uint32_t;
  // Slot 0 is reserved for the carried session.
  static constexpr Slot carried = 0;
  static constexpr Slot none = UINT32_MAX;

  // Creates the memory, which has a fixed size and is initially empty. Called by the supervisor.
  static Result<OwnedFd> make();
  // Maps the memory until the returned object is destroyed. The caller may close `fd` afterwards.
  // Returns null if the memory was not created by make() or cannot be mapped.
  static std::unique_ptr<Ledger> open(int fd);
  ~Ledger();
  Ledger(const Ledger &) = delete;
  Ledger &operator=(const Ledger &) = delete;

  // ---- sessions ----
  // Reserves a slot for a new session. Returns `none` if all slots are in use, or if the id is
  // empty or too long.
  Slot claim(std::string_view id);
  // Takes over the slot of the session with this id, if an earlier process left the slot or it was
  // passed to leave(). Returns `none` if there is no such slot.
  Slot take(std::string_view id);
  // Releases the slots that earlier processes left and that have not been taken over.
  void forget_left();
  // Keeps the slot of a session that has ended but may be resumed with this id, so that take()
  // finds it. If claim() finds no free slot, it reuses the slot that was passed to leave() first.
  void leave(Slot slot, std::string_view id) { evicted_.emplace_back(id, slot); }
  bool any_left() const noexcept { return !left_.empty(); }
  // Stores the record. Subscriptions that do not fit are omitted.
  void write(Slot slot, LedgerRecord record);
  std::optional<LedgerRecord> read(Slot slot) const;  // nullopt if empty or damaged
  void release(Slot slot);
  // Records that a session has ended permanently. `key` is RecentIds::key_of() of its id. Beyond
  // max_ended, the oldest ids are overwritten.
  void add_ended(std::uint64_t key) noexcept;
  std::vector<std::uint64_t> ended() const;  // oldest first

  // ---- the carried session ----
  // Stores a pending request. Returns false if there is no free place for a request of this stream,
  // if `stream` is 0, or if the id is empty or too long. Several requests may share a stream.
  bool add_request(std::uint64_t stream, std::string_view id, bool initialize) noexcept;
  // Removes the requests of this stream because they have been answered or cancelled.
  void settle(std::uint64_t stream) noexcept;
  std::vector<LedgerRequest> requests() const;
  std::uint64_t last_stream() const noexcept;  // the highest stream of a stored request, or 0
  std::uint64_t note() const noexcept;         // 64 bits reserved for the transport
  void set_note(std::uint64_t note) noexcept;
  // Stores bytes that the client has sent but the process has not handled yet. If `more` is true,
  // appends the bytes to the stored bytes; otherwise, replaces them. If the bytes do not fit,
  // removes all stored bytes and returns false.
  bool keep(std::string_view bytes, bool more) noexcept;
  // Called before the next n stored bytes are handled. The bytes are removed by commit(), which is
  // called after their requests have been stored. If the process is killed before commit(), the
  // next process finds the bytes again.
  void taken(std::uint64_t n) noexcept { taken_ += n; }
  void commit() noexcept {
    if (taken_ != 0) drop_taken();
  }
  std::string_view unread() const noexcept;  // valid until the next keep()
  void end_carried() noexcept;               // removes all data of the carried session

  // ---- records not yet acknowledged by telemetry plugins ----
  RecordRing &records() noexcept { return records_; }

  // Called when this process sends a response, which shows that the stored contents do not crash
  // it.
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
  // Slots of earlier processes, sorted by session id.
  std::vector<std::pair<std::string, Slot>> left_;
  // Slots passed to leave(); at most max_sessions.
  std::deque<std::pair<std::string, Slot>> evicted_;
  std::uint64_t taken_ = 0;  // bytes of unread() that commit() removes
  bool proven_ = false;
};

}  // namespace bulkhead
