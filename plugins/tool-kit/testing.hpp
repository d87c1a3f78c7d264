// Runs a tools plugin in a test, on a fake host that stores the results of calls.
#pragma once

#include <rapidjson/document.h>

#include <bulkhead/abi/ext/tools.h>
#include <bulkhead/abi/plugin.h>
#include <bulkhead/cpp/tools.hpp>
#include <bulkhead/testing/fake_host.hpp>

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tool_kit::testing {

class Answer {
 public:
  explicit Answer(const std::string &json) {
    document_.Parse(json.data(), json.size());
    if (document_.HasParseError()) throw std::runtime_error("not JSON: " + json);
  }

  const rapidjson::Document &json() const { return document_; }
  bool is_error() const { return document_.HasMember("isError") && document_["isError"].IsTrue(); }
  // Returns the text of content[i], or an empty string if it is missing.
  std::string text(unsigned i = 0) const {
    const auto &content = document_["content"];
    if (content.Size() <= i || !content[i].HasMember("text")) return {};
    return {content[i]["text"].GetString(), content[i]["text"].GetStringLength()};
  }
  const rapidjson::Value &structured() const { return document_["structuredContent"]; }

 private:
  rapidjson::Document document_;
};

class ToolsHost {
 public:
  // Creates, configures and starts the plugin. On failure, throws an exception with the plugin's
  // error message.
  ToolsHost(const bh_entry *entry, const char *id, std::string_view config) {
    table_.size = sizeof table_;
    table_.complete = [](void *ctx, bh_call call, const bh_result *result) -> bh_status {
      const bh::Buf json(result->json);
      auto &self = *static_cast<ToolsHost *>(bh::testing::FakeHost::self(ctx).user);
      const bool first = self.results_.emplace(call, std::string(json.view())).second;
      if (!first) throw std::logic_error("completed twice");
      return BH_OK;
    };
    table_.progress = [](void *ctx, bh_call, const bh_progress *report) {
      auto &self = *static_cast<ToolsHost *>(bh::testing::FakeHost::self(ctx).user);
      self.progress.push_back(report->progress);
    };
    table_.list_changed = [](void *, const bh_list_info *) {};
    table_.resource_updated = [](void *ctx, bh_str uri) {
      auto &self = *static_cast<ToolsHost *>(bh::testing::FakeHost::self(ctx).user);
      self.updates.emplace_back(bh::view(uri));
    };
    host.add_ext(BH_EXT_HOST_TOOLS, &table_);
    host.user = this;
    bh_error error = bh::make_error();
    if (entry->create(id, host.host(), &plugin_, &error) != BH_OK) fail(error);
    if (plugin_->configure(plugin_->self, bh::str(config), &error) != BH_OK ||
        plugin_->start(plugin_->self, &error) != BH_OK) {
      plugin_->destroy(plugin_->self);
      plugin_ = nullptr;
      fail(error);
    }
    tools_ = static_cast<const bh_tools *>(plugin_->get_ext(plugin_->self, BH_EXT_TOOLS));
  }
  ~ToolsHost() {
    if (plugin_ == nullptr) return;
    stop();
    plugin_->destroy(plugin_->self);
  }
  ToolsHost(const ToolsHost &) = delete;
  ToolsHost &operator=(const ToolsHost &) = delete;

  // Starts a call and returns its number. `arguments` must stay valid until the call completes.
  bh_call begin(std::string_view tool, std::string_view arguments, std::uint32_t flags = 0,
                std::string_view method = "tools/call") {
    bh_call_info info{};
    info.size = sizeof info;
    info.flags = flags;
    info.method = bh::str(method);
    info.name = bh::str(tool);
    info.arguments = bh::str(arguments);
    bh_error error = bh::make_error();
    const bh_call call = ++last_;
    status = tools_->call_begin(plugin_->self, call, &info, &error);
    if (status < 0) error_text = bh::text(error);
    return call;
  }
  bool finished(bh_call call) const { return results_.count(call) != 0; }
  Answer wait(bh_call call) {
    if (!host.run_until([&] { return finished(call); }, 20'000)) {
      throw std::runtime_error("no answer");
    }
    return Answer(results_.at(call));
  }
  Answer call(std::string_view tool, std::string_view arguments) {
    return wait(begin(tool, arguments));
  }
  void cancel(bh_call call) {
    const bh_cancel cancel = bh::cancellation(BH_CANCEL_CLIENT);
    tools_->call_cancel(plugin_->self, call, &cancel);
  }
  void stop() {
    if (std::exchange(stopped_, true)) return;
    plugin_->stop(plugin_->self);
    // The host keeps the plugin until all blocking work is finished.
    host.run_until([this] { return host.blocking() == 0; }, 20'000);
    host.forget();
  }
  void drain() { plugin_->drain(plugin_->self, 0); }

  std::uint32_t features() const {
    const bool more = BH_HAS(bh_tools, tools_, features) && tools_->features != nullptr;
    return more ? tools_->features(plugin_->self) : 0;
  }
  // Calls a resource method and returns its result or error object. If the call is rejected,
  // returns an empty string and sets error_text.
  std::string resource(std::string_view method, std::string_view uri) {
    const bh_call call = begin(uri, {}, 0, method);
    if (status < 0) return {};
    if (!host.run_until([&] { return finished(call); }, 20'000)) {
      throw std::runtime_error("no answer");
    }
    return results_.at(call);
  }

  std::string list(std::uint32_t kind = BH_LIST_TOOLS) {
    bh_buf out{};
    bh_error error = bh::make_error();
    const bh_list_info info = bh::list_info(kind);
    status = tools_->list(plugin_->self, &info, &out, &error);
    if (status != BH_OK) return {};
    return std::string(bh::Buf(out).view());
  }

  bh::testing::FakeHost host;
  bh_status status = BH_OK;  // status of the last begin() or list()
  std::string error_text;
  std::vector<std::string> updates;  // URIs of updated resources
  std::vector<double> progress;      // progress values that calls have reported

 private:
  [[noreturn]] static void fail(const bh_error &error) {
    throw std::runtime_error(std::string(bh::text(error)));
  }

  bh_host_tools table_{};
  const bh_plugin *plugin_ = nullptr;
  const bh_tools *tools_ = nullptr;
  bool stopped_ = false;
  bh_call last_ = 0;
  std::map<bh_call, std::string> results_;
};

}  // namespace tool_kit::testing
