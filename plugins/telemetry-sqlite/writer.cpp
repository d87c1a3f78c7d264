#include "telemetry-sqlite/writer.hpp"

#include <bulkhead/abi/ext/telemetry.h>
#include <bulkhead/abi/host.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "telemetry-sqlite/mask.hpp"

namespace telemetry_sqlite {
namespace {

std::chrono::milliseconds ms(std::uint64_t n) {
  return std::chrono::milliseconds(n);
}

void mask_row(Row *row, std::atomic<std::uint64_t> *masked) {
  // The host truncates these strings to at most 1,024 bytes, at a character boundary.
  constexpr std::size_t short_text = 1'024 - 3;
  std::uint64_t count = 0;
  if ((row->flags & BH_RECORD_REQUEST_CUT) != 0) mask_cut_end(&row->request, &count);
  if ((row->flags & BH_RECORD_RESPONSE_CUT) != 0) mask_cut_end(&row->response, &count);
  for (std::string *text : {&row->error, &row->reason, &row->name, &row->rule}) {
    if (text->size() >= short_text) mask_cut_end(text, &count);
  }
  for (std::string *json : {&row->request, &row->response, &row->detail}) mask_json(json, &count);
  for (std::string *text : {&row->error, &row->reason, &row->name}) {
    // An error message from a server may be JSON or contain JSON.
    text->starts_with('{') ? mask_json(text, &count) : mask_text(text, &count);
  }
  if (count != 0) *masked += count;
}

}  // namespace

Writer::Writer(const Config &config, std::string instance, Store::Log log, Store::Sign sign,
               Committed committed, MaskOwn mask_own)
    : config_(config),
      instance_(std::move(instance)),
      log_(std::move(log)),
      sign_(std::move(sign)),
      committed_(std::move(committed)),
      mask_own_(std::move(mask_own)) {}

Writer::~Writer() {
  stop();
}

std::string Writer::start(const std::string &folder) {
  if (std::string problem = lock_.take(folder); !problem.empty()) return problem;
  const std::string spill = folder + "/chain-" + std::to_string(lock_.chain()) + ".spill";
  if (std::string problem = spill_.open(spill, config_.spill_bytes); !problem.empty()) {
    return "spill_bytes cannot be reserved: " + problem;
  }
  lost_unmarked_ = spill_.lost();
  store_ = std::make_unique<Store>(folder, lock_.chain(), instance_, config_, log_);
  if (std::string problem = begin_record(); !problem.empty()) {
    if (!store_->may_pass()) return problem;
    failed(std::move(problem));
  }
  signed_at_ = sign_not_before_ = Clock::now();
  // Blocks all signals in the new thread, because other threads of the host handle signals.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

// Opens the files and writes the `start` mark. Called again until both have succeeded. Returns the
// error, or an empty string on success.
std::string Writer::begin_record() {
  if (begun_) return {};
  if (!store_->is_open()) {
    if (std::string problem = store_->open(); !problem.empty()) {
      return "the session database cannot be opened (" + store_->path() + "): " + problem;
    }
  }
  begun_ = write_begin();
  if (!begun_ && store_->is_damaged()) {  // begin() will replace the damaged file
    store_->rollback();
    begun_ = write_begin();
  }
  if (!begun_) {
    return "the session database cannot be written (" + store_->path() + "): " + store_->error();
  }
  // If the previous process did not write all records that it had accepted, the missing numbers are
  // recorded as a gap.
  if (store_->was_unclean() && store_->last_number() != 0) {
    next_number_ = std::max(next_number_, store_->last_number() + 1);
  }
  return {};
}

bool Writer::write_begin() {
  return store_->begin() &&
         (!store_->was_unclean() ||
          store_->mark("unclean",
                       "the previous process did not exit cleanly; records that it had not written "
                       "are missing")) &&
         store_->mark("start", "process " + std::to_string(::getpid())) && store_->commit();
}

void Writer::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool Writer::put(Row &&row) {
  const std::size_t bytes = row.bytes();
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (held_rows_ >= max_rows || held_bytes_ + bytes > max_bytes) return false;
    queue_.push_back(std::move(row));  // if this throws, the row is not counted
    held_bytes_ += bytes;
    ++held_rows_;
    wake = queue_.size() == 1 || queue_.size() == batch_rows ||
           (held_bytes_ > max_bytes / 2 && held_bytes_ - bytes <= max_bytes / 2);
  }
  if (wake) wake_.notify_one();
  return true;
}

// ---- the thread ------------------------------------------------------------------------------

void Writer::run() {
  write_batch();  // writes the records that the previous process has spilled
  std::unique_lock lock(mutex_);
  while (true) {
    const auto ready = [&] { return stopping_ || !queue_.empty(); };
    if (batch_.empty()) {
      wake_.wait_for(lock, ms(failing_ ? retry_ms : idle_checkpoint_ms / 4), ready);
      // Waits up to flush_ms for more rows, so that they can be written in the same transaction. In
      // mode "full", calls wait until their records are written, so there is no delay.
      if (!queue_.empty() && !config_.full) {
        wake_.wait_for(lock, ms(config_.flush_ms), [&] { return stopping_ || is_much(); });
      }
      dequeue_batch(lock);
    } else {
      wake_.wait_until(lock, retry_at_, [&] { return stopping_; });
    }
    const bool ending = stopping_;
    lock.unlock();
    const bool written = write_batch();
    maintain(ending);
    lock.lock();
    if (ending && (!written || (queue_.empty() && batch_.empty()))) break;
  }
  // The remaining rows could not be written, so they are moved to the spill file.
  while (!queue_.empty() || !batch_.empty()) {
    if (batch_.empty()) dequeue_batch(lock);
    lock.unlock();
    spill_batch();
    lock.lock();
  }
  lock.unlock();
  end();
}

// Returns true if so many rows are queued that they should be written without delay. mutex_ must be
// held.
bool Writer::is_much() const noexcept {
  return queue_.size() >= batch_rows || held_bytes_ > max_bytes / 2;
}

void Writer::dequeue_batch(std::unique_lock<std::mutex> &) {
  while (!queue_.empty() && batch_.size() < batch_rows) {
    batch_bytes_ += queue_.front().bytes();
    batch_.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
}

void Writer::mask(Row *row) {
  if (std::exchange(row->masked, true)) return;
  if (mask_own_) {
    row->each_text([this](std::string &text) {
      const std::uint64_t n = text.empty() ? 0 : mask_own_(&text);
      if (n != 0) counters_.masked += n;
    });
  }
  mask_row(row, &counters_.masked);
}

// Writes the batch. Returns true on success. Otherwise, the batch has been spilled or must be
// retried.
bool Writer::write_batch() {
  if (failing_ && Clock::now() < retry_at_ && !config_.block) {
    spill_batch();
    return false;
  }
  if (batch_.empty() && !failing_ && spill_.empty() && lost_unmarked_ == 0) return true;
  if (std::string problem = begin_record(); !problem.empty()) {
    failed(std::move(problem));
    if (!config_.block) spill_batch();
    return false;
  }
  if (!replay()) {
    if (!config_.block) spill_batch();
    return false;
  }
  if (!batch_.empty() || lost_unmarked_ != 0) {
    if (!write_rows(&batch_, false)) {
      failed();
      if (!config_.block) spill_batch();
      return false;
    }
    if (!batch_.empty()) committed_(batch_.back().number + 1);
  }
  if (std::exchange(failing_, false)) {
    log_(BH_LOG_WARN, "the session database is writable again");
  }
  drop_batch();
  return true;
}

// Writes the rows in one transaction. If a damaged page causes a failure, repeats the transaction
// in the next file.
bool Writer::write_rows(std::vector<Row> *rows, bool replayed) {
  if (try_rows(rows, replayed)) return true;
  if (!store_->is_damaged()) return false;
  store_->rollback();
  return try_rows(rows, replayed);
}

bool Writer::try_rows(std::vector<Row> *rows, bool replayed) {
  const std::uint64_t next = next_number_, lost = lost_unmarked_;
  std::uint64_t written = 0, known_rows = 0;
  bool done = store_->begin() && write_marks();
  for (Row &row : *rows) {
    bool known = false;
    if (!done) break;
    mask(&row);  // masked here because the row is in the CPU cache
    done = note_gap(row, replayed) && store_->put(row, &known);
    ++(known ? known_rows : written);
  }
  done = done && store_->commit();
  if (done) {
    counters_.written += written;
    counters_.known += known_rows;
    if (lost != 0) spill_.set_lost(lost_unmarked_);
    return true;
  }
  next_number_ = next;
  lost_unmarked_ = lost;
  return false;
}

// If record numbers are missing, records this as a gap. The numbers are consecutive as long as the
// same gateway process runs and drops no records.
bool Writer::note_gap(const Row &row, bool replayed) {
  // A new gateway process starts its numbers at the current time in microseconds. A difference of
  // one second therefore indicates another process.
  constexpr std::uint64_t another_process = 1'000'000;
  const std::uint64_t expected = std::exchange(next_number_, row.number + 1);
  if (expected == 0 || row.number <= expected) {
    const bool back = row.number != 0 && row.number + another_process < expected;
    if (back && !replayed && !store_->is_remembered(row)) {
      return store_->mark(
          "gap",
          "the gateway was restarted and its clock was set back: record numbers continue at " +
              std::to_string(row.number) + " instead of " + std::to_string(expected) +
              "; the number of missing records is unknown");
    }
    next_number_ = std::max(next_number_, expected);
    return true;
  }
  if (row.number - expected >= another_process) {
    return store_->mark(
        "gap", "the gateway was restarted, or dropped records: record numbers continue at " +
                   std::to_string(row.number) + " instead of " + std::to_string(expected) +
                   "; the number of missing records is unknown because each start takes "
                   "its first number from the clock");
  }
  return store_->mark("gap", "records " + std::to_string(expected) + " to " +
                                 std::to_string(row.number - 1) +
                                 " are missing: the gateway dropped them or was restarted");
}

bool Writer::write_marks() {
  if (lost_unmarked_ == 0) return true;
  const std::uint64_t lost = std::exchange(lost_unmarked_, 0);
  return store_->mark(
      "lost", std::to_string(lost) + " records could not be written, and the spill file was full");
}

// Writes the spilled rows, which precede all other rows. Returns false if the database cannot be
// written.
bool Writer::replay() {
  while (!spill_.empty()) {
    std::vector<Row> rows = spill_.peek(batch_rows);
    if (!write_rows(&rows, true)) {
      failed();
      return false;
    }
    // The host may not know that these records were accepted, so it may send them again.
    store_->remember(rows);
    spill_.taken();
  }
  return true;
}

void Writer::failed(std::string why) {
  if (why.empty()) why = "the session database cannot be written: " + store_->error();
  store_->rollback();
  ++counters_.write_errors;
  retry_at_ = Clock::now() + ms(retry_ms);
  if (std::exchange(failing_, true)) return;
  log_(BH_LOG_ERROR, why + (config_.block ? "; calls are rejected when the record queue is full"
                                          : "; records go to the spill file"));
}

// Moves the batch to the spill file. Rows that do not fit are lost and counted.
void Writer::spill_batch() {
  std::uint64_t lost = 0;
  for (Row &row : batch_) {
    mask(&row);
    if (spill_.put(row)) {
      ++counters_.spilled;
    } else {
      ++lost;
      // These rows are recorded with a `lost` mark, so their numbers must not be recorded as a gap
      // as well.
      next_number_ = std::max(next_number_, row.number + 1);
    }
  }
  if (lost > 0 && counters_.lost == 0) {
    log_(BH_LOG_ERROR, "the spill file is full: records are lost");
  }
  counters_.lost += lost;
  lost_unmarked_ += lost;
  // The number is stored in the spill file because it may be the next process that writes the mark.
  if (lost > 0) spill_.set_lost(lost_unmarked_);
  drop_batch();
}

void Writer::drop_batch() {
  const std::lock_guard lock(mutex_);
  held_rows_ -= batch_.size();
  held_bytes_ -= batch_bytes_;
  batch_.clear();
  batch_bytes_ = 0;
}

// Signs checkpoints, starts new files and removes old ones.
void Writer::maintain(bool ending) {
  // The store is not open if rotate() could neither create the next file nor reopen the current
  // file.
  if (failing_ || ending || !store_->is_open()) return;
  const auto now = Clock::now();
  const bool due = store_->unsigned_rows() >= config_.checkpoint_rows ||
                   (store_->unsigned_rows() > 0 && now - signed_at_ >= ms(idle_checkpoint_ms));
  const bool full = store_->is_full();
  if ((due || full) && now >= sign_not_before_) {
    if (store_->checkpoint(sign_)) {
      ++counters_.checkpoints;
      signed_at_ = now;
      sign_failed_ = false;
    } else {
      sign_not_before_ = Clock::now() + ms(sign_again_ms);
      if (!std::exchange(sign_failed_, true)) {
        log_(BH_LOG_WARN, "a checkpoint could not be signed; signing will be retried");
      }
    }
  }
  if (!full || now < rotate_not_before_) return;
  const std::string before = store_->path();
  if (const std::string problem = store_->rotate(); !problem.empty()) {
    rotate_not_before_ = now + ms(rotate_again_ms);
    log_(BH_LOG_ERROR, "cannot create the next file of the session database: " + problem);
    return;
  }
  if (!store_->begin() ||
      !store_->mark("carried", "from " + before.substr(before.rfind('/') + 1)) ||
      !store_->commit()) {
    return failed();
  }
  store_->drop_old();
}

void Writer::end() {
  spill_.flush();
  if (store_ == nullptr || !begun_ || !store_->is_open()) return;
  const std::uint64_t lost = lost_unmarked_;
  if (store_->begin() && write_marks() && store_->mark("end", "") && store_->commit()) {
    if (lost != 0) spill_.set_lost(0);
    if (store_->checkpoint(sign_)) ++counters_.checkpoints;
  } else {
    store_->rollback();
  }
  store_->close();
}

}  // namespace telemetry_sqlite
