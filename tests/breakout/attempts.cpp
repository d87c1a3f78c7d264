#include "attempts.hpp"

#include <cerrno>
#include <cstdlib>
#include <map>

namespace breakout {

const std::vector<Attempt> &attempts() {
  static const std::vector<Attempt> all = [] {
    std::vector<Attempt> made;
    add_file_attempts(&made);
    add_process_attempts(&made);
    add_network_attempts(&made);
    add_kernel_attempts(&made);
    add_resource_attempts(&made);
    add_ipc_attempts(&made);
    return made;
  }();
  return all;
}

int run(std::string_view name, const Target &target) {
  for (const Attempt &attempt : attempts()) {
    if (name == attempt.name) return attempt.run(target);
  }
  return ENOSYS;
}

std::string to_text(const Target &t) {
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  std::string out;
  for (const auto &[name, value] : std::map<std::string, std::string>{
           {"state_file", t.state_file},
           {"home_file", t.home_file},
           {"plugin_folder", t.plugin_folder},
           {"service_socket", t.service_socket},
           {"abstract_name", t.abstract_name},
           {"scratch", t.scratch},
           {"tcp_port", number(t.tcp_port)},
           {"udp_port", number(t.udp_port)},
           {"sibling", number(static_cast<std::uint64_t>(t.sibling))},
           {"sibling_secret", number(t.sibling_secret)},
           {"memory_bytes", number(t.memory_bytes)},
           {"disk_bytes", number(t.disk_bytes)},
           {"processes", number(t.processes)},
           {"ipc_key", number(t.ipc_key)},
           {"ipc_name", t.ipc_name}}) {
    out += name + "=" + value + ";";
  }
  return out;
}

Target from_text(std::string_view text) {
  std::map<std::string, std::string, std::less<>> values;
  while (!text.empty()) {
    const auto end = text.find(';');
    const std::string_view pair = text.substr(0, end);
    if (const auto at = pair.find('='); at != std::string_view::npos) {
      values.emplace(pair.substr(0, at), pair.substr(at + 1));
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  const auto number = [&](const char *name) {
    return std::strtoull(values[name].c_str(), nullptr, 10);
  };
  Target t;
  t.state_file = values["state_file"];
  t.home_file = values["home_file"];
  t.plugin_folder = values["plugin_folder"];
  t.service_socket = values["service_socket"];
  t.abstract_name = values["abstract_name"];
  t.scratch = values["scratch"];
  t.tcp_port = static_cast<std::uint16_t>(number("tcp_port"));
  t.udp_port = static_cast<std::uint16_t>(number("udp_port"));
  t.sibling = static_cast<pid_t>(number("sibling"));
  t.sibling_secret = number("sibling_secret");
  t.memory_bytes = number("memory_bytes");
  t.disk_bytes = number("disk_bytes");
  t.processes = static_cast<std::uint32_t>(number("processes"));
  t.ipc_key = static_cast<std::uint32_t>(number("ipc_key"));
  t.ipc_name = values["ipc_name"];
  return t;
}

}  // namespace breakout
