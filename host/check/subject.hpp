// The plugin that is checked, in the process of a trial.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "check/trial.hpp"
#include "check/trial_host.hpp"

namespace bulkhead::check {

// What is checked. `config` and `definition` are JSON objects: the instance's configuration and,
// for a connector, the definition of a server.
struct Subject {
  CheckedLibrary library;
  std::string config = "{}", definition = "{}";
};

// The mapped library. Its destructor calls deinit.
class Loaded {
 public:
  // Maps and initializes the library. Returns null if that fails, which the trial of the loading
  // rules reports.
  static std::unique_ptr<Loaded> load(Trial *trial, const Subject &subject, TrialHost *host,
                                      Rule rule);
  ~Loaded();
  Loaded(const Loaded &) = delete;
  Loaded &operator=(const Loaded &) = delete;

  const bh_entry &entry() const noexcept { return *entry_; }
  const PluginDescription &description() const noexcept { return description_; }

 private:
  Loaded() = default;
  const bh_entry *entry_ = nullptr;
  PluginDescription description_;
  TrialHost *host_ = nullptr;
};

// Adds a violation if the status is an error without a valid text.
void check_error(Trial *trial, Rule rule, std::string_view function, bh_status status,
                 const bh_error &error);

// An instance of the plugin. Each function announces its step to the trial, so that a crash
// violates `rule`. The destructor stops and destroys the instance if that was not done.
class Tested {
 public:
  Tested(Trial *trial, const Loaded &loaded, TrialHost *host, Rule rule);
  ~Tested();
  Tested(const Tested &) = delete;
  Tested &operator=(const Tested &) = delete;

  // The rule that the next steps belong to.
  void belongs_to(Rule rule) noexcept { rule_ = rule; }

  // Return false if the plugin returned an error, whose text is then in problem().
  bool create();
  bool configure(std::string_view config);
  bool start();
  // create(), configure() and start(). If one of them fails, reports that `what` was not checked.
  bool run(std::string_view config);
  void drain();
  void stop();
  void destroy();

  const std::string &problem() const noexcept { return problem_; }
  const bh_plugin *plugin() const noexcept { return plugin_; }
  void *self() const noexcept { return plugin_->self; }
  // Returns the instance's table for an extension, or null.
  template <class Table>
  const Table *ext(const char *id) {
    return static_cast<const Table *>(plugin_->get_ext(plugin_->self, id));
  }
  TrialHost &host() noexcept { return host_; }
  Trial &trial() noexcept { return trial_; }

 private:
  void step(const char *what);
  bool failed(const char *function, bh_status status, const bh_error &error);

  Trial &trial_;
  const Loaded &loaded_;
  TrialHost &host_;
  Rule rule_;
  const bh_plugin *plugin_ = nullptr;
  bool started_ = false;
  std::string problem_;
};

// The descriptors and threads of the process, before an instance is created.
struct Held {
  std::set<int> descriptors;
  std::size_t threads = 0;
};
Held held(const Trial &trial);
// Add violations for what a stopped instance still holds: timers, watches, functions, pool jobs,
// child processes and threads after stop(), and descriptors after destroy().
void check_stopped(Trial *trial, Rule rule, TrialHost *host, const Held &before);
void check_destroyed(Trial *trial, Rule rule, const Held &before);

}  // namespace bulkhead::check
