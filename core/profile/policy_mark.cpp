#include "profile/policy_mark.hpp"

#include <sodium.h>

#include <algorithm>
#include <map>
#include <new>
#include <string_view>
#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "profile/blake3.hpp"
#include "profile/parse.hpp"
#include "profile/rule_sections.hpp"
#include "profile/secrets.hpp"

namespace bulkhead {
namespace {

using namespace profiles;

constexpr std::size_t kDigestDigits = 32;

// Returns true if a name or a string in the node suggests a credential.
bool has_credential(const Node &node) {
  if (node.kind == Kind::string && credential_value(node.text)) return true;
  return std::any_of(node.members.begin(), node.members.end(),
                     [](const Member &member) {
                       return credential_name(member.name) || has_credential(member.value);
                     }) ||
         std::any_of(node.items.begin(), node.items.end(), has_credential);
}

// Returns true if a string in the node contains an unexpanded reference.
bool has_reference(const Node &node) {
  if (node.kind == Kind::string && node.text.find("${") != std::string::npos) return true;
  return std::any_of(node.members.begin(), node.members.end(),
                     [](const Member &member) { return has_reference(member.value); }) ||
         std::any_of(node.items.begin(), node.items.end(), has_reference);
}

// Appends the node in a canonical form. The members of objects are sorted by name, so that their
// order in the file does not matter. kProfileDepth limits the recursion.
void append_canonical(std::string &out, const Node &node) {
  if (node.kind == Kind::table) {
    std::vector<const Member *> members;
    for (const Member &member : node.members) members.push_back(&member);
    std::sort(members.begin(), members.end(),
              [](const Member *a, const Member *b) { return a->name < b->name; });
    out += '{';
    for (const Member *member : members) {
      append_json_string(out, member->name);
      append_canonical(out, member->value);
    }
    out += '}';
  } else if (node.kind == Kind::array) {
    out += '[';
    for (const Node &item : node.items) {
      append_canonical(out, item);
      out += ',';
    }
    out += ']';
  } else {
    append_json(out, node);
    out += ';';
  }
}

std::string canonical(const Node &node) {
  std::string out;
  append_canonical(out, node);
  return out;
}

// The configuration of one policy: its rules and settings by path, and the plugin's own keys as
// text. It may contain credentials.
struct Contents {
  std::map<std::string, std::string> rules, settings;
  std::string own;
  bool credentials = false, references = false;  // whether there may be any
};

class Reader {
 public:
  explicit Reader(Contents *out) : out_(out) {}

  void read(const Node &config) {
    Node own(Kind::table, {});
    for (const Member &member : config.members) {
      if (member.name == kRulesMember) {
        for (const Node &layer : member.value.items) read_layer(layer);
      } else {
        own.members.push_back(member);
      }
    }
    append_canonical(out_->own, own);
    out_->credentials = !own.members.empty() || has_credential(config);
    out_->references = has_reference(own);
  }

 private:
  void read_layer(const Node &layer) {
    const Node *name = layer.find("layer"), *sections = layer.find("sections");
    if (name == nullptr || sections == nullptr) return;
    layer_ = name->text;
    for (const Member &section : sections->members) {
      for (const Member &group : section.value.members) read_group(section.name, group);
    }
  }

  // Reads [security.rules.mcp.NAME], [security.servers.NAME], [corp.rules.ID], [profiles.rules.ID]
  // and [default.ID].
  void read_group(const std::string &section, const Member &group) {
    const std::string path = join(section, group.name, std::string::npos);
    const bool table = group.value.kind == Kind::table;
    if (section == "default" && table) return add(&out_->rules, path, group.value);
    if (!table || (group.name != "rules" && group.name != "servers")) {
      return add(&out_->settings, path, group.value);
    }
    for (const Member &member : group.value.members) {
      const std::string at = join(path, member.name, std::string::npos);
      if (section != "security" || group.name == "servers") {
        add(&out_->rules, at, member.value);
      } else {
        for (const Member &rule : member.value.members) {
          add(&out_->rules, join(at, rule.name, std::string::npos), rule.value);
        }
      }
    }
  }

  void add(std::map<std::string, std::string> *to, const std::string &path, const Node &value) {
    (*to)[path] += layer_ + ' ' + canonical(value) + '\n';
  }

  Contents *out_;
  std::string layer_;
};

Contents contents_of(const PluginUse &use) {
  Contents out;
  std::vector<ProfileLayer> layers(1);
  layers[0].text = use.config_json;
  ParseOptions options;
  // The limit is higher than for a layer because each rule key occurs twice: with its value and
  // with its line number.
  options.max_values = 4 * kProfileValues;
  Diagnostics diagnostics(layers);
  Node config;
  if (parse_json(layers[0], 0, options, &config, diagnostics)) {
    Reader(&out).read(config);
  } else {
    out.own = use.config_json;
    out.credentials = true;
  }
  return out;
}

// Returns a text that contains the plugin and the conditions under which it runs.
std::string terms_of(const PluginUse &use) {
  std::string out;
  for (const std::string &text : {use.id, use.plugin, use.sha256, use.compartment}) {
    append_json_string(out, text);
  }
  for (const std::string &grant : use.grants) append_json_string(out, grant);
  return out + (use.required ? "1" : "0");
}

void append_entries(std::string &out, const std::map<std::string, std::string> &entries) {
  for (const auto &[path, value] : entries) {
    append_json_string(out, path);
    append_json_string(out, value);
  }
  out += '\n';
}

// Returns the digest of text that contains credentials. The digest is written to records, and a
// password may be short, so the computation is made expensive (several milliseconds and 8 MiB of
// memory): this slows down an attacker who guesses passwords. The salt is constant, because
// processes compare their digests.
std::string slow_digest(const std::string &text) {
  static_assert(crypto_pwhash_SALTBYTES == 16);
  constexpr unsigned long long passes = 2;
  constexpr std::size_t memory = 8u << 20;
  constexpr unsigned char salt[17] = "bulkhead policy1";
  const std::string whole = blake3_hex(text);
  std::string bytes(kDigestDigits / 2, '\0');
  auto *to = reinterpret_cast<unsigned char *>(bytes.data());
  if (sodium_init() < 0 || crypto_pwhash(to, bytes.size(), whole.data(), whole.size(), salt, passes,
                                         memory, crypto_pwhash_ALG_ARGON2ID13) != 0) {
    throw std::bad_alloc();  // in practice, the only cause
  }
  return bh::hex(bytes);
}

PolicyMark mark_of(const std::vector<PluginUse> &policies) {
  PolicyMark mark;
  mark.generation = 1;
  std::string all;
  bool credentials = false;
  for (const PluginUse &use : policies) {
    const Contents contents = contents_of(use);
    all += terms_of(use) + contents.own + '\n';
    append_entries(all, contents.rules);
    append_entries(all, contents.settings);
    credentials = credentials || contents.credentials;
    // The rules are not added up, because the policies all receive the same rules (or none, if they
    // have rules = false).
    mark.rules = std::max(mark.rules, static_cast<std::uint32_t>(contents.rules.size()));
  }
  mark.digest = credentials ? slow_digest(all) : blake3_hex(all).substr(0, kDigestDigits);
  return mark;
}

const PluginUse *find_use(const std::vector<PluginUse> &uses, const std::string &id) {
  const auto at =
      std::find_if(uses.begin(), uses.end(), [&](const PluginUse &use) { return use.id == id; });
  return at == uses.end() ? nullptr : &*at;
}

std::string count_text(std::size_t n) {
  return std::to_string(n) + (n == 1 ? " rule" : " rules");
}

struct Counts {
  std::size_t added = 0, changed = 0, removed = 0;
};

Counts compare(const std::map<std::string, std::string> &was,
               const std::map<std::string, std::string> &is) {
  Counts out;
  for (const auto &[path, value] : is) {
    const auto old = was.find(path);
    if (old == was.end()) {
      ++out.added;
    } else if (old->second != value) {
      ++out.changed;
    }
  }
  for (const auto &[path, value] : was) out.removed += is.count(path) == 0 ? 1 : 0;
  return out;
}

void add_line(std::vector<std::string> *lines, std::string line) {
  if (std::find(lines->begin(), lines->end(), line) == lines->end()) {
    lines->push_back(std::move(line));
  }
}

void compare_policy(const PluginUse &was, const PluginUse &is, std::vector<std::string> *lines) {
  const Contents old = contents_of(was), now = contents_of(is);
  const Counts rules = compare(old.rules, now.rules);
  if (rules.added > 0) add_line(lines, count_text(rules.added) + " added");
  if (rules.changed > 0) add_line(lines, count_text(rules.changed) + " changed");
  if (rules.removed > 0) add_line(lines, count_text(rules.removed) + " removed");
  if (old.settings != now.settings) add_line(lines, "settings of the rules changed");
  if (terms_of(was) != terms_of(is)) {
    add_line(lines, "policies." + is.id + ": plugin changed");
  } else if (old.own != now.own) {
    add_line(lines, "policies." + is.id + ": configuration changed");
  }
}

}  // namespace

PolicyMark first_policy_mark(const std::vector<PluginUse> &policies) {
  return mark_of(policies);
}

bool has_unexpanded_reference(const std::vector<PluginUse> &policies) {
  return std::any_of(policies.begin(), policies.end(),
                     [](const PluginUse &use) { return contents_of(use).references; });
}

PolicyMark next_policy_mark(const PolicyMark &mark, const std::vector<PluginUse> &was,
                            const std::vector<PluginUse> &is) {
  PolicyMark next = mark_of(is);
  if (next.digest == mark.digest) return mark;
  next.generation = mark.generation + 1;
  for (const PluginUse &use : is) {
    const PluginUse *old = find_use(was, use.id);
    if (old == nullptr) {
      next.changes.push_back("policies." + use.id + ": added");
    } else {
      compare_policy(*old, use, &next.changes);
    }
  }
  for (const PluginUse &use : was) {
    if (find_use(is, use.id) == nullptr) next.changes.push_back("policies." + use.id + ": removed");
  }
  if (next.changes.empty()) next.changes.emplace_back("the order of the policies changed");
  return next;
}

std::string describe_changes(const PolicyMark &mark) {
  std::string out;
  bool counted = mark.rules > 0;  // a line about rules begins with their number
  for (const std::string &line : mark.changes) {
    counted = counted || bh::is_digit(line.front());
    out += (out.empty() ? "" : ", ") + line;
  }
  if (!out.empty()) out += ", in force";
  // A policy that does not use the profile's rules has other rules.
  if (!out.empty() && counted) out += " (now " + count_text(mark.rules) + ")";
  return out;
}

}  // namespace bulkhead
