// Writes records on a separate thread. The reactor thread adds rows to a bounded queue. The writer
// thread writes them to the store in batches. While the store cannot be written, rows wait in the
// queue or are moved to the spill file.
//
// Owner: the plugin. The comment on each function names the thread that may call it. The counters
// may be read on any thread.
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
  // Maximum number of queued rows, including the rows that are being written.
  static constexpr std::size_t max_rows = 16'384;
  static constexpr std::size_t max_bytes = 64u << 20;
  // Maximum number of rows per transaction. If the queue has this many rows or more than half of
  // max_bytes, it is written without waiting for flush_ms.
  static constexpr std::size_t batch_rows = 512;
  static constexpr std::uint64_t retry_ms = 500;
  // If there are new rows, but fewer than checkpoint_rows, a checkpoint is signed at this interval.
  static constexpr std::uint64_t idle_checkpoint_ms = 60'000;
  static constexpr std::uint64_t sign_again_ms = 10'000;  // retry interval after signing has failed

  // Retry interval if the next file could not be created.
  static constexpr std::uint64_t rotate_again_ms = 60'000;

  // Called on the writer thread when all queued records whose numbers are less than `below` have
  // been committed.
  using Committed = std::function<void(std::uint64_t below)>;
  // Masks the credentials of the profile in *text and returns the number of masked values. Runs on
  // the writer thread.
  using MaskOwn = std::function<std::uint64_t(std::string *text)>;
  // `log` must be thread-safe. `sign` runs on the writer thread and may block.
  Writer(
      const Config &config, std::string instance, Store::Log log, Store::Sign sign,
      Committed committed = [](std::uint64_t) {}, MaskOwn mask_own = nullptr);
  ~Writer();
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  // [control] Opens the files in `folder` and starts the thread. Returns the error message, or an
  // empty string on success. Fails if the spill file's disk space cannot be reserved. If only the
  // database cannot be written (full disk), records are queued or spilled until it can be written.
  std::string start(const std::string &folder);
  // [control] Writes and signs the queued rows, closes the files and stops the thread.
  void stop();
  // [io] Queues a row. Returns false if the queue is full.
  bool put(Row &&row);

  const WriterCounters &counters() const noexcept { return counters_; }

 private:
  using Clock = std::chrono::steady_clock;

  std::string begin_record();
  void run();
  bool is_much() const noexcept;
  void dequeue_batch(std::unique_lock<std::mutex> &lock);
  bool write_batch();
  // `replayed` is true for rows from the spill file, which may be older than rows in the database.
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
  std::size_t held_rows_ = 0, held_bytes_ = 0;  // rows in queue_ and batch_
  bool stopping_ = false;

  // The following members are used only on the writer thread after start().
  std::thread thread_;
  std::vector<Row> batch_;
  std::size_t batch_bytes_ = 0;
  bool begun_ = false;  // the files are open, and the `start` mark has been written
  bool failing_ = false;
  std::uint64_t lost_unmarked_ = 0;
  std::uint64_t next_number_ = 0;  // the next expected record number; 0 if unknown
  Clock::time_point retry_at_, signed_at_, sign_not_before_, rotate_not_before_;
  bool sign_failed_ = false;

  WriterCounters counters_;
};

}  // namespace telemetry_sqlite
