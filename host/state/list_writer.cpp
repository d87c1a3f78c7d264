#include "state/list_writer.hpp"

#include <utility>

namespace bulkhead::program {

ListWriter::ListWriter(Reactor &reactor, const std::string &state_dir, Hooks hooks)
    : reactor_(reactor), store_(state_dir), hooks_(std::move(hooks)) {}

ListWriter::~ListWriter() {
  // The reactor has been destroyed, so no pool thread is writing and errors cannot be reported.
  if (job_ != nullptr && !job_->worked) static_cast<void>(store_.write(job_->server, job_->lists));
  for (const std::string &server : waiting_) {
    static_cast<void>(store_.write(server, known_[server]));
  }
}

void ListWriter::set_profile(const Profile &profile) {
  known_.clear();
  for (const ServerDef &def : profile.servers) {
    if (!def.kept.definition.empty()) known_[def.name] = def.kept;
  }
  std::erase_if(waiting_, [this](const std::string &server) { return !known_.contains(server); });
}

void ListWriter::add(ListNews news) {
  const auto at = known_.find(news.server);
  if (at == known_.end() || at->second.definition != news.definition) return;
  merge_kept_list(&at->second, std::move(news.list));
  if (hooks_.on_stored) hooks_.on_stored(at->first, at->second);
  waiting_.insert(at->first);
  if (job_ == nullptr) write();
}

void ListWriter::write() {
  const std::string server = *waiting_.begin();
  job_ = std::make_unique<Job>();
  job_->writer = this;
  job_->server = server;
  job_->lists = known_[server];
  const bh_status started = reactor_.run_blocking(
      this, bh::blocking_work(
                job_.get(),
                [](Job &job) {
                  job.outcome = job.writer->store_.write(job.server, job.lists);
                  job.worked = true;
                },
                [](Job &job) { job.writer->written(); }));
  if (started == BH_OK) {
    waiting_.erase(server);
  } else {
    job_.reset();  // the pool is full; the next call of add() retries
  }
}

void ListWriter::written() {
  const auto job = std::move(job_);
  if (!job->outcome) {
    hooks_.warn("cannot store the lists of server \"" + job->server +
                "\": " + job->outcome.error().text);
  }
  if (!waiting_.empty()) write();
}

}  // namespace bulkhead::program
