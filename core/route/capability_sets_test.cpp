#include "route/capability_sets.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;

namespace {

constexpr std::uint64_t idle_ns = 1'000;
constexpr ClientCaps forms = cap::elicitation | cap::elicitation_form;

}  // namespace

TEST_CASE("capability sets: four sets are admitted, and others get the largest known subset") {
  CapabilitySets sets;
  for (const ClientCaps caps : {forms, ClientCaps{cap::sampling}, forms | cap::sampling,
                                ClientCaps{cap::elicitation | cap::elicitation_url}}) {
    CHECK(sets.admit(caps, 1, idle_ns) == caps);
    CHECK(sets.admit(caps | cap::roots, 1, idle_ns) == (caps | cap::roots));
  }
  CHECK(sets.admit(forms | cap::sampling | cap::sampling_tools, 2, idle_ns) ==
        (forms | cap::sampling));
  CHECK(sets.admit(cap::sampling | cap::sampling_context | cap::roots, 2, idle_ns) ==
        (cap::sampling | cap::roots));
  CHECK(sets.admit(cap::elicitation, 2, idle_ns) == 0);
  CHECK(sets.admit(0, 2, idle_ns) == 0);
  CHECK(sets.admit(cap::roots, 2, idle_ns) == cap::roots);
  CHECK(sets.admit(forms, 2, idle_ns) == forms);
}

TEST_CASE("capability sets: a client that cycles its sets cannot keep them from others for long") {
  CapabilitySets sets;
  for (ClientCaps caps = 1; caps < 256; ++caps) sets.admit(caps, 1, idle_ns);
  CHECK(sets.admit(forms, 2, idle_ns) != forms);
  CHECK(sets.admit(forms, 1 + idle_ns, idle_ns) == forms);
  CHECK(sets.admit(forms, 2 + 2 * idle_ns, idle_ns) == forms);
}
