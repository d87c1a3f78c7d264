#include "route/capability_sets.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;

namespace {

constexpr std::uint64_t idle_ns = 1'000;
constexpr ClientCaps forms = cap::elicitation | cap::elicitation_form;

struct Sets {
  CapabilitySets sets{CapabilitySets::for_requests};
  ClientCaps replaced = 0;
  std::shared_ptr<const void> use;  // of the last admitted request

  ClientCaps admit(ClientCaps caps, std::uint64_t now_ns) {
    use = nullptr;
    auto admitted = sets.admit(caps, now_ns, idle_ns);
    replaced = admitted.replaced;
    use = std::move(admitted.use);
    return admitted.caps;
  }
};

}  // namespace

TEST_CASE("capability sets: four sets are admitted, and others get the largest known subset") {
  Sets sets;
  for (const ClientCaps caps : {forms, ClientCaps{cap::sampling}, forms | cap::sampling,
                                ClientCaps{cap::elicitation | cap::elicitation_url}}) {
    CHECK(sets.admit(caps, 1) == caps);
    CHECK(sets.admit(caps | cap::roots, 1) == (caps | cap::roots));
  }
  CHECK(sets.admit(forms | cap::sampling | cap::sampling_tools, 2) == (forms | cap::sampling));
  CHECK(sets.admit(cap::sampling | cap::sampling_context | cap::roots, 2) ==
        (cap::sampling | cap::roots));
  CHECK(sets.admit(cap::elicitation, 2) == forms);  // elicitation without modes means forms
  CHECK(sets.admit(0, 2) == 0);
  CHECK(sets.admit(cap::roots, 2) == cap::roots);
  CHECK(sets.admit(forms, 2) == forms);
  CHECK(sets.replaced == 0);
}

TEST_CASE("capability sets: elicitation without modes is no subset of elicitation by URL") {
  Sets sets;
  for (const ClientCaps caps :
       {ClientCaps{cap::elicitation}, ClientCaps{cap::sampling},
        cap::sampling | cap::sampling_tools, cap::sampling | cap::sampling_context}) {
    CHECK(sets.admit(caps, 1) == caps);
  }
  CHECK(sets.admit(cap::elicitation | cap::elicitation_url, 2) == 0);
  CHECK(sets.admit(forms, 2) == cap::elicitation);
  CHECK(sets.admit(forms | cap::elicitation_url, 2) == cap::elicitation);
}

TEST_CASE("capability sets: the least recently used set is replaced, unless a request uses it") {
  Sets sets;
  const ClientCaps first = cap::sampling, second = cap::elicitation, third = forms,
                   fourth = forms | cap::sampling;
  for (const ClientCaps caps : {first, second, third, fourth}) sets.admit(caps, 1);
  sets.admit(second, 2);
  sets.admit(first, 3);
  sets.admit(third, 1);
  // Two requests use the third set.
  std::shared_ptr<const void> used = sets.use, also_used = sets.use;
  const ClientCaps another = cap::elicitation | cap::elicitation_url;
  CHECK(sets.admit(another, idle_ns) == 0);  // no set has been idle long enough
  CHECK(sets.admit(another, 1 + idle_ns) == another);
  CHECK(sets.replaced == fourth);
  CHECK(sets.admit(fourth, 2 + idle_ns) == fourth);
  CHECK(sets.replaced == second);
  CHECK(sets.admit(second, 3 + idle_ns) == second);
  CHECK(sets.replaced == first);
  used = nullptr;
  CHECK(sets.admit(first, 3 + idle_ns) == 0);  // the only idle set is in use
  also_used = nullptr;
  CHECK(sets.admit(first, 3 + idle_ns) == first);
  CHECK(sets.replaced == third);
}

TEST_CASE(
    "capability sets: others get their sets after a client that cycles through sets has paused") {
  Sets sets;
  // The client uses as many sets as it can. Another client sends a request after each pause.
  std::uint64_t now = 1;
  std::size_t served = 0;
  for (int turn = 0; turn < 100; ++turn) {
    for (ClientCaps caps = 1; caps < 256; ++caps) sets.admit(caps & cap::shareable, now);
    now += idle_ns;
    served += sets.admit(forms, now) == forms ? 1 : 0;
  }
  CHECK(served == 100);
}
