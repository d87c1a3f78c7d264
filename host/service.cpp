#include "service.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "connectors.hpp"
#include "http_text.hpp"
#include "mcp/scan.hpp"
#include "paths.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view connectors_path = "/mcp/connectors";
constexpr std::uint64_t look_ms = 20;
// There is one gateway behind a socket: it is the "session" of the reference's answer.
constexpr std::string_view gateway_id = "gateway";

void append_texts(std::string *out, std::string_view name, const std::vector<std::string> &texts) {
  out->append(",\"").append(name).append("\":[");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) *out += ',';
    mcp::append_quoted(out, texts[i]);
  }
  *out += ']';
}

// What went wrong, every line of it; nothing was changed.
ControlAnswer reload_failed(std::string_view message, const std::vector<std::string> &lines) {
  std::string out = R"({"success":false,"reloaded":0,"failed_session_count":1,)";
  out += R"("failed_session_ids":["gateway"],"failures":[)";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += i == 0 ? "{\"session_id\":" : ",{\"session_id\":";
    mcp::append_quoted(&out, gateway_id);
    out += ",\"message\":";
    mcp::append_quoted(&out, lines[i]);
    out += '}';
  }
  out += "],\"message\":";
  mcp::append_quoted(&out, message);
  return {500, out + "}"};
}

std::string failed_servers(const HostStatus &status, const ApplyReport &report) {
  std::string out;
  for (const ServerStatus &server : status.servers) {
    const auto in = [&](const std::vector<std::string> &names) {
      return std::find(names.begin(), names.end(), server.name) != names.end();
    };
    if (!in(report.added) && !in(report.changed)) continue;
    const bool fine = server.state == ServerState::ready || server.state == ServerState::disabled;
    if (fine) continue;
    out += out.empty() ? "{\"name\":" : ",{\"name\":";
    mcp::append_quoted(&out, server.name);
    out += ",\"reason\":";
    mcp::append_quoted(&out, server.reason.empty() ? "still connecting" : server.reason);
    out += '}';
  }
  return out;
}

ControlAnswer reloaded(const ApplyReport &report, const std::vector<std::string> &notes,
                       const HostStatus &status) {
  std::string out = R"({"success":true,"reloaded":1,"failed_session_count":0,)"
                    R"("failed_session_ids":[],"failures":[],"message":null)";
  append_texts(&out, "added", report.added);
  append_texts(&out, "changed", report.changed);
  append_texts(&out, "adjusted", report.adjusted);
  append_texts(&out, "removed", report.removed);
  out += ",\"unchanged\":" + std::to_string(report.unchanged);
  out += ",\"not_connected\":[" + failed_servers(status, report) + "]";
  append_texts(&out, "needs_restart", report.needs_restart);
  append_texts(&out, "notes", notes);
  return {200, out + "}"};
}

}  // namespace

// One change, from its request to its answer.
struct Service::Job {
  Service *service = nullptr;
  What what = What::reload;
  std::string text;  // the body, or the id
  Reply reply;
  // Filled in on the pool's thread.
  ConnectorChange change;
  std::vector<std::string> errors;
  // Then:
  std::vector<std::string> notes;
  ApplyReport report;
  std::uint64_t deadline_ns = 0;

  void prepare() {
    const Arguments &arguments = service->arguments_;
    if (what == What::add) {
      change = add_connector(arguments, service->transports_, text);
    } else if (what == What::remove) {
      change = remove_connector(arguments, service->transports_, text);
    } else {
      auto loaded = load_for(arguments, service->transports_);
      if (loaded.has_value()) {
        change.next = *std::move(loaded);
      } else {
        errors = loaded.error();
      }
    }
  }
};

Service::Service(Reactor &reactor, Arguments arguments, Transports transports,
                 ServiceBackend backend)
    : reactor_(reactor),
      arguments_(std::move(arguments)),
      transports_(transports),
      backend_(std::move(backend)) {
  open();
}

Service::~Service() {
  stopping_ = true;
  server_.reset();
  while (running_) reactor_.poll(100);
  reactor_.forget(this);
}

void Service::open() {
  std::string why;
  for (const auto &dir : control_dirs()) {
    auto made = make_private_dir(dir);
    if (made) {
      auto opened = ControlServer::open(reactor_, dir + "/" + control_socket_name(), ::getpid(),
                                        [this](const ControlRequest &request, Reply reply) {
                                          handle(request, std::move(reply));
                                        });
      if (opened) {
        server_ = std::move(*opened);
        return;
      }
      made = std::unexpected(opened.error());
    }
    why = made.error().text;
  }
  backend_.log(LogLevel::warn, "`bulkhead status` will not find this gateway: " + why);
}

// ---- requests --------------------------------------------------------------------------------

void Service::handle(const ControlRequest &request, Reply reply) {
  const auto wants = [&](std::string_view method) {
    if (request.method == method) return true;
    reply({405, error_body("this path takes " + std::string(method))});
    return false;
  };
  if (request.path == "/status") {
    if (!wants("GET")) return;
    backend_.snapshot(
        [reply = std::move(reply)](std::string json) { reply({200, std::move(json)}); });
  } else if (request.path == "/reload-config") {
    if (wants("POST")) enqueue(What::reload, "", std::move(reply));
  } else if (request.path.starts_with(connectors_path)) {
    handle_connectors(request, std::move(reply));
  } else {
    reply({404, error_body("there is nothing at this path")});
  }
}

void Service::handle_connectors(const ControlRequest &request, Reply reply) {
  std::string_view rest = std::string_view(request.path).substr(connectors_path.size());
  if (rest.empty()) {
    if (request.method == "GET") return list_connectors(std::move(reply));
    if (request.method == "POST") return enqueue(What::add, request.body, std::move(reply));
    return reply({405, error_body("this path takes GET and POST")});
  }
  rest.remove_prefix(1);
  if (request.path[connectors_path.size()] != '/' || rest.empty() ||
      rest.find('/') != std::string_view::npos) {
    return reply({404, error_body("there is nothing at this path")});
  }
  if (request.method != "DELETE") return reply({405, error_body("this path takes DELETE")});
  enqueue(What::remove, std::string(rest), std::move(reply));
}

// What the files say, which is what the next reload brings.
void Service::list_connectors(Reply reply) {
  const auto loaded = load_for(arguments_, transports_);
  if (loaded.has_value()) return reply(connector_list(*loaded));
  reply(reload_failed("the profile is not valid", loaded.error()));
}

void Service::reload() {
  enqueue(What::reload, "", [](const ControlAnswer &) {});
}

// ---- one after the other -----------------------------------------------------------------------

void Service::enqueue(What what, std::string text, Reply reply) {
  if (jobs_.size() >= max_waiting) {
    return reply({503, error_body("too many changes wait already")});
  }
  auto job = std::make_unique<Job>();
  job->service = this;
  job->what = what;
  job->text = std::move(text);
  job->reply = std::move(reply);
  jobs_.push_back(std::move(job));
  if (jobs_.size() == 1) start_next();
}

void Service::start_next() {
  if (jobs_.empty()) return;
  Job &job = *jobs_.front();
  running_ = true;
  const bh_status started = reactor_.run_blocking(
      this, [](void *arg) { static_cast<Job *>(arg)->prepare(); },
      [](void *arg) {
        Job &done = *static_cast<Job *>(arg);
        done.service->running_ = false;
        done.service->prepared(done);
      },
      &job);
  if (started == BH_OK) return;
  running_ = false;
  finish({503, error_body("the gateway is busy")});
}

void Service::prepared(Job &job) {
  if (stopping_) return;
  if (!job.errors.empty()) {
    for (const std::string &line : job.errors) backend_.log(LogLevel::error, "reload: " + line);
    return finish(reload_failed("the profile is not valid; nothing was changed", job.errors));
  }
  if (job.change.refused.status != 200) return finish(std::move(job.change.refused));
  job.notes = job.change.next.profile.notes;
  for (const std::string &note : job.notes) backend_.log(LogLevel::warn, note);
  backend_.apply(std::move(job.change.next),
                 [this, alive = std::weak_ptr(alive_), &job](Result<ApplyReport> report) {
                   if (!alive.expired()) applied(job, std::move(report));
                 });
}

void Service::applied(Job &job, Result<ApplyReport> report) {
  if (!report.has_value()) {
    backend_.log(LogLevel::error, "reload: " + report.error().text);
    return finish(reload_failed("nothing was changed", {report.error().text}));
  }
  job.report = *std::move(report);
  for (const std::string &line : job.report.needs_restart) {
    backend_.log(LogLevel::warn, "reload: " + line);
  }
  if (job.what != What::reload) return finish(std::move(job.change.answer));
  job.deadline_ns = reactor_.now_ns() + settle_ms * 1'000'000u;
  wait_quiet();
}

// Until what the change has begun is over: new servers have answered or failed, old ones are gone.
void Service::wait_quiet() {
  backend_.look([this, alive = std::weak_ptr(alive_)](const HostStatus &status) {
    if (!alive.expired()) looked(status);
  });
}

void Service::looked(const HostStatus &status) {
  const Job &job = *jobs_.front();
  if ((status.settled && status.drained) || reactor_.now_ns() >= job.deadline_ns) {
    return finish(reloaded(job.report, job.notes, status));
  }
  timer_ = reactor_.timer_start(
      this, look_ms,
      [](void *arg) {
        auto &self = *static_cast<Service *>(arg);
        self.timer_ = 0;
        self.wait_quiet();
      },
      this);
}

void Service::finish(ControlAnswer answer) {
  const std::unique_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  job->reply(std::move(answer));
  start_next();
}

}  // namespace bulkhead::program
