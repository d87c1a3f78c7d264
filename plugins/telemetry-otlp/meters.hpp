// Counts calls by method, server and outcome since the plugin was started, and formats the counters
// as OTLP metrics.
#pragma once

#include <bulkhead/abi/ext/telemetry.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace otlp {

class Meters {
 public:
  // Maximum number of combinations of method, server and outcome. Once it is reached, calls with
  // new combinations are counted with "other" as the method and server.
  static constexpr std::size_t max_series = 512;
  // Upper bounds of the duration buckets, in seconds.
  static constexpr std::array<double, 12> bounds = {0.001, 0.002, 0.005, 0.01, 0.025, 0.05,
                                                    0.1,   0.25,  0.5,   1,    5,     30};

  void add(const bh_record &record);
  void drop(std::uint64_t spans) noexcept { dropped_ += spans; }
  std::uint64_t dropped() const noexcept { return dropped_; }
  std::size_t series() const noexcept { return series_.size(); }

  // Returns the body of a metrics request, or an empty string if there are no counters.
  std::string body(std::string_view service_name, std::uint64_t start_unix_ns,
                   std::uint64_t now_unix_ns) const;

 private:
  using Key = std::tuple<std::string, std::string, std::uint32_t>;  // method, server, outcome
  struct Series {
    std::uint64_t count = 0;
    double seconds = 0;
    std::array<std::uint64_t, bounds.size() + 1> buckets{};
  };

  std::map<Key, Series> series_;
  std::uint64_t dropped_ = 0;
};

}  // namespace otlp
