#include "relay/options.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/scan.hpp"
#include "relay/write_out.hpp"

namespace bulkhead::relay {
namespace {

constexpr int exit_ok = 0, exit_usage = 2;
constexpr std::uint32_t standard_port = 5002;

constexpr OptionText texts[] = {
    {"--cid", "N", "AF_VSOCK context id; default 2 (the host)"},
    {"--port", "N", "AF_VSOCK port; default 5002"},
    {"--unix", "PATH", "Use a Unix socket instead of AF_VSOCK"},
    {"--hybrid", "PATH", "Use a hypervisor's Unix socket (CONNECT protocol) instead of AF_VSOCK"},
    {"--meta-prefix", "TEXT", "Prefix of the metadata line; default CAPSEM_META"},
    {"--name", "TEXT", "Process name for policies and records; default: the parent's name"}};

std::string help(std::string_view program) {
  std::string out;
  out.append("Usage: ").append(program).append(" [OPTIONS]\n");
  out.append("       ").append(program).append(" doctor [OPTIONS]\n\n");
  out +=
      "Connects an MCP client in a virtual machine (stdio) to the gateway on its host. doctor\n"
      "checks the connection and explains failures.\n\nOptions:\n";
  const auto line = [&out](std::string left, std::string_view text) {
    left.resize(left.size() < 24 ? 24 : left.size() + 1, ' ');
    out.append("  ").append(left).append(text).append("\n");
  };
  for (const OptionText &option : texts) {
    line(std::string(option.name) + " " + option.type, option.help);
  }
  line("-h, --help", "Print this help");
  line("-V, --version", "Print the version");
  out.append("\nExample, in a client's configuration:\n  { \"mcpServers\": { \"host\": { ");
  const std::size_t space = program.find(' ');  // "bulkhead relay" is a program and a subcommand
  out.append("\"command\": \"").append(program.substr(0, space)).append("\"");
  if (space != program.npos)
    out.append(", \"args\": [\"").append(program.substr(space + 1)).append("\"]");
  out.append(" } } }\n\n");
  out +=
      "Exit codes: 0 success, 1 failure (no endpoint within 30 s, or a failed doctor check), 2 "
      "usage error.\n";
  return out;
}

std::string read_command_line() {
  std::string out(4096, '\0');
  const int fd = ::open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = ::read(fd, out.data(), out.size());
  ::close(fd);
  out.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return out;
}

bool to_number(std::string_view text, std::uint32_t *out) noexcept {
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return problem == std::errc() && stop == text.data() + text.size() && !text.empty();
}

// Sets an option. Returns an error message, or an empty string on success.
std::string set(Options *options, std::string_view name, std::string_view value) {
  const bool place = name == "--unix" || name == "--hybrid";
  if (place && value.empty()) return std::string(name) + " requires a path";
  const auto number = [&](std::uint32_t *to) -> std::string {
    if (to_number(value, to)) return {};
    return std::string(name) + " must be a number from 0 to 4294967295";
  };
  if (name == "--cid") return number(&options->cid);
  if (name == "--port") return number(&options->port);
  if (name == "--unix") options->unix_path = value;
  if (name == "--hybrid") options->hybrid_path = value;
  if (name == "--meta-prefix") options->meta_prefix = value;
  if (name == "--name") options->name = value;
  return {};
}

bool takes_value(std::string_view name) noexcept {
  for (const OptionText &option : texts) {
    if (name == option.name) return true;
  }
  return false;
}

int wrong_usage(std::string_view program, const std::string &text) {
  write_error(std::string(program) + ": " + text + "; " + std::string(program) +
              " --help lists the options\n");
  return exit_usage;
}

}  // namespace

std::span<const OptionText> option_texts() noexcept {
  return texts;
}

std::uint32_t port_offset(std::string_view command_line) noexcept {
  constexpr std::string_view key = "capsem.vsock_port_offset=";
  while (!command_line.empty()) {
    const std::size_t end = std::min(command_line.find_first_of(" \n"), command_line.size());
    const std::string_view word = command_line.substr(0, end);
    command_line.remove_prefix(std::min(end + 1, command_line.size()));
    std::uint32_t offset = 0;
    if (word.starts_with(key) && to_number(word.substr(key.size()), &offset)) return offset;
  }
  return 0;
}

std::variant<Options, int> parse_options(std::string_view program, int argc,
                                         const char *const *argv) {
  Options out;
  bool port_given = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view name = argv[i];
    if (name == "-h" || name == "--help") return write_output(help(program)) ? exit_ok : 1;
    if (name == "-V" || name == "--version") {
      return write_output("bulkhead-relay " BULKHEAD_VERSION "\n") ? exit_ok : 1;
    }
    if (name == "doctor" && i == 1) {
      out.doctor = true;
      continue;
    }
    const std::size_t equals = name.find('=');
    const bool joined = name.starts_with("--") && equals != name.npos;
    const std::string_view value = joined ? name.substr(equals + 1) : std::string_view();
    if (joined) name = name.substr(0, equals);
    if (!takes_value(name)) {
      return wrong_usage(program, "unknown option \"" + std::string(name) + "\"");
    }
    if (!joined && i + 1 >= argc)
      return wrong_usage(program, std::string(name) + " requires a value");
    const std::string error = set(&out, name, joined ? value : std::string_view(argv[++i]));
    if (!error.empty()) return wrong_usage(program, error);
    port_given = port_given || name == "--port";
  }
  if (!out.unix_path.empty() && !out.hybrid_path.empty()) {
    return wrong_usage(program, "--unix and --hybrid are mutually exclusive");
  }
  // If several host processes run on one machine, each uses a different port offset and passes it
  // to its guests on the kernel command line.
  if (!port_given) out.port = standard_port + port_offset(read_command_line());
  return out;
}

std::string definition_of(const Options &options, std::string_view process_name) {
  std::string out =
      "{\"cid\":" + std::to_string(options.cid) + ",\"port\":" + std::to_string(options.port);
  const auto add = [&out](const char *name, std::string_view value) {
    if (!value.empty()) bh::json::append_member(&out, name, value);
  };
  add("unix", options.unix_path);
  add("hybrid", options.hybrid_path);
  add("meta_prefix", options.meta_prefix);
  add("process_name", options.name.empty() ? process_name : std::string_view(options.name));
  out += "}";
  return out;
}

}  // namespace bulkhead::relay
