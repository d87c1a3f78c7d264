// Test fixture for views and lists: Views, FilteredLists and fake tools plugins without a Router.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "route/fakes.hpp"
#include "route/place_lane.hpp"
#include "route/views.hpp"

namespace bulkhead {

struct ListWorld : FakeLaneHost {
  Profile profile;
  Upstreams upstreams;
  Sessions sessions{1};
  FakeClient client;
  FakePolicy policy{BH_POLICY_FILTERS_LISTS};
  Gate gate;
  Names names{profile.naming};
  Recorder recorder{*loop};
  RouterCounters counters;
  ClientAnswers answers{sessions, recorder, *loop, profile.limits, counters, [] {}};
  PinWatch pins{profile, [](std::int32_t, std::string_view) {}, nullptr};
  std::vector<std::pair<std::uint64_t, bool>> unanswered;
  std::uint32_t ready = 0, again = 0;
  FilteredLists filters{
      {gate, pins, names, profile.limits, counters, *loop,
       [this](std::int32_t, std::string_view text) { lines.emplace_back(text); },
       [this](std::uint64_t number, bool late) { unanswered.emplace_back(number, late); },
       [this](View &) { ++ready; }, [this] { ++again; }}};
  // Ids of parked requests, in the order in which they were handled.
  std::vector<std::string> handled;
  std::function<void(Session &, Incoming &)> handle = [](Session &, Incoming &) {};
  std::vector<Lane *> going;
  Views views{{upstreams, sessions, names, profile, *loop, recorder, answers, filters,
               [this](Session &s, Incoming &request) {
                 handled.emplace_back(request.id());
                 handle(s, request);
               },
               [](View &) {}, [this](Lane &lane) { going.push_back(&lane); }, [] {}, [] {}}};
  std::map<std::string, FakeTools> plugins;

  ~ListWorld() override {
    views.end_all();
    for (const auto &upstream : upstreams.all()) {
      while (!upstream->lanes().empty()) upstream->remove(upstream->lanes().back().get());
    }
  }
  void lane_changed(Lane &lane) override {
    FakeLaneHost::lane_changed(lane);
    views.lane_changed(lane);
  }
  void items_changed(Lane &lane) override {
    FakeLaneHost::items_changed(lane);
    views.items_changed(lane);
  }

  std::unique_ptr<Upstream> made(ServerDef def, const std::string &tools) {
    FakeTools &plugin = plugins[def.name];
    plugin.tools = tools;
    if (tools.empty()) plugin.listing = BH_PENDING;
    auto upstream = std::make_unique<Upstream>(*this, std::move(def));
    upstream->tools = &tools_table;
    upstream->self = &plugin;
    return upstream;
  }
  // Adds a server with these tools (a JSON array). If `tools` is empty, the server remains in the
  // starting state until the test calls lists().
  Upstream &add(const std::string &name, const std::string &tools) {
    upstreams.add(made(server_named(name), tools));
    return *upstreams.all().back();
  }
  void lists(const std::string &server, const std::string &tools) {
    FakeTools &plugin = plugins[server];
    plugin.tools = tools;
    plugin.listing = BH_OK;
    for (const auto &lane : upstreams.find(server)->lanes()) {
      static_cast<ToolsLane &>(*lane).list_changed(ItemKind::tool);
    }
  }
  Session &joined(ClientCaps caps = 0) {
    Session &s = open_session(sessions, client);
    s.initialized = true;
    s.caps = caps;
    views.join(s);
    return s;
  }
  std::string names_of(const Catalogue *catalogue) const {
    return catalogue == nullptr ? "pending"
                                : std::string(catalogue->page(ItemKind::tool, 0, 1000, 0)->items);
  }
};

// A request that owns its text and its scan.
struct Request {
  Request(const Session &session, std::string text)
      : message(std::move(text)), incoming{{session.handle, 7, 0}, message.get(), 1} {}
  Scanned message;
  Incoming incoming;
};

}  // namespace bulkhead
