// Provides the tables that get_ext() returns to this host's plugins. Their `ctx` is the plugin's
// Instance.
#pragma once

#include <string_view>

#include "bulkhead/abi/ext/draft/control.h"
#include "bulkhead/abi/ext/draft/resume.h"
#include "host_tables/extensions.hpp"
#include "host_tables/table_set.hpp"

namespace bulkhead {

struct Part;

class HostTables {
 public:
  explicit HostTables(const bh_limits &limits);
  // Returns the table with this ID. Returns null if the table does not exist or this plugin may not
  // use it.
  const void *find(const Part &part, std::string_view id) const noexcept;

 private:
  struct Receiver;
  // All tables other than resume and control. There are no pipe tables (flow, wire).
  host_tables::TableSet<host_tables::TransportTable<Receiver>,
                        host_tables::ConnectorTable<Receiver>, host_tables::ToolsTable<Receiver>,
                        host_tables::PolicyTable<Receiver>, host_tables::HttpTable<Receiver>,
                        host_tables::EventTable<Receiver>, host_tables::TelemetryTable<Receiver>>
      tables_;
  const bh_host_resume resume_;
  const bh_host_control control_;
};

Part &part_of(void *ctx) noexcept;
bh_host_resume resume_functions() noexcept;
bh_host_control control_functions() noexcept;

}  // namespace bulkhead
