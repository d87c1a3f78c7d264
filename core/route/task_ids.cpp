#include "route/task_ids.hpp"

#include <sodium.h>

#include <cstring>

#include "mcp/scan.hpp"
#include "route/request_states.hpp"

namespace bulkhead {
namespace {

// Ends the names, which cannot contain a NUL (fits()). The server's id is the last part.
constexpr char task_part_end = '\0';
constexpr std::size_t time_bytes = sizeof(std::uint64_t);
constexpr std::size_t head_bytes = 3 * time_bytes;  // the time, the connection, the process
constexpr std::size_t max_plain = head_bytes + 2 * (TaskIds::max_name + 1) + TaskIds::max_id;

TextSealer task_sealer(std::string_view key) {
  const TextSealer given{std::string(key)};
  return given.usable() ? given.for_purpose("task-ids") : TextSealer::with_random_key();
}

std::uint64_t random_run() {
  std::uint64_t run = 0;
  randombytes_buf(&run, sizeof run);
  return run;
}

bool fits(std::string_view name) {
  return name.size() <= TaskIds::max_name && name.find(task_part_end) == std::string_view::npos;
}

// Removes the text up to the next NUL from *rest and returns it.
std::optional<std::string> take_part(std::string_view *rest) {
  const std::size_t end = rest->find(task_part_end);
  if (end == std::string_view::npos) return std::nullopt;
  std::string part(rest->substr(0, end));
  rest->remove_prefix(end + 1);
  return part;
}

}  // namespace

TaskIds::TaskIds(std::string_view key) : sealer_(task_sealer(key)), run_(random_run()) {}

std::optional<std::string> TaskIds::seal(const TaskId &task, const Session &session,
                                         std::uint64_t expires_ns) const {
  const bool valid = fits(task.server) && fits(task.tool) && task.id.size() <= max_id;
  if (!valid || !task.id.starts_with('"')) return std::nullopt;
  const std::uint64_t head[] = {expires_ns, task.connection, task.connection != 0 ? run_ : 0};
  static_assert(sizeof head == head_bytes);
  std::string plain(head_bytes, '\0');
  std::memcpy(plain.data(), head, head_bytes);
  plain.append(task.server).append(1, task_part_end);
  plain.append(task.tool).append(1, task_part_end);
  plain.append(task.id);
  return '"' + sealer_.seal(plain, RequestStates::principal_of(session)) + '"';
}

std::optional<TaskId> TaskIds::open(std::string_view token, const Session &session,
                                    std::uint64_t now_ns) const {
  std::string scratch;
  if (!token.starts_with('"')) return std::nullopt;
  const auto plain =
      sealer_.open(mcp::unquote(token, &scratch), RequestStates::principal_of(session), max_plain);
  if (!plain || plain->size() < head_bytes) return std::nullopt;
  std::uint64_t head[3] = {};
  std::memcpy(head, plain->data(), head_bytes);
  const auto [expires_ns, connection, run] = head;
  if (now_ns >= expires_ns || (connection != 0 && run != run_)) return std::nullopt;
  std::string_view rest(*plain);
  rest.remove_prefix(head_bytes);
  auto server = take_part(&rest), tool = take_part(&rest);
  if (!server || !tool) return std::nullopt;
  return TaskId{*std::move(server), *std::move(tool), std::string(rest), connection};
}

}  // namespace bulkhead
