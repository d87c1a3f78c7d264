#include "service/service.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "profile/policy_mark.hpp"
#include "service/connectors.hpp"

namespace bulkhead::program {
namespace {

constexpr std::uint64_t stop_look_ms = 20;
constexpr const char *still_connecting = "still connecting";

// Returns the servers that were added or modified by the change and are not ready, each with the
// reason why it is not ready.
std::vector<std::pair<std::string, std::string>> not_connected(const HostStatus &status,
                                                               const ApplyReport &report) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const ServerStatus &server : status.servers) {
    const auto in = [&](const std::vector<std::string> &names) {
      return std::find(names.begin(), names.end(), server.name) != names.end();
    };
    if (!in(report.added) && !in(report.changed)) continue;
    if (server.state == ServerState::ready || server.state == ServerState::idle) continue;
    // A server that is disabled in the profile is not reported.
    if (server.state == ServerState::disabled && server.reason.empty()) continue;
    out.emplace_back(server.name, server.reason.empty() ? still_connecting : server.reason);
  }
  return out;
}

// Corrects the report's lines about plugin files: a new version of a plugin may have failed.
std::vector<std::string> file_lines(
    std::vector<std::string> files,
    const std::vector<std::pair<std::string, std::string>> &not_connected) {
  for (std::string &line : files) {
    for (const auto &[name, reason] : not_connected) {
      if (!line.starts_with("tools." + name + ":")) continue;
      line = "tools." + name + ": file changed; new version " +
             (reason == still_connecting ? "is starting" : "does not run");
    }
  }
  return files;
}

std::string disabled_text(const ServerDef &def) {
  std::string out = "server " + def.name + " is disabled";
  if (!def.disabled_reason.empty()) out += ": " + def.disabled_reason;
  return def.unmet ? out.append(own_environment) : out;
}

// Returns the notes of the profile. Notes about servers with unset variables also state whose
// environment is used.
std::vector<std::string> reload_notes(const Profile &profile) {
  std::vector<std::string> out = profile.notes;
  for (std::string &note : out) {
    for (const ServerDef &def : profile.servers) {
      if (!def.unmet) continue;
      if (note.ends_with("\"" + def.name + "\" is disabled: " + def.disabled_reason)) {
        note += own_environment;
        break;
      }
    }
  }
  return out;
}

}  // namespace

// A change to the profile, or a reload. The job exists until its response has been sent.
struct Service::Job {
  Service *service = nullptr;
  What what = What::reload;
  ServerEntry entry;  // add
  std::string id;     // remove, restart
  PluginSwapRequest swap;
  ServiceReply reply;
  std::map<std::string, std::uint64_t> restarts;
  // Set on a pool thread:
  ConnectorChange change;
  std::vector<std::string> errors;
  // Set later, on the reactor thread:
  std::vector<std::string> notes;
  std::vector<std::string> policies;       // their IDs
  std::vector<std::string> policy_errors;  // logged while the profile was applied
  ApplyReport report;
  Error failure;  // why the profile was rejected
  std::uint64_t deadline_ns = 0;

  void prepare() {
    const Arguments &arguments = service->arguments_;
    if (what == What::add) {
      change = add_connector(arguments, service->transports_, entry);
    } else if (what == What::remove) {
      change = remove_connector(arguments, service->transports_, id);
    } else {
      auto loaded = load_checked(arguments, service->transports_);
      if (loaded.has_value()) {
        change.next = *std::move(loaded);
      } else {
        errors = loaded.error();
      }
    }
    if (what == What::restart && errors.empty()) count_restart();
    for (ServerDef &def : change.next.profile.servers) {
      if (const auto count = restarts.find(def.name); count != restarts.end())
        def.restarts = count->second;
    }
  }

  void count_restart() {
    const auto &servers = change.next.profile.servers;
    const auto at = std::find_if(servers.begin(), servers.end(),
                                 [&](const ServerDef &def) { return def.name == id; });
    if (at == servers.end()) {
      change.answer = refuse_with(BH_E_NOT_FOUND, "the gateway has no server \"" + id + "\"");
    } else if (at->disabled) {
      change.answer = refuse_with(BH_E_INVALID, disabled_text(*at));
    } else {
      ++restarts[id];
    }
  }
};

Service::Service(Reactor &reactor, Arguments arguments, Transports transports,
                 ServiceBackend backend)
    : reactor_(reactor),
      arguments_(std::move(arguments)),
      transports_(transports),
      backend_(std::move(backend)) {}

Service::~Service() {
  stopping_ = true;
  while (running_ > 0) reactor_.poll(100);
  reactor_.forget(this);
}

// ---- requests ----------------------------------------------------------------------------------

void Service::ask(ServiceRequest request, std::string_view value, ServiceReply reply) {
  switch (request) {
    case ServiceRequest::status:
      return backend_.status(
          [reply = std::move(reply)](const ServiceStatus &status) { reply(answer_with(status)); });
    case ServiceRequest::reload:
      return enqueue(new_job(What::reload, std::move(reply)));
    case ServiceRequest::list_connectors:
      return list_connectors(std::move(reply));
    case ServiceRequest::add_connector:
      return add(value, std::move(reply));
    case ServiceRequest::remove_connector:
      return remove(value, std::move(reply));
    case ServiceRequest::restart_server:
      return restart(value, std::move(reply));
    case ServiceRequest::swap_plugin:
      return swap(value, std::move(reply));
    case ServiceRequest::list_approvals:
      return approvals(ApprovalRequest::list, value, std::move(reply));
    case ServiceRequest::answer_approval:
      return approvals(ApprovalRequest::answer, value, std::move(reply));
    case ServiceRequest::join:
      return reply(
          backend_.join
              ? backend_.join(value)
              : refuse_with(BH_E_DENIED,
                            "it runs with --single-process, or serves a client on standard input"));
    case ServiceRequest::metrics_listener:
    case ServiceRequest::admit:
      break;
  }
  reply(refuse_with(BH_E_UNSUPPORTED, "unknown request"));
}

void Service::approvals(ApprovalRequest request, std::string_view value, ServiceReply reply) {
  backend_.approvals(request, std::string(value),
                     [reply = std::move(reply)](Result<std::string> answer) {
                       if (answer) return reply({BH_OK, *std::move(answer)});
                       reply(refuse_with(answer.error().code, answer.error().text));
                     });
}

// Lists the connectors. They are read from the files, so the list includes changes that are not
// applied until the next reload.
struct Service::Listing {
  Service *service;
  ServiceReply reply;
  ServiceAnswer answer;

  void read() {
    const auto loaded = load_to_look(service->arguments_, service->transports_);
    answer = loaded.has_value()
                 ? answer_with(connector_list(*loaded))
                 : refuse_with(BH_E_INTERNAL, "the profile is not valid", loaded.error());
  }
};

void Service::list_connectors(ServiceReply reply) {
  auto listing = std::make_unique<Listing>(Listing{this, std::move(reply), {}});
  const bh_status started =
      reactor_.run_blocking(this, bh::blocking_work(
                                      listing.get(), [](Listing &job) { job.read(); },
                                      [](Listing &job) {
                                        const std::unique_ptr<Listing> done(&job);
                                        --done->service->running_;
                                        done->reply(std::move(done->answer));
                                      }));
  if (started != BH_OK) return listing->reply(refuse_with(BH_E_LIMIT, "the gateway is busy"));
  ++running_;
  static_cast<void>(listing.release());  // the callback above deletes it
}

void Service::add(std::string_view value, ServiceReply reply) {
  auto job = new_job(What::add, std::move(reply));
  if (!from_bytes(value, &job->entry)) {
    return job->reply(refuse_with(BH_E_INVALID, "the definition is invalid"));
  }
  enqueue(std::move(job));
}

void Service::remove(std::string_view value, ServiceReply reply) {
  auto job = new_job(What::remove, std::move(reply));
  if (!from_bytes(value, &job->id)) {
    return job->reply(refuse_with(BH_E_INVALID, "the id is invalid"));
  }
  enqueue(std::move(job));
}

// Reloads the profile and gives the server a new connection. The server's old connection drains.
void Service::restart(std::string_view value, ServiceReply reply) {
  auto job = new_job(What::restart, std::move(reply));
  if (!from_bytes(value, &job->id)) {
    return job->reply(refuse_with(BH_E_INVALID, "the name is invalid"));
  }
  enqueue(std::move(job));
}

void Service::swap(std::string_view value, ServiceReply reply) {
  auto job = new_job(What::swap, std::move(reply));
  if (!from_bytes(value, &job->swap)) {
    return job->reply(refuse_with(BH_E_INVALID, "the request is invalid"));
  }
  if (!backend_.swap) {
    return job->reply(refuse_with(
        BH_E_UNSUPPORTED, "it runs with --single-process, so its plugins cannot be swapped"));
  }
  enqueue(std::move(job));
}

void Service::reload() {
  enqueue(new_job(What::reload, [](const ServiceAnswer &) {}));
}

// ---- changes -----------------------------------------------------------------------------------

std::unique_ptr<Service::Job> Service::new_job(What what, ServiceReply reply) {
  auto job = std::make_unique<Job>();
  job->service = this;
  job->what = what;
  job->reply = std::move(reply);
  return job;
}

void Service::enqueue(std::unique_ptr<Job> job) {
  if (jobs_.size() >= max_waiting) {
    return job->reply(refuse_with(BH_E_LIMIT, "too many changes are pending"));
  }
  jobs_.push_back(std::move(job));
  if (jobs_.size() == 1) start_next();
}

void Service::start_next() {
  if (jobs_.empty()) return;
  Job &job = *jobs_.front();
  if (job.what == What::swap) return start_swap(job);
  job.restarts = restarts_;
  const bh_status started = reactor_.run_blocking(this, bh::blocking_work(
                                                            &job, [](Job &it) { it.prepare(); },
                                                            [](Job &done) {
                                                              --done.service->running_;
                                                              done.service->prepared(done);
                                                            }));
  if (started == BH_OK) {
    ++running_;
    return;
  }
  finish(refuse_with(BH_E_LIMIT, "the gateway is busy"));
}

void Service::start_swap(const Job &job) {
  backend_.swap(job.swap, [this, alive = std::weak_ptr(alive_)](Result<PluginSwapped> done) {
    if (alive.expired()) return;
    if (done) return finish(answer_with(*done));
    backend_.log(LogLevel::error, "swap: " + done.error().text);
    finish(refuse_with(done.error().code, done.error().text));
  });
}

void Service::prepared(Job &job) {
  if (stopping_) return;
  if (!job.errors.empty()) {
    for (const std::string &line : job.errors) backend_.log(LogLevel::error, "reload: " + line);
    return finish(
        refuse_with(BH_E_INTERNAL, "the profile is not valid; nothing was changed", job.errors));
  }
  if (job.change.answer.code != BH_OK) return finish(std::move(job.change.answer));
  job.notes = reload_notes(job.change.next.profile);
  for (const std::string &note : job.notes) {
    if (std::find(logged_notes_.begin(), logged_notes_.end(), note) == logged_notes_.end())
      backend_.log(LogLevel::warn, note);
  }
  logged_notes_ = job.notes;
  for (const PluginUse &use : job.change.next.profile.policies) job.policies.push_back(use.id);
  backend_.apply(std::move(job.change.next),
                 [this, alive = std::weak_ptr(alive_), &job](Result<ApplyReport> report) {
                   if (!alive.expired()) applied(job, std::move(report));
                 });
}

void Service::on_log(LogLevel level, std::string_view component, std::string_view text) {
  if (jobs_.empty() || level != LogLevel::error) return;
  Job &job = *jobs_.front();
  const bool is_policy =
      std::find(job.policies.begin(), job.policies.end(), component) != job.policies.end();
  if (!is_policy || job.policy_errors.size() >= max_policy_errors) return;
  job.policy_errors.push_back("policies." + std::string(component) + ": " + std::string(text));
}

// Sends the response to a change that was rejected.
void Service::rejected(const Job &job) {
  const Error &error = job.failure;
  // BH_E_UNAVAILABLE: the endpoint was restarted during the change and has started with the new
  // profile.
  const bool later = error.code == BH_E_UNAVAILABLE;
  if (later) restarts_ = job.restarts;
  const char *what = job.what == What::reload || job.what == What::restart
                         ? (later ? "not confirmed" : "nothing was changed")
                         : "saved; the change takes effect after a restart or reload";
  std::vector<std::string> all{error.text};
  if (!job.policy_errors.empty()) {
    // error.text usually contains the first of these errors, possibly truncated.
    const std::string_view first = std::string_view(job.policy_errors.front()).substr(0, 100);
    const bool other = error.text.find(first) == std::string::npos;
    if (!other) all.clear();
    all.insert(all.begin(), job.policy_errors.begin(), job.policy_errors.end());
  }
  finish(refuse_with(BH_E_INTERNAL, what, std::move(all)));
}

void Service::applied(Job &job, Result<ApplyReport> report) {
  if (!report.has_value()) {
    backend_.log(LogLevel::error, "reload: " + report.error().text);
    job.failure = std::move(report.error());
    timer_ = reactor_.timer_start(this, log_wait_ms, bh::callback(this, [](Service &self) {
                                    self.timer_ = 0;
                                    self.rejected(*self.jobs_.front());
                                  }));
    if (timer_ == 0) rejected(job);
    return;
  }
  restarts_ = job.restarts;
  job.report = *std::move(report);
  if (!job.report.policy.empty()) {
    backend_.log(LogLevel::info, "reload: policy: " + describe_changes(job.report.policy_mark));
  }
  for (const std::string &line : job.report.needs_restart) {
    backend_.log(LogLevel::warn, "reload: " + line);
  }
  if (job.what == What::add || job.what == What::remove)
    return finish(std::move(job.change.answer));
  job.deadline_ns = reactor_.now_ns() + settle_ms * 1'000'000u;
  wait_settled();
}

// Waits until all new servers are ready or have failed, and all old servers have stopped.
void Service::wait_settled() {
  backend_.look([this, alive = std::weak_ptr(alive_)](const HostStatus &status) {
    if (!alive.expired()) on_host_status(status);
  });
}

void Service::on_host_status(const HostStatus &status) {
  const Job &job = *jobs_.front();
  if ((status.settled && status.drained) || reactor_.now_ns() >= job.deadline_ns) {
    Reloaded done{job.report, job.notes, not_connected(status, job.report)};
    done.report.files = file_lines(std::move(done.report.files), done.not_connected);
    return finish(answer_with(done));
  }
  timer_ = reactor_.timer_start(this, stop_look_ms, bh::callback(this, [](Service &self) {
                                  self.timer_ = 0;
                                  self.wait_settled();
                                }));
}

void Service::finish(ServiceAnswer answer) {
  const std::unique_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  job->reply(std::move(answer));
  start_next();
}

}  // namespace bulkhead::program
