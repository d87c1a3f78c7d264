// Implements the corporation's layer, which constrains higher layers. The layer contains
// directives, as well as servers and rules that no other layer can change (docs/corp.md). Internal
// to the profile libraries.
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

  // Extracts the directives from the canonical corp layer, and records the holds that they impose.
  void read_directives(Node &layer, std::uint16_t index);

  // Locks a section that [editable] in the corp layer sets to false. Must be called before
  // read_directives().
  void lock_section(const LockedSection &fixed);

  // Returns true if there is a hold on the path or one of its parents. Must be called after
  // read_directives().
  bool holds(const CorpPath &path) const;

  // Checks a higher layer before it is merged over `below`. A locked or forbidden value is normally
  // reported as an error at its location. However, the value is dropped with a note if `tolerant`
  // is set (see LayerStack::is_tolerant()), if it has the name of a server or tools plugin of the
  // corp layer, or if it changes an existing policy or service (see Hold::keeps_values).
  void screen(Node &layer, const Node &below, bool tolerant);

  // Applies the directives that add, replace or remove values. Must be called after all layers have
  // been merged.
  void apply(Node &root, std::vector<RuleLayer> *rules);

  // Reports the holds and the effect of each directive, for `profile show`.
  void report(Profile *profile, std::vector<ProfileHold> *holds) const;

 private:
  enum class Operation : std::uint8_t { add, remove, replace, lock, forbid };
  static const Word kOperations[5];
  static std::string_view name_of(Operation operation);
  struct Directive {
    Operation operation = Operation::lock;
    CorpPath path;
    Node value;  // for add and replace
    std::string reason;
    Place place;
    std::string trace;  // the effect of the directive, as text
  };
  struct Hold {
    CorpPath path;
    bool forbids = false;
    bool tolerated = false;  // a conflicting value is dropped with a note instead of being an error
    bool implied = false;    // on a path that is equivalent to the directive's path
    std::string reason;
    Place place;
    bool keeps_values = false;  // changed values are dropped; added values are errors
  };

  void read(const Node &node, const std::string &at);
  void reject_own_removals(std::size_t number, Node &layer);
  bool conflicts_with_earlier(const Directive &directive, const std::string &at);
  void hold(const Directive &directive);
  void hold_servers(const Node &layer);
  void hold_policies(const Node &layer);
  void hold_trust(const Node &layer);
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
