// What a corp layer says about the layers above it: directives, servers and rules that stay.
// docs/corp.md describes it. Internal to core/profile.
#pragma once

#include <string>
#include <vector>

#include "corporation/corp_path.hpp"
#include "corporation/editable.hpp"
#include "profile/diagnostics.hpp"
#include "profile/profile.hpp"
#include "profile/rule_sections.hpp"

namespace bulkhead::profiles {

inline constexpr std::size_t kCorpDirectives = 1000;

class CorpLayer {
 public:
  explicit CorpLayer(Diagnostics &diagnostics) : diagnostics_(diagnostics) {}

  // Takes the directives out of the corp layer, a canonical one.
  void read_directives(Node &layer, std::uint16_t index);

  // Before take(): a section of the corp layer that may not be edited is locked.
  void lock_section(const LockedSection &fixed);

  // After take(): true if the path, or something above it, stays as it is.
  bool holds(const CorpPath &path) const;

  // Of a layer above it, before that is merged over `below`: what is locked or forbidden is an
  // error at its place. In a layer that is no person's own file (`tolerant`), and for servers that
  // the corp layer merely has as well, it is left out with a note instead.
  void screen(Node &layer, const Node &below, bool tolerant);

  // After all layers are merged: what is added, replaced, removed and forbidden.
  void apply(Node &root, std::vector<RuleLayer> *rules);

  // What each directive did, and the holds, for those who look at the profile.
  void report(Profile *profile, std::vector<ProfileHold> *holds) const;

 private:
  enum class Operation : std::uint8_t { add, remove, replace, lock, forbid };
  static const Word kOperations[5];
  static std::string_view name_of(Operation operation);
  struct Directive {
    Operation operation = Operation::lock;
    CorpPath path;
    Node value;  // of add and replace
    std::string reason;
    Place place;
    std::string trace;  // what came of it
  };
  struct Hold {
    CorpPath path;
    bool forbids = false;
    bool tolerated = false;    // what touches it gives way instead of being wrong
    bool implied = false;  // another spelling of what a directive names
    std::string reason;
    Place place;
    bool keeps_values = false;  // another value for what it holds gives way; more is wrong
  };

  void read(const Node &node, const std::string &at);
  void reject_own_removals(std::size_t number, Node &layer);
  bool conflicts_with_earlier(const Directive &directive, const std::string &at);
  void hold(const Directive &directive);
  void hold_servers(const Node &layer);
  void hold_policies(const Node &layer);
  std::string where(const Place &place) const;
  void reject(const Hold &held, std::vector<Touch> &touches, bool tolerant);
  void keep_values(const Hold &held, Node &layer, const Node &below);
  bool locked_by_directive(const CorpPath &path) const;
  void reject_names(const Hold &held, Node &layer, const Node &below, bool tolerant);
  void apply_one(Directive &directive, Node &root, std::vector<RuleLayer> *rules);
  void add(Directive &directive, Node &root, std::vector<RuleLayer> *rules);
  void replace(Directive &directive, Node &root, std::vector<RuleLayer> *rules);
  void remove(Directive &directive, Node &root, std::vector<RuleLayer> *rules);
  bool set_value(const Directive &directive, Node &root);
  RuleLayer &own_rules(std::vector<RuleLayer> *rules) const;

  Diagnostics &diagnostics_;
  std::uint16_t index_ = 0;
  std::vector<Directive> directives_;
  std::vector<Hold> section_locks_, holds_;
};

}  // namespace bulkhead::profiles
