// Tests the plugin through the ABI. The argument is the plugin's file.
#include <bulkhead/abi/ext/draft/mask.h>
#include <bulkhead/abi/ext/telemetry.h>
#include <bulkhead/cpp/json.hpp>
#include <bulkhead/testing/test_plugin.hpp>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using bh::testing::FakeHost;
using bh::testing::TestPlugin;

// Masks every text that contains "secret".
const bh_host_mask host_mask{sizeof(bh_host_mask), 0,
                             [](void *, bh_str text, bh_buf *out) -> std::uint64_t {
                               if (bh::view(text).find("secret") == std::string_view::npos)
                                 return 0;
                               *out = bh::buf("***");
                               return 1;
                             }};

bh_record record(std::uint64_t number, std::string_view error) {
  bh_record out{};
  out.size = sizeof out;
  out.number = number;
  out.outcome = error.empty() ? BH_OUTCOME_OK : BH_OUTCOME_ERROR;
  out.method = bh::str("tools/call");
  out.server = bh::str("files");
  out.name = bh::str("file_read");
  out.error = bh::str(error);
  return out;
}

// Sends the same record n times, in one batch.
void send(TestPlugin &plugin, const bh_record &record, std::uint32_t n) {
  const std::vector<const bh_record *> records(n, &record);
  const auto *telemetry = plugin.ext<bh_telemetry>(BH_EXT_TELEMETRY);
  BH_CHECK(telemetry->batch(plugin.self(), records.data(), n) == n);
}

std::string folder_of(FakeHost &host) {
  const auto *store =
      static_cast<const bh_host_store *>(host.host()->get_ext(host.host()->ctx, BH_EXT_HOST_STORE));
  return std::string(bh::view(store->folder(host.host()->ctx)));
}

std::vector<std::string> lines_of(const std::string &path) {
  std::ifstream file(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

}  // namespace

int main(int, char **argv) {
  FakeHost host;
  host.add_ext(BH_EXT_HOST_MASK, &host_mask);
  const std::string path = folder_of(host) + "/records.ndjson";
  {
    TestPlugin plugin(host, argv[1]);
    BH_CHECK(plugin.configure("{}") == BH_OK);
    BH_CHECK(plugin.start() == BH_OK);
    send(plugin, record(1, ""), 1);
    send(plugin, record(2, "line 1\n\"secret\""), 1);
    bh_record other = record(3, "");
    other.kind = 99;  // a kind that a later gateway may add
    send(plugin, other, 1);
    plugin.stop();  // writes all lines
    const std::vector<std::string> lines = lines_of(path);
    BH_CHECK(lines.size() == 2);
    BH_CHECK(bh::json::valid(lines[0]) && bh::json::valid(lines[1]));
    BH_CHECK(bh::json::member(lines[0], "number") == "1");
    BH_CHECK(bh::json::member_text(lines[0], "name") == "file_read");
    BH_CHECK(bh::json::member_text(lines[0], "outcome") == "ok");
    BH_CHECK(bh::json::member_text(lines[1], "error") == "***");
  }
  {
    // The second start appends to the file. Beyond max_bytes, a new file is begun.
    TestPlugin plugin(host, argv[1]);
    BH_CHECK(plugin.configure(R"({"max_bytes":4096})") == BH_OK);
    BH_CHECK(plugin.start() == BH_OK);
    send(plugin, record(4, std::string(5'000, 'x')), 1);
    BH_CHECK(host.run_until([&] { return lines_of(path).size() == 3; }, 5'000));
    send(plugin, record(5, ""), 1);
    plugin.stop();
    BH_CHECK(lines_of(folder_of(host) + "/records.old.ndjson").size() == 3);
    BH_CHECK(lines_of(path).size() == 1);
  }
  {
    // If more arrives than the queue holds, every record is either written or counted.
    TestPlugin plugin(host, argv[1]);
    BH_CHECK(plugin.configure("{}") == BH_OK);
    BH_CHECK(plugin.start() == BH_OK);
    send(plugin, record(6, std::string(200'000, 'x')), 100);
    plugin.stop();
    BH_CHECK(lines_of(path).size() - 1 + host.metric("dropped") == 100);
  }
  return 0;
}
