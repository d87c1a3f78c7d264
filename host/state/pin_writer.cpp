#include "state/pin_writer.hpp"

#include <utility>

namespace bulkhead::program {

PinWriter::PinWriter(Reactor &reactor, const std::string &state_dir, Hooks hooks)
    : reactor_(reactor), store_(state_dir), hooks_(std::move(hooks)) {}

PinWriter::~PinWriter() {
  // The reactor has been destroyed, so no pool thread is writing and errors cannot be reported.
  if (job_ != nullptr && !job_->worked) static_cast<void>(store_.merge(job_->news, job_->terms));
  if (!waiting_.empty()) static_cast<void>(store_.merge(waiting_, terms_));
}

void PinWriter::add(std::vector<PinNews> news) {
  if (waiting_.size() + news.size() > most_waiting) {
    return hooks_.warn("too many tool definitions changed at once: some are not pinned");
  }
  std::size_t bytes = 0;
  for (const PinNews &one : waiting_) bytes += one.definition.size();
  for (PinNews &one : news) {
    bytes += one.definition.size();
    if (bytes > most_waiting_bytes) one.definition.clear();
    waiting_.push_back(std::move(one));
  }
  if (job_ == nullptr) write();
}

void PinWriter::when_written(std::function<void()> done) {
  if (job_ == nullptr && !waiting_.empty()) write();  // the pool was full
  if (job_ == nullptr) return done();
  awaited_.push_back(std::move(done));
}

void PinWriter::write() {
  job_ = std::make_unique<Job>();
  job_->writer = this;
  job_->news = std::exchange(waiting_, {});
  job_->terms = terms_;
  const bh_status started =
      reactor_.run_blocking(this, bh::blocking_work(
                                      job_.get(),
                                      [](Job &job) {
                                        job.outcome = job.writer->store_.merge(job.news, job.terms);
                                        job.worked = true;
                                      },
                                      [](Job &job) { job.writer->written(); }));
  if (started == BH_OK) return;
  // The pool is full. The next call to add() or when_written() retries the write.
  waiting_ = std::move(job_->news);
  job_.reset();
}

void PinWriter::written() {
  const auto job = std::move(job_);
  if (!job->outcome) {
    hooks_.warn("cannot store pins: " + job->outcome.error().text);
  } else if (hooks_.on_stored) {
    hooks_.on_stored(*job->outcome);
  }
  if (!waiting_.empty()) write();
  if (job_ != nullptr) return;
  for (const auto &done : std::exchange(awaited_, {})) done();
}

}  // namespace bulkhead::program
