// Prepares everything that is needed to start a child before its process exists: pipes, the file
// system view, Landlock rules, control groups, and the plan that the child executes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/text.hpp"
#include "sandbox/cache_bounds.hpp"
#include "sandbox/cache_folder.hpp"
#include "sandbox/child_filter.hpp"
#include "sandbox/child_image.hpp"
#include "sandbox/child_landlock.hpp"
#include "sandbox/grant_record.hpp"
#include "sandbox/homes.hpp"
#include "sandbox/same_mounts.hpp"
#include "sandbox/spawn_launch.hpp"
#include "sandbox/start_folder.hpp"

namespace bulkhead {
namespace {

using Mode = ChildPolicy::Mode;

// The working directory of a server that starts in a private folder. It is in the server's scratch
// /tmp, so it is initially empty.
constexpr const char *private_scratch = "/tmp/bulkhead-start";

// Creates a pipe. The gateway's end is non-blocking and the server's end is blocking, which is
// possible because each end has its own O_NONBLOCK flag.
bool make_pipe(OwnedFd *ours, OwnedFd *theirs, bool we_write) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return false;
  OwnedFd read = above_standard(fds[0]), write = above_standard(fds[1]);
  *ours = std::move(we_write ? write : read);
  *theirs = std::move(we_write ? read : write);
  return *ours && *theirs &&
         ::fcntl(ours->get(), F_SETFL, ::fcntl(ours->get(), F_GETFL) | O_NONBLOCK) == 0;
}

std::string own_map(std::uint64_t id) {
  const std::string text = std::to_string(id);
  return text + " " + text + " 1";
}

// Sets variables that redirect caches to the server's private cache folder, unless the environment
// already contains them. Used without namespaces, where private caches cannot be mounted.
void point_caches(const std::string &cache, std::vector<std::string> *environment) {
  static constexpr std::pair<std::string_view, std::string_view> variables[] = {
      {"npm_config_cache", "npm"},           {"XDG_CACHE_HOME", "cache"},
      {"UV_TOOL_DIR", "uv-tools"},           {"BUN_INSTALL_CACHE_DIR", "bun"},
      {"MCP_REMOTE_CONFIG_DIR", "mcp-auth"}, {"TMPDIR", "tmp"},
  };
  if (cache.empty()) return;
  for (const auto &[name, folder] : variables) {
    const std::string start = std::string(name) + "=";
    const bool there = std::any_of(environment->begin(), environment->end(),
                                   [&](const std::string &e) { return e.starts_with(start); });
    const std::string path = cache + "/" + std::string(folder);
    if (there || (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)) continue;
    environment->push_back(start + path);
  }
}

std::vector<char *> pointers(std::vector<std::string> *texts) {
  std::vector<char *> out;
  out.reserve(texts->size() + 1);
  for (std::string &text : *texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<ChildMount> mounts_of(const ChildView &view, bool require) {
  std::vector<ChildMount> out;
  out.reserve(view.steps.size());
  for (const ViewStep &step : view.steps) {
    ChildMount &mount = out.emplace_back();
    mount.kind = step.kind;
    mount.path = step.path.c_str();
    mount.source = step.source.c_str();
    mount.writable = step.writable;
    mount.folder = step.folder;
    mount.make = step.make;
    mount.needed = step.needed;
    mount.holds = step.holds || step.kind == ViewStep::Kind::mirror;
    if (step.mirror != ViewStep::no_mirror) mount.mirror = &out[step.mirror];
    // If parts of /proc are hidden on this machine (as in a container), the kernel rejects a new
    // /proc mount. The mount is therefore optional unless `require` is set.
    mount.optional = step.kind == ViewStep::Kind::processes && !require;
  }
  return out;
}

}  // namespace

bh_status Spawner::prepare_sandbox(Launch &launch, bh_error *error) {
  ViewRequest view;
  view.policy = &launch.policy;
  view.program = launch.program;
  view.home = options_.home;
  find_homes(&view);
  if (caches_ && launch.policy.cache_bytes != 0) caches_->make_room(launch.server);
  view.cache = make_cache_folder(options_.state_dir, launch.server, launch.policy.command,
                                 launch.policy.args);
  view.user = ::geteuid();
  places_->refresh(bh::monotonic_ns());
  view.places = places_.get();
  record_->add_to(&view);
  const bool unread = !record_->problem().empty();
  if (unread && !record_unread_) {
    log(BH_LOG_WARN, record_->problem() +
                         "; until it can be read, symbolic links in servers' paths "
                         "are followed only within their own folder");
  }
  record_unread_ = unread;
  view.changeable.insert(view.changeable.end(), std::begin(shared_folders),
                         std::end(shared_folders));
  view.own = options_.own;
  view.programs = options_.programs;
  if (!options_.state_dir.empty()) view.own.push_back(options_.state_dir);
  const std::size_t failures = MountTable::failures();
  launch.view = plan_view(view);
  if (MountTable::failures() != failures) {
    return bh::fail(error, BH_E_UNAVAILABLE,
                    launch.who() +
                        "is not started: /proc/self/mountinfo cannot be read, so it is "
                        "unknown where hidden paths are mounted a second time");
  }
  launch.cache = view.cache;
  if (!launch.view.refused.empty()) {
    return bh::fail(error, BH_E_LIMIT, launch.who() + "is not started: " + launch.view.refused);
  }
  const auto recorded = record_->add(launch.view);
  if (!recorded && !record_failed_) {
    log(BH_LOG_WARN, recorded.error().text +
                         "; after a restart, links that servers have created may be followed");
  }
  record_failed_ = !recorded;
  for (const std::string &path : launch.view.ignored) {
    log(BH_LOG_WARN, "server \"" + launch.server + "\": access to a path is not granted: " + path);
  }
  for (const std::string &note : launch.view.notes) {
    log(BH_LOG_WARN, "server \"" + launch.server + "\": " + note);
  }
  if (!launch.plan.namespaces) point_caches(view.cache, &launch.environment);
  launch.mounts = mounts_of(launch.view, options_.require);
  Error why;
  if (!prepare_landlock(launch, &why)) {
    return bh::fail(error, why.code, launch.who() + "is not started: " + why.text);
  }
  prepare_groups(launch);
  launch.plan.own_ipc = !launch.policy.host_ipc;
  launch.plan.ipc_needed = options_.require;
  launch.plan.ipc_limit_is_zero = is_limited_to_zero("/proc/sys/user/max_ipc_namespaces") ||
                                  is_limited_to_zero("/proc/sys/user/max_uts_namespaces");
  if (options_.require && !launch.missing_parts.empty()) return refuse(launch, error);
  launch.plan.filter = &child_filter(launch.policy.mode == Mode::strict, launch.policy.network);
  return BH_OK;
}

bh_status Spawner::prepare(Launch &launch, bh_error *error) {
  if (!make_pipe(&launch.in, &launch.child_in, true) ||
      !make_pipe(&launch.out, &launch.child_out, false) ||
      !make_pipe(&launch.err, &launch.child_err, false)) {
    const int number = errno;
    return bh::fail(
        error, number == EMFILE || number == ENFILE ? BH_E_LIMIT : BH_E_IO,
        "server \"" + launch.server + "\": cannot create pipes: " + bh::error_name(number));
  }
  ChildPlan &plan = launch.plan;
  plan.confined = launch.policy.mode != Mode::off;
  plan.namespaces = plan.confined && namespaces_;
  if (plan.confined && !namespaces_ && options_.require) {
    return bh::fail(error, BH_E_UNSUPPORTED, launch.who() + incomplete_sandbox("namespaces"));
  }
  if (plan.confined && !namespaces_ && !launch.policy.network) {
    return bh::fail(
        error, BH_E_UNSUPPORTED,
        launch.who() + "is not started: without namespaces, its network access cannot be blocked");
  }
  if (!init_image_) {
    auto image = child_init_image();
    if (!image) return bh::fail(error, image.error().code, launch.who() + image.error().text);
    init_image_ = std::move(*image);
  }
  if (plan.confined) {
    if (const bh_status status = prepare_sandbox(launch, error); status != BH_OK) return status;
  }
  launch.uid_map = own_map(::geteuid());
  launch.gid_map = own_map(::getegid());
  launch.scratch_options = "mode=1777,size=" + std::to_string(options_.scratch_bytes);
  plan.cwd_given = !launch.cwd.empty();
  if (!plan.cwd_given) choose_folder(launch);
  launch.argv = pointers(&launch.arguments);
  launch.envp = pointers(&launch.environment);
  return BH_OK;
}

void Spawner::choose_folder(Launch &launch) {
  const std::vector<std::string> &args = launch.policy.args;
  if (starts_in_private_folder(launch.policy.command, args, launch.cwd)) {
    const auto is_scratch = [](const ViewStep &step) {
      return step.kind == ViewStep::Kind::scratch && step.path == "/tmp";
    };
    const auto &steps = launch.view.steps;
    launch.plan.make_cwd =
        launch.plan.namespaces && std::any_of(steps.begin(), steps.end(), is_scratch);
    if (launch.plan.make_cwd) {
      launch.cwd = private_scratch;
    } else {
      const std::string own =
          make_cache_folder(options_.state_dir, launch.server, launch.policy.command, args);
      launch.cwd = make_private_folder(own, "cwd");
      // On failure, start in "/", which contains no project files.
      if (launch.cwd.empty()) launch.cwd = "/";
    }
    // Prevents Python from searching the working directory for modules.
    const auto is_set = [](const std::string &variable) {
      return variable.starts_with("PYTHONSAFEPATH=");
    };
    auto &environment = launch.environment;
    if (std::none_of(environment.begin(), environment.end(), is_set))
      environment.emplace_back("PYTHONSAFEPATH=1");
    return;
  }
  std::error_code none;
  launch.cwd = std::filesystem::current_path(none).string();
  if (folder_named_ || launch.cwd.empty() || launch.cwd == "/") return;
  folder_named_ = true;
  log(BH_LOG_WARN,
      "server \"" + launch.server + "\" starts in " + launch.cwd +
          ", the gateway's working directory, because \"cwd\" is not set: programs may "
          "load code and settings from this directory; set \"cwd\" for servers that do "
          "not need files from it");
}

void Spawner::prepare_groups(Launch &launch) {
  if (!groups_) groups_ = std::make_shared<ServerGroups>();
  if (::geteuid() == 0 && !groups_->counts_processes()) {
    report_missing(launch, "process-limit",
                   "cannot create a control group, and no other limit applies to root's processes");
  }
  if (launch.policy.memory_bytes != 0 && !groups_->counts_memory()) {
    report_missing(launch, "memory-group",
                   "cannot create a control group, so memory_bytes limits each process of a server "
                   "separately");
  }
  // The group's limit is one higher than the server's, because the first process of the sandbox is
  // also counted.
  launch.group = groups_->plan({launch.policy.processes + 1, launch.policy.memory_bytes});
  const auto text = [](const std::string &s) { return s.empty() ? nullptr : s.c_str(); };
  for (std::size_t i = 0; i < launch.group.parts.size(); ++i) {
    const ServerGroups::Part &part = launch.group.parts[i];
    launch.plan.groups[i] = {
        part.parent,          part.folder.c_str(),    part.procs.c_str(), text(part.processes_file),
        text(part.processes), text(part.memory_file), text(part.memory)};
  }
}

bool Spawner::prepare_landlock(Launch &launch, Error *why) {
  auto ruleset = child_landlock(launch.view, launch.plan.namespaces, launch.cache);
  if (ruleset) {
    launch.landlock = std::move(*ruleset);
    if (const int abi = landlock_abi(); abi < 6) {
      report_missing(launch, "landlock-scopes", "this kernel has Landlock ABI 5 or older");
    }
    return true;
  }
  // Errors other than BH_E_UNSUPPORTED may be temporary, and caused by another server.
  if (ruleset.error().code != BH_E_UNSUPPORTED) {
    *why = ruleset.error();
    return false;
  }
  if (!options_.require && launch.plan.namespaces) {
    report_missing("landlock-files", ruleset.error().text);
    return true;
  }
  if (!options_.require && launch.policy.mode == Mode::strict) {
    *why = ruleset.error();
    return false;
  }
  report_missing(launch, "landlock-files", ruleset.error().text);
  return true;
}

void Spawner::fill_plan(Launch &launch) {
  ChildPlan &plan = launch.plan;
  plan.program = launch.program.c_str();
  plan.argv = launch.argv.data();
  plan.envp = launch.envp.data();
  plan.cwd = launch.cwd.empty() ? nullptr : launch.cwd.c_str();
  plan.in = launch.child_in.get();
  plan.out = launch.child_out.get();
  plan.err = launch.child_err.get();
  plan.own_network = !launch.policy.network;
  plan.uid_map = launch.uid_map.c_str();
  plan.gid_map = launch.gid_map.c_str();
  plan.mounts = launch.mounts.data();
  plan.mount_count = launch.mounts.size();
  plan.scratch_options = launch.scratch_options.c_str();
  plan.init_image = init_image_.get();
  plan.exit_report = launch.exit_report.get();
  plan.landlock = launch.landlock.get();
  plan.writable_processes = ::geteuid() != 0;
  plan.groups_needed = options_.require;
  plan.memory_bytes = launch.policy.memory_bytes;
  plan.processes = launch.policy.processes;
  plan.parent = ::getpid();
  static_assert(ChildPlan::most_kept >= 8);
  for (const int fd : {plan.in, plan.out, plan.err, plan.groups[0].parent, plan.groups[1].parent,
                       plan.init_image, plan.exit_report, plan.landlock}) {
    if (fd > 2) plan.kept[plan.kept_count++] = fd;
  }
  std::sort(plan.kept, plan.kept + plan.kept_count);
}

}  // namespace bulkhead
