// builtin-files: an MCP server in the gateway, for files.
//
// The reactor thread takes calls and gives answers; the file system is touched on threads of the
// host's pool. A job is the plugin's, its thread only borrows it.
#include <bulkhead/abi/ext/draft/event.h>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>

#include "builtin-files/config.hpp"
#include "builtin-files/tools.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {

class BuiltinFiles {
 public:
  static constexpr bh::Info info{.id = "builtin-files",
                                 .name = "Files",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = config_schema,
                                 .provides = {BH_EXT_TOOLS}};

  explicit BuiltinFiles(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    tools_ = host_.ext<bh_host_tools>(BH_EXT_HOST_TOOLS);
    if (tools_ == nullptr || !host_.has_reactor()) {
      return bh::fail(error, BH_E_UNSUPPORTED, "the host takes no tools or has no reactor");
    }
    return parse_config(bh::view(json), &config_, error);
  }

  bh_status start(bh_error *error) {
    for (const WorkspaceConfig &c : config_.workspaces) {
      Workspace workspace;
      std::string problem;
      if (!Workspace::open(c.name, c.path, &workspace, &problem)) {
        return bh::fail(error, BH_E_IO, problem);
      }
      if (c.write) workspace.allow_writing(c.write_bytes);
      workspaces_.push_back(std::move(workspace));
    }
    definitions_ = definitions(workspaces_);
    return BH_OK;
  }

  void drain(std::uint64_t) noexcept { draining_ = true; }

  // Jobs end at their next look at `cancelled`; the host counts them and keeps what they use.
  void stop() noexcept {
    for (const auto &[call, job] : jobs_) job->cancelled.store(true, std::memory_order_relaxed);
  }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TOOLS) ? bh::tools_table<BuiltinFiles>() : nullptr;
  }

  bh_status list(std::uint32_t kind, bh_buf *out, bh_error *error) {
    if (kind != BH_LIST_TOOLS) return bh::fail(error, BH_E_UNSUPPORTED, "there are only tools");
    *out = bh::buf(std::string(definitions_));
    return BH_OK;
  }

  bh_status call_begin(bh_call call, const bh_call_info &request, bh_error *error) {
    const std::string_view name = bh::view(request.name);
    const auto *tool = std::find_if(std::begin(tools), std::end(tools),
                                    [&](const Tool &t) { return t.name == name; });
    const bool offered = tool != std::end(tools) && (!tool->changes || any_writable());
    if (bh::view(request.method) != "tools/call" || !offered) {
      return bh::fail(error, BH_E_NOT_FOUND, "there is no such tool");
    }
    if (draining_) return bh::fail(error, BH_E_UNAVAILABLE, "the plugin is about to stop");
    std::uint64_t deadline = host_.now_ns() + tool_ms * 1'000'000;
    if (request.deadline_ns != 0) deadline = std::min(deadline, request.deadline_ns);
    auto job = std::make_unique<Job>(*this, call, tool->run, bh::view(request.arguments), deadline);
    const bh_status status = host_.run_blocking(run, done, job.get());
    if (status != BH_OK) return bh::fail(error, status, "too many file operations at once", 100);
    jobs_.emplace(call, std::move(job));
    return BH_PENDING;
  }

  void call_cancel(bh_call call) {
    const auto it = jobs_.find(call);
    if (it != jobs_.end()) it->second->cancelled.store(true, std::memory_order_relaxed);
  }

 private:
  struct Job {
    Job(BuiltinFiles &p, bh_call c, std::string (*f)(const Call &), std::string_view json,
        std::uint64_t deadline)
        : plugin(p), call(c), tool(f), arguments(json), deadline_ns(deadline) {}
    BuiltinFiles &plugin;
    const bh_call call;
    std::string (*const tool)(const Call &);
    const std::string arguments;
    const std::uint64_t deadline_ns;
    std::atomic<bool> cancelled{false};
    std::string result;                 // written by the thread, read when it is done
    std::vector<std::string> events{};  // as above
  };

  // On a thread of the pool. Nothing thrown may leave it.
  static void run(void *arg) noexcept {
    auto &job = *static_cast<Job *>(arg);
    try {
      tool_kit::Arguments arguments(job.arguments);
      job.result = job.tool(
          {job.plugin.workspaces_, arguments, job.cancelled, job.deadline_ns, &job.events});
    } catch (const std::exception &) {
      job.result.clear();  // no memory; said by done()
    }
  }

  static void done(void *arg) noexcept {
    auto &job = *static_cast<Job *>(arg);
    job.plugin.finish(job);
  }

  bool any_writable() const noexcept {
    return std::any_of(workspaces_.begin(), workspaces_.end(),
                       [](const Workspace &w) { return w.writable(); });
  }

  // Of a call that is pending still: the host takes none later.
  void record(const Job &job) const noexcept {
    const auto *events = host_.ext<bh_host_event>(BH_EXT_HOST_EVENT);
    if (events == nullptr) return;
    for (const std::string &detail : job.events) {
      events->event(host_.ctx(), job.call, BH_RECORD_FS, bh::str(detail));
    }
  }

  void finish(Job &job) noexcept {
    record(job);
    const bh_call call = job.call;
    bh_result result{};
    result.size = sizeof result;
    result.kind = BH_RESULT_OK;
    bh::guarded(nullptr, [&] {
      if (job.result.empty()) job.result = tool_kit::error_result("there was not enough memory");
      result.json = bh::buf(std::move(job.result));
      return BH_OK;
    });
    jobs_.erase(call);
    tools_->complete(host_.ctx(), call, &result);
  }

  bh::Host host_;
  const bh_host_tools *tools_ = nullptr;
  Config config_;
  std::vector<Workspace> workspaces_;  // not changed after start: threads read it
  std::string definitions_;
  bool draining_ = false;
  std::unordered_map<bh_call, std::unique_ptr<Job>> jobs_;
};

}  // namespace builtin_files

using BuiltinFiles = builtin_files::BuiltinFiles;
BH_PLUGIN(BuiltinFiles)
