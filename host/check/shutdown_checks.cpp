// The rules about draining and stopping while the plugin works, and about instances on several
// threads.
#include <unistd.h>

#include <array>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "check/scenarios.hpp"
#include "check/tools_trial.hpp"

namespace bulkhead::check {
namespace {

constexpr int threads = 4, rounds = 5;
constexpr int repeats = 4;                // calls of each tool at the same time
constexpr std::size_t most_called = 20;   // tools
constexpr int round_ms = 3;               // each round stops so much later than the one before
constexpr int job_ms = Tools::answer_ms;  // how long pool jobs may run after stop

// Runs a function on several threads at the same time, each with the number of its thread.
template <class F>
void run_on_threads(int count, const F &f) {
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i) all.emplace_back([&f, i] { f(i); });
  for (std::thread &one : all) one.join();
}

void check_threads(Trial *trial, const Subject &subject) {
  if (subject.library.manifest.exclusive) return;  // only one instance can be started at a time
  trial->checked(Rule::instances_on_threads);
  for (int round = 0; round < rounds; ++round) {
    std::barrier together(threads);
    run_on_threads(threads, [&](int) {
      TrialHost host;
      const auto loaded = Loaded::load(trial, subject, &host, Rule::instances_on_threads);
      together.arrive_and_wait();
      if (loaded) {
        Tested tested(trial, *loaded, &host, Rule::instances_on_threads);
        const bool runs = tested.create() && tested.configure(subject.config) && tested.start();
        if (!runs) {
          trial->violated(Rule::instances_on_threads,
                          "an instance fails while others start: " + tested.problem());
        }
        together.arrive_and_wait();
        if (runs) tested.stop();
        host.base().forget();
      } else {
        trial->violated(Rule::instances_on_threads, "the library cannot be loaded concurrently");
        together.arrive_and_drop();
      }
    });
  }
}

void check_drain(Trial *trial, const Subject &subject) {
  Tools tools(trial, subject, Rule::drain_calls);
  if (!tools.ready()) return;
  trial->checked(Rule::drain_calls);
  const auto all = tools.tools(most_called);
  bh_call id = 0;
  std::vector<bh_call> pending;
  bh_error error = bh::make_error();
  for (const Item &tool : all) {
    const Request request{"tools/call", tool.name, tool.example};
    if (tools.begin(++id, request, &error) == BH_PENDING) pending.push_back(id);
  }
  tools.tested().drain();
  // A call that the host has begun before it knew of the drain.
  for (const Item &tool : all) tools.call(++id, {"tools/call", tool.name, tool.example});
  trial->step(Rule::drain_calls, "probe() after drain()");
  error = bh::make_error();
  const bh_status status = tools.tested().plugin()->probe(tools.self(), &error);
  check_error(trial, Rule::drain_calls, "probe", status, error);
  if (status < 0) trial->violated(Rule::drain_calls, "probe returns an error after drain()");
  for (const bh_call call : pending) {
    trial->step(Rule::drain_calls, "a call that was in flight when drain() was called");
    if (tools.wait(call, Tools::answer_ms)) continue;
    tools.cancel(call);
    if (!tools.wait(call, Tools::cancel_ms)) {
      trial->violated(Rule::drain_calls, "a call in flight is never completed after drain()");
      break;
    }
  }
  tools.host().base().run_for(Tools::late_ms);
  for (const bh_call call : pending) {
    if (tools.completions(call) > 1) {
      trial->violated(Rule::drain_calls, "a call in flight is completed more than once");
    }
  }
}

// Stops one instance with calls in flight, without waiting for its pool jobs.
void stop_at_once(Trial *trial, const Subject &subject, int wait_ms, std::barrier<> *together) {
  Tools tools(trial, subject, Rule::stop_at_once);
  if (tools.ready()) {
    bh_call id = 0;
    bh_error error = bh::make_error();
    const auto all = tools.tools(most_called);
    for (int i = 0; i < repeats; ++i) {
      for (const Item &tool : all) {
        tools.begin(++id, {"tools/call", tool.name, tool.example}, &error);
      }
    }
    tools.host().base().run_for(wait_ms);
  }
  together->arrive_and_wait();
  if (!tools.ready()) return;
  tools.tested().stop();
  auto &base = tools.host().base();
  trial->step(Rule::stop_at_once, "its pool jobs after stop()");
  // The event loop does not run, so that timers that remain do not fire; see BH406.
  for (int waited = 0; base.blocking() > 0 && waited < job_ms; waited += 5) ::usleep(5'000);
  if (base.blocking() > 0) {
    trial->note("BH410 was checked only partly: a tool's pool job ran for more than " +
                std::to_string(job_ms) + " ms after stop");
    trial->finished();
    ::_exit(0);  // a host never destroys such an instance
  }
  base.forget();
  tools.tested().destroy();
}

void check_stop_at_once(Trial *trial, const Subject &subject) {
  const int count = subject.library.manifest.exclusive ? 1 : threads;
  trial->checked(Rule::stop_at_once);
  for (int round = 0; round < rounds; ++round) {
    std::barrier together(count);
    run_on_threads(count, [&](int) { stop_at_once(trial, subject, round * round_ms, &together); });
  }
}

constexpr std::array scenarios{
    Scenario{BH_EXT_TOOLS, check_drain, {Rule::completes_once, Rule::cancel}},
    Scenario{nullptr, check_threads, {Rule::two_instances}},
    Scenario{BH_EXT_TOOLS,
             check_stop_at_once,
             {Rule::two_instances, Rule::instances_on_threads, Rule::stop_during_calls}},
};

}  // namespace

std::span<const Scenario> shutdown_scenarios() noexcept {
  return scenarios;
}

}  // namespace bulkhead::check
