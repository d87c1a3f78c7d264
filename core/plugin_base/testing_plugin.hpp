// A plugin that is linked into tests of plugin hosts. It records its lifecycle and the host's
// tables.
#pragma once

#define BH_STATIC_PLUGIN
#include <string>
#include <vector>

#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/cpp/tables.hpp"

namespace bulkhead::testing {

// What one instance has recorded. seen() returns the records of all instances, in order of
// creation.
struct Seen {
  const bh_host *host = nullptr;
  std::vector<std::string> steps;

  template <class T>
  const T *table(const char *id) const {
    return static_cast<const T *>(host->get_ext(host->ctx, id));
  }
};
inline std::vector<Seen> &seen() {
  static std::vector<Seen> all;
  return all;
}

// Configurations that make the plugin fail. With {}, it succeeds.
inline const std::string refuse_config = R"({"refuse":true})";  // configure() fails
inline const std::string fail_config = R"({"fail":true})";      // start() fails

class NotingPlugin {
 public:
  static constexpr bh::Info info{.id = "noting",
                                 .name = "Noting",
                                 .version = "1",
                                 .vendor = "test",
                                 .config_schema = {},
                                 .provides = {BH_EXT_TOOLS, BH_EXT_CONNECTOR, BH_EXT_HTTP_SERVICE}};
  explicit NotingPlugin(const bh_host *host) : number_(seen().size()) {
    seen().push_back({host, {"create"}});
  }
  bh_status configure(bh_str json, bh_error *error) {
    config_ = bh::view(json);
    note("configure");
    return config_ == refuse_config ? bh::fail(error, BH_E_INVALID, "refused by the test") : BH_OK;
  }
  bh_status start(bh_error *error) {
    note("start");
    return config_ == fail_config ? bh::fail(error, BH_E_IO, "failed by the test") : BH_OK;
  }
  void stop() { note("stop"); }
  const void *get_ext(const char *id) noexcept {
    if (bh::is(id, BH_EXT_TOOLS)) return bh::tools_table<NotingPlugin>();
    if (bh::is(id, BH_EXT_CONNECTOR)) return bh::connector_table<NotingPlugin>();
    return bh::is(id, BH_EXT_HTTP_SERVICE) ? bh::http_service_table<NotingPlugin>() : nullptr;
  }

  bh_status list(const bh_list_info &, bh_buf *out, bh_error *) {
    *out = bh::buf("[]");
    return BH_OK;
  }
  bh_status call_begin(bh_call, const bh_call_info &, bh_error *) { return BH_E_UNSUPPORTED; }
  void call_cancel(bh_call, const bh_cancel &) {}
  bh_status lane_open(bh_lane, const bh_lane_info &, void **, bh_error *) {
    return BH_E_UNSUPPORTED;
  }
  bh_status lane_send(void *, const bh_lane_message &, bh_error *) { return BH_E_UNSUPPORTED; }
  void lane_ready(void *, bh_str) {}
  void lane_abandon(void *, std::uint64_t) {}
  void lane_close(void *) {}
  bh_status http_start(const bh_http_request &, const bh_http_handler *, void *, bh_http_id *,
                       bh_error *) {
    return BH_E_UNSUPPORTED;
  }
  bh_status http_cancel(bh_http_id) { return BH_STALE; }

 private:
  void note(const char *step) const { seen()[number_].steps.emplace_back(step); }

  std::size_t number_;
  std::string config_;
};

}  // namespace bulkhead::testing

using bulkhead::testing::NotingPlugin;
BH_PLUGIN(NotingPlugin)
