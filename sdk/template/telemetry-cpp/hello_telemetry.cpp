// A telemetry plugin. It appends one line of JSON for each call to records.ndjson in the plugin's
// private folder. At max_bytes, the file is renamed to records.old.ndjson, and a new one is begun.
//
// batch() runs on the gateway's reactor thread and must not block, so a separate thread writes the
// lines. If the disk is too slow, records are dropped and counted.
#include <bulkhead/abi/ext/draft/mask.h>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/json.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/record_names.hpp>
#include <bulkhead/cpp/tables.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace {

constexpr std::string_view schema_json = R"({
  "type":"object","additionalProperties":false,
  "properties":{"max_bytes":{"type":"integer","minimum":4096}}
})";

constexpr std::size_t max_queued = 4u << 20;  // bytes that wait for the disk

class HelloTelemetryPlugin {
 public:
  static constexpr bh::Info info{.id = "hello-telemetry",
                                 .name = "hello-telemetry",
                                 .version = "1.0.0",
                                 .vendor = "Example",
                                 .config_schema = schema_json,
                                 .provides = {BH_EXT_TELEMETRY}};

  explicit HelloTelemetryPlugin(const bh_host *host) : host_(host) {}
  ~HelloTelemetryPlugin() { stop(); }  // start() may have failed halfway

  bh_status configure(bh_str json, bh_error *error) {
    const auto *store = host_.ext<bh_host_store>(BH_EXT_HOST_STORE);
    if (store == nullptr) return bh::fail(error, BH_E_UNSUPPORTED, "the host has no store");
    folder_ = bh::view(store->folder(host_.ctx()));
    if (folder_.empty()) return bh::fail(error, BH_E_IO, "the plugin's folder cannot be created");
    mask_ = host_.ext<bh_host_mask>(BH_EXT_HOST_MASK);
    metrics_ = host_.ext<bh_host_metrics>(BH_EXT_HOST_METRICS);
    if (metrics_ != nullptr) dropped_ = metrics_->counter(host_.ctx(), bh::str("dropped"));
    const std::string_view limit = bh::json::member(bh::view(json), "max_bytes");
    if (!limit.empty() && !bh::json::read_integer(limit, &max_bytes_)) {
      return bh::fail(error, BH_E_INVALID, "max_bytes: must be an integer");
    }
    return BH_OK;
  }
  bh_status start(bh_error *error) {
    if (!open_file()) {
      return bh::fail(error, BH_E_IO, "cannot open " + path() + ": " + bh::error_name(errno));
    }
    thread_ = std::thread([this] { write_lines(); });
    return BH_OK;
  }
  // Writes the queued lines, and joins the thread.
  void stop() noexcept {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TELEMETRY) ? bh::telemetry_table<HelloTelemetryPlugin>() : nullptr;
  }

  // All records count as accepted, even those that are dropped: the gateway sends the others again.
  std::uint32_t batch(const bh_record *const *records, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (records[i]->kind == BH_RECORD_CALL) add(line_of(*records[i]));
    }
    wake_.notify_one();
    count_dropped(lost_.exchange(0));
    return n;
  }

 private:
  std::string path() const { return folder_ + "/records.ndjson"; }

  bool open_file() {
    fd_ = ::open(path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat status{};
    if (fd_ < 0 || ::fstat(fd_, &status) != 0) return false;
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    return true;
  }

  // Names and errors may contain credentials of the profile, for example in a URL.
  std::string masked(bh_str text) const {
    bh_buf out{};
    if (mask_ == nullptr || mask_->mask(host_.ctx(), text, &out) == 0) {
      return std::string(bh::view(text));
    }
    return std::string(bh::Buf(out).view());
  }

  std::string line_of(const bh_record &record) const {
    std::string out;
    bh::json::Writer(&out)
        .begin_object()
        .member("number", record.number)
        .member("time_ms", record.start_unix_ns / 1'000'000)
        .member("duration_ms", static_cast<double>(record.duration_ns) / 1e6)
        .member("method", bh::view(record.method))
        .member("server", bh::view(record.server))
        .member("name", masked(record.name))
        .member("outcome", bh::outcome_name(record.outcome))
        .member("rule", bh::view(record.rule))
        .member("error", masked(record.error))
        .end_object();
    return out += '\n';
  }

  void add(const std::string &line) {
    bool full = false;
    {
      const std::lock_guard lock(mutex_);
      full = queue_.size() + line.size() > max_queued;
      if (!full) queue_ += line;
    }
    if (full) count_dropped(1);
    if (full && !std::exchange(warned_, true)) {
      host_.log(BH_LOG_WARN, "the disk is too slow: records are dropped and counted");
    }
  }

  void count_dropped(std::uint64_t n) const {
    if (n > 0 && metrics_ != nullptr) metrics_->add(host_.ctx(), dropped_, n);
  }

  // The thread's function. Of the host's functions, it may call only those tagged [any].
  void write_lines() {
    std::unique_lock lock(mutex_);
    while (!stopping_ || !queue_.empty()) {
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      const std::string lines = std::exchange(queue_, {});
      lock.unlock();
      if (!write_all(lines)) {
        lost_ += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
      }
      lock.lock();
    }
  }

  // Writes all lines or, after an error, none.
  bool write_all(std::string_view lines) {
    if (bytes_ >= max_bytes_) {
      ::rename(path().c_str(), (folder_ + "/records.old.ndjson").c_str());
      if (fd_ >= 0) ::close(fd_);
      if (!open_file()) return report_failure();
    }
    for (std::size_t done = 0; done < lines.size();) {
      const ssize_t n = ::write(fd_, lines.data() + done, lines.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        report_failure();
        if (::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) report_failure();
        return false;
      }
      done += static_cast<std::size_t>(n);
    }
    bytes_ += lines.size();
    failed_ = false;
    return true;
  }

  // Logs the first of several failures.
  bool report_failure() {
    const int why = errno;
    if (!std::exchange(failed_, true)) {
      host_.log(BH_LOG_ERROR, "cannot write " + path() + ": " + bh::error_name(why) +
                                  "; records are dropped and counted until writing succeeds");
    }
    return false;
  }

  const bh::Host host_;
  const bh_host_mask *mask_ = nullptr;
  const bh_host_metrics *metrics_ = nullptr;
  bh_metric dropped_ = 0;
  bool warned_ = false;
  std::string folder_;
  std::uint64_t max_bytes_ = 64u << 20;
  std::thread thread_;

  std::atomic<std::uint64_t> lost_ = 0;  // records that could not be written

  // Used by the thread only, after start().
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  bool failed_ = false;

  std::mutex mutex_;  // guards the following members
  std::condition_variable wake_;
  std::string queue_;
  bool stopping_ = false;
};

}  // namespace

BH_PLUGIN(HelloTelemetryPlugin)
