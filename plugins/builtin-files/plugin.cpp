// builtin-files: a tools plugin for reading, searching and changing files.
//
// The reactor thread receives calls and sends responses. Jobs on the host's thread pool access the
// file system. The plugin owns the job objects, which the pool threads borrow.
#include <bulkhead/abi/ext/draft/event.h>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <bulkhead/cpp/tools.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>

#include "builtin-files/config.hpp"
#include "builtin-files/resources.hpp"
#include "builtin-files/snapshots/snapshot_tools.hpp"
#include "builtin-files/tools.hpp"
#include "builtin-files/updates.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {

class BuiltinFiles {
  static constexpr std::uint64_t first_report_ns = 1'000'000'000;
  // Tool objects that represent the resource methods. They have no tool function.
  static constexpr Tool resource_methods[] = {{"resources/read", nullptr, false},
                                              {"resources/subscribe", nullptr, false},
                                              {"resources/unsubscribe", nullptr, false}};
  static constexpr const Tool &read_method = resource_methods[0];
  static constexpr const Tool &subscribe_method = resource_methods[1];
  static constexpr const Tool &unsubscribe_method = resource_methods[2];
  using Lane = SubscriptionLane;

 public:
  static constexpr bh::Info info{.id = "builtin-files",
                                 .name = "Files",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = config_schema,
                                 .provides = {BH_EXT_TOOLS}};

  explicit BuiltinFiles(const bh_host *host) : host_(host), updates_(host_) {}

  bh_status configure(bh_str json, bh_error *error) {
    tools_ = host_.ext<bh_host_tools>(BH_EXT_HOST_TOOLS);
    if (tools_ == nullptr || !host_.has_reactor()) {
      return bh::fail(error, BH_E_UNSUPPORTED, "the host does not support tools or has no reactor");
    }
    return parse_config(bh::view(json), &config_, error);
  }

  bh_status start(bh_error *error) {
    for (const WorkspaceConfig &c : config_.workspaces) {
      Workspace workspace;
      std::string problem;
      if (!Workspace::open(c.name, c.path, &workspace, &problem, config_.links)) {
        return bh::fail(error, BH_E_IO, problem);
      }
      if (c.write) workspace.allow_writing(c.write_bytes);
      workspaces_.push_back(std::move(workspace));
    }
    definitions_ = definitions(workspaces_);
    updates_.start(tools_, workspaces_);
    if (!config_.snapshots) return BH_OK;
    definitions_.back() = ',';
    definitions_ += snapshot_definitions(workspaces_) + "]";
    return open_snapshots(error);
  }

  void drain(std::uint64_t) noexcept { draining_ = true; }

  // Tells all running jobs to stop the next time they check `cancelled`. The host keeps this object
  // until the jobs have finished.
  void stop() noexcept {
    for (const auto &[call, job] : jobs_) job->cancelled.store(true, std::memory_order_relaxed);
    automatic_.cancelled.store(true, std::memory_order_relaxed);
    host_.timer_cancel(automatic_.timer);
    updates_.stop();
  }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TOOLS) ? bh::tools_table<BuiltinFiles>() : nullptr;
  }

  bh_status list(const bh_list_info &wanted, bh_buf *out, bh_error *error) {
    switch (wanted.kind) {
      case BH_LIST_TOOLS:
        *out = bh::buf(std::string(definitions_));
        return BH_OK;
      case BH_LIST_TEMPLATES:
        *out = bh::buf(resource_templates(workspaces_));
        return BH_OK;
      case BH_LIST_RESOURCES:  // every file is a resource, but resources are not listed
        *out = bh::buf("[]");
        return BH_OK;
      default:
        return bh::fail(error, BH_E_UNSUPPORTED, "the plugin has only tools and resources");
    }
  }

  bh_status call_begin(bh_call call, const bh_call_info &request, bh_error *error) {
    const bool calls_tool = bh::view(request.method) == "tools/call";
    const Tool *tool =
        calls_tool ? tool_named(bh::view(request.name)) : resource_method(bh::view(request.method));
    if (tool == nullptr) return bh::fail(error, BH_E_NOT_FOUND, "unknown tool");
    if (draining_) return bh::fail(error, BH_E_UNAVAILABLE, "the plugin is stopping");
    if (tool == &subscribe_method)
      return change_subscription(call, Lane::Kind::subscribe, request, error);
    if (tool == &unsubscribe_method)
      return change_subscription(call, Lane::Kind::unsubscribe, request, error);
    auto job = std::make_unique<Job>(*this, call, *tool, request);
    const bh_status status = host_.run_blocking(bh::blocking_work(
        job.get(), [](Job &it) { run(it); }, [](Job &it) { it.plugin.finish(it); }));
    if (status != BH_OK) return bh::fail(error, status, "too many file operations in flight", 100);
    jobs_.emplace(call, std::move(job));
    return BH_PENDING;
  }

  // Subscription calls cannot be cancelled; see SubscriptionLane::add().
  void call_cancel(bh_call call, const bh_cancel &) {
    const auto it = jobs_.find(call);
    if (it != jobs_.end()) it->second->cancelled.store(true, std::memory_order_relaxed);
  }

  std::uint32_t features() const noexcept { return updates_.offered() ? BH_TOOLS_SUBSCRIBE : 0; }

 private:
  struct Job {
    Job(BuiltinFiles &p, bh_call c, const Tool &t, const bh_call_info &request)
        : plugin(p),
          call(c),
          tool(t),
          name(bh::view(request.name)),
          arguments(bh::view(request.arguments)),
          started_ns(p.host_.now_ns()),
          deadline_ns(p.deadline_of(t, request)),
          wants_progress((request.flags & BH_CALL_PROGRESS) != 0) {}
    BuiltinFiles &plugin;
    const bh_call call;
    const Tool &tool;
    const std::string name;  // tool name or resource URI
    const std::string arguments;
    const std::uint64_t started_ns, deadline_ns;
    const bool wants_progress;
    std::atomic<bool> cancelled{false};
    std::string result;   // JSON; written by the pool thread, read after the job has finished
    bool failed = false;  // true if `result` is a JSON-RPC error; same threads as `result`
    std::vector<std::string> events{}, snapshot_events{};  // for records; same threads as `result`
  };

  // State of automatic snapshots. Each round takes a snapshot of every workspace.
  struct Automatic {
    bh_timer timer = 0;
    std::atomic<bool> cancelled{false};
    std::string problem;   // error of the current round; written by the pool thread
    std::string reported;  // last logged error, which is not logged again
  };

  const Tool *tool_named(std::string_view name) const noexcept {
    const auto find = [&](std::span<const Tool> list) -> const Tool * {
      const auto at =
          std::find_if(list.begin(), list.end(), [&](const Tool &t) { return t.name == name; });
      return at != list.end() && (!at->changes || any_writable()) ? &*at : nullptr;
    };
    const Tool *tool = find(tools);
    return tool == nullptr && config_.snapshots ? find(snapshot_tools) : tool;
  }

  // Returns nullptr if the method is unknown, or if it requires subscriptions and they are
  // unavailable.
  const Tool *resource_method(std::string_view name) const noexcept {
    for (const Tool &method : resource_methods) {
      if (method.name != name) continue;
      return &method == &read_method || updates_.offered() ? &method : nullptr;
    }
    return nullptr;
  }

  bh_status change_subscription(bh_call call, Lane::Kind kind, const bh_call_info &request,
                                bh_error *error) {
    if (updates_.lane().add(call, kind, std::string(bh::view(request.name)))) return BH_PENDING;
    return bh::fail(error, BH_E_LIMIT, "too many subscriptions are pending; try again later", 1000);
  }

  std::uint64_t deadline_of(const Tool &tool, const bh_call_info &request) const noexcept {
    const bool is_snapshot_tool = tool.name.starts_with("snapshots_");
    const std::uint64_t ms = is_snapshot_tool ? snapshot_ms : tool_ms;
    const std::uint64_t own = host_.now_ns() + ms * 1'000'000;
    return request.deadline_ns != 0 ? std::min(own, request.deadline_ns) : own;
  }

  bh_status open_snapshots(bh_error *error) {
    for (const Workspace &workspace : workspaces_) {
      stores_.push_back(
          std::make_unique<SnapshotStore>(workspace, *config_.snapshots, config_.links));
      std::string problem;
      if (!stores_.back()->open(&problem)) return bh::fail(error, BH_E_IO, problem);
    }
    if (config_.snapshots->interval_s != 0) next_automatic(0);
    return BH_OK;
  }

  void next_automatic(std::uint64_t delay_ms) noexcept {
    automatic_.timer =
        host_.timer_start(delay_ms, bh::callback<&BuiltinFiles::begin_automatic>(this));
  }

  void begin_automatic() noexcept {
    automatic_.timer = 0;
    const auto work =
        bh::blocking_work<&BuiltinFiles::run_automatic, &BuiltinFiles::automatic_done>(this);
    if (host_.run_blocking(work) != BH_OK) next_automatic(config_.snapshots->interval_s * 1000);
  }

  void run_automatic() noexcept {
    automatic_.problem.clear();
    try {
      tool_kit::Arguments none("");
      const Call call{workspaces_, none, automatic_.cancelled, 0};
      for (const auto &store : stores_) {
        if (automatic_.cancelled) return;
        const std::string problem = take_automatic(call, store.get());
        if (!problem.empty()) {
          automatic_.problem = "workspace " + store->workspace().name() + ": " + problem;
        }
      }
    } catch (const std::exception &e) {
      automatic_.problem = e.what();
    }
  }

  void automatic_done() noexcept {
    if (automatic_.cancelled) return;
    bh::guarded(nullptr, [&] {
      Automatic &a = automatic_;
      if (!a.problem.empty() && a.problem != a.reported) {
        host_.log(BH_LOG_WARN, "cannot take an automatic snapshot: " + a.problem);
      }
      a.reported = a.problem;
      return BH_OK;
    });
    next_automatic(config_.snapshots->interval_s * 1000);
  }

  // Executes a job. Runs on a pool thread.
  static void run(Job &job) noexcept {
    try {
      if (&job.tool == &read_method) {
        job.result = read_resource(job.plugin.workspaces_, job.name, &job.failed);
        return;
      }
      tool_kit::Arguments arguments(job.arguments);
      const auto tell = [&job](double done, double total, std::string_view unit) {
        job.plugin.tell(job, done, total, unit);
      };
      Progress progress{tell, job.started_ns + first_report_ns};
      const Call call{.workspaces = job.plugin.workspaces_,
                      .arguments = arguments,
                      .cancelled = job.cancelled,
                      .deadline_ns = job.deadline_ns,
                      .events = &job.events,
                      .snapshot_events = &job.snapshot_events,
                      .progress = job.wants_progress ? &progress : nullptr,
                      .snapshots = &job.plugin.stores_};
      job.result = before_change(job, call);
      if (job.result.empty()) job.result = job.tool.run(call);
    } catch (const std::exception &) {
      job.result.clear();  // finish() reports an empty result as out of memory
    }
  }

  // If the configuration requires it, takes an automatic snapshot before a tool changes files. On
  // failure, returns an error result; the change must then not be made.
  static std::string before_change(const Job &job, const Call &call) {
    if (!job.tool.changes || job.plugin.stores_.empty()) return {};
    SnapshotStore &store = store_to_change(call);
    if (!store.before_changes()) return {};
    const std::string problem = take_automatic(call, &store);
    if (problem.empty()) return {};
    return tool_kit::error_result(
        "nothing was changed because the snapshot before the change failed: " + problem);
  }

  // Thread-safe.
  void tell(const Job &job, double done, double total, std::string_view unit) const {
    const bh_progress report = bh::progress(done, total, unit);
    tools_->progress(host_.ctx(), job.call, &report);
  }

  bool any_writable() const noexcept {
    return std::any_of(workspaces_.begin(), workspaces_.end(),
                       [](const Workspace &w) { return w.writable(); });
  }

  // Must be called before the call is completed, because the host drops events of completed calls.
  void record(const Job &job) const noexcept {
    const auto *events = host_.ext<bh_host_event>(BH_EXT_HOST_EVENT);
    if (events == nullptr) return;
    for (const std::string &detail : job.events) {
      events->event(host_.ctx(), job.call, BH_RECORD_FS, bh::str(detail));
    }
    for (const std::string &detail : job.snapshot_events) {
      events->event(host_.ctx(), job.call, BH_RECORD_SNAPSHOT, bh::str(detail));
    }
  }

  void finish(Job &job) noexcept {
    record(job);
    const bh_call call = job.call;
    bh_result result{};
    result.size = sizeof result;
    result.kind = job.failed ? BH_RESULT_ERROR : BH_RESULT_OK;
    bh::guarded(nullptr, [&] {
      if (job.result.empty()) job.result = tool_kit::error_result("out of memory");
      result.json = bh::buf(std::move(job.result));
      return BH_OK;
    });
    jobs_.erase(call);
    tools_->complete(host_.ctx(), call, &result);
  }

  bh::Host host_;
  const bh_host_tools *tools_ = nullptr;
  Config config_;
  std::vector<Workspace> workspaces_;  // constant after start because pool threads read it
  Updates updates_;
  std::vector<std::unique_ptr<SnapshotStore>> stores_;  // one per workspace, or empty
  Automatic automatic_;
  std::string definitions_;
  bool draining_ = false;
  std::unordered_map<bh_call, std::unique_ptr<Job>> jobs_;
};

}  // namespace builtin_files

using BuiltinFiles = builtin_files::BuiltinFiles;
BH_PLUGIN(BuiltinFiles)
