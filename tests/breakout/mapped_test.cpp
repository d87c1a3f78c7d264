// Tests plugins that are loaded after confinement: builtin plugins must work, and a malicious
// plugin must be confined when its first static constructor runs.
#include <bulkhead/abi/ext/tools.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bulkhead/cpp/basics.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "plugin/instance.hpp"
#include "sandbox/confine.hpp"
#include "sandbox/features.hpp"
#include "world.hpp"

using namespace bulkhead;

namespace {

// Runs `body` in a child process. Returns its error, or an empty string on success.
std::string in_child(const std::function<std::string()> &body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const std::string text = body();
    const bool sent =
        ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  std::string out;
  char piece[4096];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;) {
    out.append(piece, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status == 0 ? out : "ended with status " + std::to_string(status) + ": " + out;
}

Confinement around(const CheckedLibrary &checked) {
  Confinement wish;
  wish.role = "test";
  wish.paths = library_paths();
  wish.paths.push_back({{}, checked.fd(), PathRule::Access::read});
  wish.memory_bytes = 96U << 20;
  wish.descriptors = 256;
  wish.processes = 48;
  wish.file_bytes = 1U << 20;
  if (breakout::is_root()) wish.ids = {{breakout::nobody_uid, breakout::nobody_uid}};
  return wish;
}

Result<std::shared_ptr<Library>> load_confined(const std::string &name, const std::string &folder) {
  LoadOptions options;
  options.dirs = {folder};
  auto checked = Library::check(name, options);
  if (!checked) return std::unexpected(checked.error());
  if (auto enforced = confine(around(*checked)); !enforced) {
    return std::unexpected(enforced.error());
  }
  return Library::load(std::move(*checked), nullptr, options);
}

std::map<bh_call, std::string> answers;
const bh_host_tools host_tools{sizeof(bh_host_tools),
                               0,
                               [](void *, bh_call call, const bh_result *result) -> bh_status {
                                 answers[call] = bh::Buf(result->json).view();
                                 return BH_OK;
                               },
                               [](void *, bh_call, const bh_progress *) {},
                               [](void *, const bh_list_info *) {},
                               [](void *, bh_str) {}};

std::string call(Instance &instance, const std::string &tool, const std::string &arguments) {
  static bh_call next = 1;
  const bh_call id = next++;
  const auto *tools = instance.ext<bh_tools>(BH_EXT_TOOLS);
  bh_call_info info{};
  info.size = sizeof info;
  info.method = bh::str("tools/call");
  info.name = bh::str(tool);
  info.arguments = bh::str(arguments);
  bh_error error = bh::make_error();
  if (tools->call_begin(instance.self(), id, &info, &error) < 0)
    return std::string(bh::text(error));
  return answers[id];
}

// Returns the attempts that succeeded.
std::string run_hostile_plugin(const breakout::Target &target) {
  auto library = load_confined("hostile-tools", HOSTILE_PLUGINS);
  if (!library) return library.error().text;
  auto reactor = Reactor::create().value();
  HostContext context;
  context.reactor = reactor.get();
  context.name = "mapped_test";
  context.log = [](std::int32_t, std::string_view, std::string_view) {};
  context.extra_ext = [](Instance &, std::string_view id) -> const void * {
    return id == BH_EXT_HOST_TOOLS ? &host_tools : nullptr;
  };
  auto instance = Instance::create("hostile", *library, context);
  if (!instance) return instance.error().text;
  const std::string config = R"({"target":")" + breakout::to_text(target) + "\"}";
  if (auto ok = (*instance)->configure(config); !ok) return ok.error().text;
  if (auto ok = (*instance)->start(); !ok) return ok.error().text;
  std::string achieved = call(**instance, "constructor", "{}");
  if (achieved.find("io_uring: Operation not permitted") == std::string::npos) return achieved;
  if (achieved.find("WORKED") == std::string::npos) achieved.clear();
  for (const breakout::Attempt &attempt : breakout::attempts()) {
    const std::string said =
        call(**instance, "attempt", std::string(R"({"name":")") + attempt.name + "\"}");
    if (said.find(": ") == std::string::npos || said.find("WORKED") != std::string::npos) {
      achieved += said + "; ";
    }
  }
  return achieved;
}

bool complete() {
  const Features features = probe_features();
  return features.landlock >= 6 && features.seccomp && features.network_namespaces &&
         features.no_writable_code;
}

}  // namespace

TEST_CASE("every builtin plugin can be loaded and initialized after confinement") {
  const auto found = list_plugins({BUNDLED_PLUGINS});
  REQUIRE_FALSE(found.empty());
  for (const FoundPlugin &plugin : found) {
    INFO(plugin.manifest.id);
    CHECK(in_child([&]() -> std::string {
            const auto library = load_confined(plugin.manifest.id, BUNDLED_PLUGINS);
            return library ? "" : library.error().text;
          }).empty());
  }
}

TEST_CASE("the attempts of a malicious plugin fail, in its constructors and later") {
  if (!complete()) {
    WARN("SKIP mapped_test: this kernel does not support all parts of the confinement");
    return;
  }
  const breakout::World world;
  CHECK(in_child([&] { return run_hostile_plugin(world.target()); }).empty());
  CHECK(world.sibling_lives());
}
