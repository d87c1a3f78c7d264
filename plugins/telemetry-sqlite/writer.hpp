// The thread that writes. Rows come from the reactor's thread into a bounded queue and go to the
// store in batches; while the store cannot be written they wait, or go to the spill file.
//
// Owner: the plugin. Thread: as said; the counters are for any.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "telemetry-sqlite/lock.hpp"
#include "telemetry-sqlite/spill.hpp"
#include "telemetry-sqlite/store.hpp"

namespace telemetry_sqlite {

struct WriterCounters {
  std::atomic<std::uint64_t> written{0}, lost{0}, spilled{0}, known{0}, masked{0}, write_errors{0},
      checkpoints{0};
};

class Writer {
 public:
  static constexpr std::size_t max_rows = 16'384;  // that wait, or are being written
  static constexpr std::size_t max_bytes = 64u << 20;
  static constexpr std::size_t batch_rows = 512;  // of a transaction; as many are not waited with,
                                                  // nor texts of half of max_bytes
  static constexpr std::uint64_t retry_ms = 500;
  static constexpr std::uint64_t idle_checkpoint_ms = 60'000;  // then a few rows are signed, too
  static constexpr std::uint64_t sign_again_ms = 10'000;       // after nobody has signed

  static constexpr std::uint64_t rotate_again_ms = 60'000;  // after the next file was not made

  // All records that were put with numbers below this are committed. The writer's thread.
  using Committed = std::function<void(std::uint64_t below)>;
  // Masks what the profile holds, and says how many there were. The writer's thread.
  using MaskOwn = std::function<std::uint64_t(std::string *text)>;
  // `log`: any thread. `sign`: the writer's thread, may block.
  Writer(
      const Config &config, std::string instance, Store::Log log, Store::Sign sign,
      Committed committed = [](std::uint64_t) {}, MaskOwn mask_own = nullptr);
  ~Writer();
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  // [control] Opens the files below `folder` and starts the thread. Where there is only no room for
  // a row at the moment, records wait or are spilled as they are later on. The error's text.
  std::string start(const std::string &folder);
  // [control] Writes what waits, signs, closes, ends the thread.
  void stop();
  // [io] False: there is no room now.
  bool put(Row &&row);

  const WriterCounters &counters() const noexcept { return counters_; }

 private:
  using Clock = std::chrono::steady_clock;

  std::string begin_record();
  void run();
  bool is_much() const noexcept;
  void take_batch(std::unique_lock<std::mutex> &lock);
  bool write_batch();
  // replayed: they were spilled before others that may be on record already.
  bool write_rows(std::vector<Row> *rows, bool replayed);
  bool try_rows(std::vector<Row> *rows, bool replayed);
  bool write_begin();
  bool note_gap(const Row &row, bool replayed);
  bool write_marks();
  bool replay();
  void mask(Row *row);
  void spill_batch();
  void drop_batch();
  void failed(std::string why = {});
  void maintain(bool ending);
  void end();

  const Config config_;
  const std::string instance_;
  const Store::Log log_;
  const Store::Sign sign_;
  const Committed committed_;
  const MaskOwn mask_own_;
  ChainLock lock_;
  std::unique_ptr<Store> store_;
  Spill spill_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Row> queue_;
  std::size_t held_rows_ = 0, held_bytes_ = 0;  // of queue_ and batch_
  bool stopping_ = false;

  // The writer's thread.
  std::thread thread_;
  std::vector<Row> batch_;
  std::size_t batch_bytes_ = 0;
  bool begun_ = false;  // the files are open, and say that a process has begun
  bool failing_ = false;
  std::uint64_t lost_unmarked_ = 0;
  std::uint64_t next_number_ = 0;  // that should come next; 0: not known
  Clock::time_point retry_at_, signed_at_, sign_not_before_, rotate_not_before_;
  bool sign_failed_ = false;

  WriterCounters counters_;
};

}  // namespace telemetry_sqlite
