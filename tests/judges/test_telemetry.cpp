// A telemetry plugin that writes each record as a line of records.jsonl in its directory, without
// buffering.
//
// Three tool names control the plugin. "crash-telemetry" makes it crash once, after it has written
// the record but before it acknowledges it. "hold-telemetry" makes it reject batches for a while.
// "sign-telemetry" makes it request far more signatures than permitted, and report how many it
// received.
#include <bulkhead/abi/ext/draft/sign.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <string_view>
#include <thread>

#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

namespace {

std::string quoted(std::string_view name, bh_str value) {
  return ",\"" + std::string(name) + "\":\"" + std::string(bh::view(value)) + "\"";
}

class TestTelemetry {
 public:
  static constexpr bh::Info info{.id = "test-telemetry",
                                 .name = "Test telemetry",
                                 .version = "1.0.0",
                                 .vendor = "Tests",
                                 .config_schema = {},
                                 .provides = {BH_EXT_TELEMETRY}};

  explicit TestTelemetry(const bh_host *host) : host_(host) {}
  ~TestTelemetry() {
    if (fd_ >= 0) ::close(fd_);
  }

  bh_status configure(bh_str, bh_error *error) {
    const auto *store = host_.ext<bh_host_store>(BH_EXT_HOST_STORE);
    const std::string folder(store == nullptr ? "" : bh::view(store->folder(host_.ctx())));
    if (folder.empty()) return bh::fail(error, BH_E_UNAVAILABLE, "the host has no folder");
    mark_ = folder + "/crashed";
    fd_ = ::open((folder + "/records.jsonl").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                 0600);
    return fd_ < 0 ? bh::fail(error, BH_E_IO, "cannot open the file") : BH_OK;
  }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {
    if (signing_.joinable()) signing_.join();
  }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TELEMETRY) ? bh::telemetry_table<TestTelemetry>() : nullptr;
  }

  std::uint32_t batch(const bh_record *const *records, std::uint32_t n) {
    if (held_ > 0 && --held_ > 0) return 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const bh_record &r = *records[i];
      const std::string line = "{\"number\":" + std::to_string(r.number) +
                               ",\"outcome\":" + std::to_string(r.outcome) +
                               quoted("method", r.method) + quoted("server", r.server) +
                               quoted("name", r.name) + quoted("rule", r.rule) + "}\n";
      if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return i;
      const std::string_view name = bh::view(r.name);
      if (name == "crash-telemetry" && first_time()) ::raise(SIGKILL);
      if (name == "sign-telemetry" && !signing_.joinable()) {
        signing_ = std::thread([this] { sign_too_much(); });
      }
      if (name == "hold-telemetry") {
        held_ = 10;
        return i + 1;
      }
    }
    return n;
  }

 private:
  void sign_too_much() const {
    constexpr int times = 2'000;
    const auto *host = host_.ext<bh_host_sign>(BH_EXT_HOST_SIGN);
    int made = 0, refused = 0;
    for (int i = 0; host != nullptr && i < times; ++i) {
      bh_signature out{};
      out.size = sizeof out;
      const bh_status status =
          host->sign(host_.ctx(), bh::str("statement " + std::to_string(i)), &out, nullptr);
      if (status == BH_OK) ++made;
      if (status == BH_E_LIMIT) ++refused;
    }
    const std::string line =
        "{\"signed\":" + std::to_string(made) + ",\"refused\":" + std::to_string(refused) + "}\n";
    [[maybe_unused]] const ssize_t n = ::write(fd_, line.data(), line.size());
  }

  // Returns true only once, even if the process is restarted.
  bool first_time() const {
    const int fd = ::open(mark_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) ::close(fd);
    return fd >= 0;
  }

  bh::Host host_;
  std::string mark_;
  int fd_ = -1;
  int held_ = 0;         // number of batches to reject
  std::thread signing_;  // exits without being stopped
};

}  // namespace

BH_PLUGIN(TestTelemetry)
