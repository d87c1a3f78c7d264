// RapidJSON's GenericStringRef has an assignment operator that writes const members: clang refuses
// the header, g++ what uses the operator. Deleted, or declared without a body, it does no harm.
#include <rapidjson/document.h>

using Ref = rapidjson::GenericStringRef<char>;

template <typename T>
concept Assignable = requires(T &to, const T &from) { to = from; };

template <typename T>
void assign(T &to, const T &from) {
  if constexpr (Assignable<T>) to = from;
}

template void assign<Ref>(Ref &, const Ref &);
