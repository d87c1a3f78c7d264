// Implements Call, which holds the workspaces, cancellation, progress and records of a tool call.
#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/json_writer.hpp>

#include <algorithm>

#include "builtin-files/tools.hpp"

namespace builtin_files {
namespace {

const Workspace &named(const Call &call, const std::vector<std::string_view> &names) {
  const std::string name = call.arguments.choice("workspace", names);
  return *std::find_if(call.workspaces.begin(), call.workspaces.end(),
                       [&](const Workspace &w) { return w.name() == name; });
}

}  // namespace

const Workspace &Call::workspace() const {
  std::vector<std::string_view> names;
  for (const Workspace &w : workspaces) names.emplace_back(w.name());
  return named(*this, names);
}

const Workspace &Call::workspace_to_change() const {
  std::vector<std::string_view> names;
  for (const Workspace &w : workspaces) {
    if (w.writable()) names.emplace_back(w.name());
  }
  return named(*this, names);
}

bool Call::must_stop() const noexcept {
  if (cancelled.load(std::memory_order_relaxed)) return true;
  return deadline_ns != 0 && bh::monotonic_ns() >= deadline_ns;
}

std::string_view Call::stop_reason() const noexcept {
  return cancelled.load(std::memory_order_relaxed) ? "the call was cancelled"
                                                   : "the call timed out";
}

void Call::report(double done, double total, std::string_view unit) const {
  if (progress == nullptr) return;
  progress->last = progress->base + done;
  const std::uint64_t now = bh::monotonic_ns();
  if (now < progress->next_ns) return;
  progress->next_ns = now + progress->between_ns;
  progress->send(progress->last, total == 0 ? 0 : progress->base + total, unit);
}

void Call::next_phase() const noexcept {
  if (progress != nullptr) progress->base = progress->last;
}

void Call::note(std::string_view action, std::string_view path, std::uint64_t size) const {
  if (events == nullptr) return;
  events->push_back("{\"action\":" + bh::json::quoted(action) +
                    ",\"path\":" + bh::json::quoted(path.substr(0, 2000)) +
                    ",\"size\":" + std::to_string(size) + "}");
}

std::string budget_problem(const Workspace &workspace) {
  return "the write limit of the workspace \"" + workspace.name() +
         "\" is reached (write_bytes in the profile); nothing was changed";
}

}  // namespace builtin_files
