#include "shared/running_gateway.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "common/complain.hpp"
#include "common/paths.hpp"
#include "service/control_client.hpp"
#include "service/join_json.hpp"
#include "shared/profile_marks.hpp"
#include "sources/profile_source.hpp"
#include "supervisor/plan.hpp"

namespace bulkhead::program {
namespace {

constexpr int http_ok = 200, http_not_found = 404, http_not_allowed = 405, http_unavailable = 503;
constexpr std::uint64_t start_poll_ms = 50;

// Returns the process ID in the name of a socket: "4711-123456.sock" -> "4711".
std::string pid_of(const std::string &socket) {
  const std::string name = socket.substr(socket.rfind('/') + 1);
  return name.substr(0, name.find('-'));
}

// Returns what this process knows about the parts that differ.
std::string own_view(const Profile &profile, const Refusal &refusal) {
  std::string out;
  const auto &parts = refusal.parts;
  std::size_t programs = 0;
  for (const ServerDef &def : profile.servers) {
    if (std::find(parts.begin(), parts.end(), program_part(def.name)) == parts.end()) continue;
    if (programs++ == max_named_parts) break;
    const std::string program = selected_program(def);
    out += "; here, PATH selects " + (program.empty() ? "no program" : program) + " for server " +
           def.name;
  }
  if (any_in_files(parts) && newest_change_ms(profile) > refusal.loaded_ms) {
    out += "; `bulkhead reload` applies changed files";
  }
  return out;
}

bool is_starting(const FoundGateway &gateway) {
  return gateway.status == http_unavailable &&
         bh::json::member_text(gateway.answer, "error") == gateway_is_starting;
}

// Prints the servers of the project file that the running gateway does not use either.
void report_unapproved(const Profile &profile) {
  const std::vector<std::string> names = unapproved_servers(profile);
  if (names.empty()) return;
  std::string text = names.size() == 1 ? "a server" : "servers";
  text += " of the project file " + std::string(names.size() == 1 ? "is" : "are") +
          " not approved and not used: " + describe_parts(names) + "; see `bulkhead approve`";
  complain(text);
}

std::string reason_of(const FoundGateway &gateway, const Profile &profile) {
  const std::string who = "the gateway with pid " + pid_of(gateway.socket);
  if (!gateway.error.empty()) return who + ": " + gateway.error;
  if (gateway.status == http_not_found || gateway.status == http_not_allowed) {
    return who + " has a different version";
  }
  const Refusal refusal = read_join_refusal(gateway.answer);
  return who + ": " + refusal.message + own_view(profile, refusal);
}

}  // namespace

std::string RunningGateway::definition(std::string_view process_name,
                                       std::uint64_t max_message_bytes) const {
  std::string out = "{";
  bh::json::append_member(&out, "unix", path);
  bh::json::append_member(&out, "meta_prefix", token);
  bh::json::append_member(&out, "process_name", process_name);
  bh::json::append_member(&out, "max_message_bytes", max_message_bytes);
  return out + "}";
}

GatewaySearch find_running_gateway(const Profile &profile) {
  GatewaySearch out;
  JoinRequest request;
  request.key = random_key().substr(0, mark_key_bytes / 2);
  std::string hex = bh::hex(request.key);
  request.key = std::move(hex);
  std::error_code gone;
  request.marks = marks_of(profile, std::filesystem::current_path(gone).string(), request.key);
  const auto answers =
      ask_gateways(control_dirs(), "POST", "/join", status_wait_ms, join_request_json(request));
  for (const FoundGateway &gateway : answers) {
    const auto joined = gateway.status == http_ok ? read_join_answer(gateway.answer) : std::nullopt;
    // A response that names a different path is not trusted.
    if (joined && joined->path == local_socket_path(gateway.socket)) {
      out.found = {pid_of(gateway.socket), gateway.socket, joined->path, joined->token};
      return out;
    }
    out.starting = out.starting || is_starting(gateway);
    if (out.reason.empty()) out.reason = reason_of(gateway, profile);
  }
  return out;
}

std::optional<RunningGateway> gateway_to_use(const Arguments &arguments, const Profile &profile) {
  if (arguments.own) return std::nullopt;
  const std::uint64_t until_ms = bh::monotonic_ms() + max_start_wait_ms;
  GatewaySearch search = find_running_gateway(profile);
  while (!search.found && search.starting && bh::monotonic_ms() < until_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(start_poll_ms));
    search = find_running_gateway(profile);
  }
  if (!search.found && !search.reason.empty()) {
    complain("no running gateway can be used, so this command starts the servers itself: " +
             search.reason);
  }
  if (search.found) report_unapproved(profile);
  return std::move(search.found);
}

}  // namespace bulkhead::program
