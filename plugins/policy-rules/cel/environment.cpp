#include "environment.hpp"

namespace bulkhead::cel {
namespace {
constexpr std::uint8_t kMaxTypeDepth = 8;
}

Type::Type(Kind kind, Kind key, const Type &inner)
    : kind_(kind), key_(key), depth_(static_cast<std::uint8_t>(inner.depth_ + 1)) {
  if (inner.is_dyn() || depth_ > kMaxTypeDepth) {
    depth_ = 0;
  } else {
    inner_ = std::make_shared<const Type>(inner);
  }
}

std::string Type::to_string() const {
  if (kind_ == Kind::kList) return "list(" + inner().to_string() + ")";
  if (kind_ == Kind::kMap) {
    return "map(" + std::string(kind_name(key_)) + ", " + inner().to_string() + ")";
  }
  return std::string(kind_name(kind_));
}

bool compatible(const Type &a, const Type &b) {
  if (a.is_dyn() || b.is_dyn()) return true;
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::kMap) && a.key() != b.key() && a.key() != Kind::kDyn && b.key() != Kind::kDyn) {
    return false;
  }
  return (!a.is(Kind::kList) && !a.is(Kind::kMap)) || compatible(a.inner(), b.inner());
}

Type join(const Type &a, const Type &b) {
  if (a.kind() != b.kind()) return Kind::kDyn;
  if (a.is(Kind::kList)) return Type::list(join(a.inner(), b.inner()));
  if (!a.is(Kind::kMap)) return a;
  return Type::map(a.key() == b.key() ? a.key() : Kind::kDyn, join(a.inner(), b.inner()));
}

std::optional<std::uint32_t> Environment::find(std::string_view name) const {
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].name == name) return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

}  // namespace bulkhead::cel
