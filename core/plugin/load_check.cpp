// load_check FOLDER PLUGIN [TOOL ARGUMENTS]... loads a plugin as a host does, runs its lifecycle,
// and calls its tools. Fails if a step fails, a call is not completed, or an error is logged.
// load_check FOLDER loads all plugins in the folder. Used by the tests of the SDK package and by
// the test plugins_load.
#include <cstdio>
#include <map>
#include <string>

#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/cpp/basics.hpp"
#include "plugin/instance.hpp"

namespace {

using namespace bulkhead;

struct Answers {
  std::map<bh_call, std::string> texts;
  int progress = 0;
};

const bh_host_tools host_tools{sizeof(bh_host_tools),
                               0,
                               [](void *ctx, bh_call call, const bh_result *result) -> bh_status {
                                 const bh::Buf json(result->json);
                                 static_cast<Answers *>(Instance::of(ctx).user)->texts[call] =
                                     json.view();
                                 return BH_OK;
                               },
                               [](void *ctx, bh_call, const bh_progress *) {
                                 ++static_cast<Answers *>(Instance::of(ctx).user)->progress;
                               },
                               [](void *, const bh_list_info *) {},
                               [](void *, bh_str) {}};

int failed(const std::string &what) {
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  return 1;
}

int load_all(const LoadOptions &options) {
  int bad = 0;
  const auto found = list_plugins(options.dirs);
  for (const FoundPlugin &plugin : found) {
    auto library = Library::load(plugin.manifest.id, nullptr, options);
    if (!library) bad += failed(library.error().text);
  }
  std::printf("%zu plugins\n", found.size());
  return found.empty() ? failed("there is no plugin") : bad;
}

int call(Instance &instance, Reactor &reactor, Answers &answers, bh_call id, const char *tool,
         const char *arguments) {
  const auto *tools = instance.ext<bh_tools>(BH_EXT_TOOLS);
  bh_call_info info{};
  info.size = sizeof info;
  info.flags = BH_CALL_PROGRESS;
  info.method = bh::str("tools/call");
  info.name = bh::str(tool);
  info.arguments = bh::str(arguments);
  bh_error error = bh::make_error();
  const bh_status status = tools->call_begin(instance.self(), id, &info, &error);
  if (status < 0) return failed(std::string(tool) + ": " + std::string(bh::text(error)));
  for (int i = 0; status == BH_PENDING && !answers.texts.contains(id) && i < 1000; ++i) {
    reactor.poll(100);
  }
  if (!answers.texts.contains(id)) return failed(std::string(tool) + " gave no answer");
  std::printf("%s %s -> %s\n", tool, arguments, answers.texts[id].c_str());
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) return failed("usage: load_check FOLDER [PLUGIN [TOOL ARGUMENTS]...]");
  LoadOptions options;
  options.dirs = {argv[1]};
  if (argc == 2) return load_all(options);
  auto reactor = Reactor::create().value();
  std::string misbehaviour;
  HostContext context;
  context.reactor = reactor.get();
  context.name = "load_check";
  context.log = [&](std::int32_t level, std::string_view component, std::string_view text) {
    std::printf("%s: %.*s\n", std::string(component).c_str(), static_cast<int>(text.size()),
                text.data());
    if (level >= BH_LOG_ERROR) misbehaviour = text;
  };
  context.extra_ext = [](Instance &, std::string_view id) -> const void * {
    return id == BH_EXT_HOST_TOOLS ? &host_tools : nullptr;
  };
  auto library = Library::load(argv[2], nullptr, options);
  if (!library) return failed(library.error().text);
  auto instance = Instance::create("checked", *library, context);
  if (!instance) return failed(instance.error().text);
  Answers answers;
  (*instance)->user = &answers;
  if (auto ok = (*instance)->configure("{}"); !ok) return failed(ok.error().text);
  if (auto ok = (*instance)->start(); !ok) return failed(ok.error().text);
  for (int i = 3; i + 1 < argc; i += 2) {
    const auto id = static_cast<bh_call>(i);
    if (call(**instance, *reactor, answers, id, argv[i], argv[i + 1]) != 0) return 1;
  }
  (*instance)->stop();
  return misbehaviour.empty() ? 0 : failed(misbehaviour);
}
