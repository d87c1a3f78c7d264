// Detects an assignment operator of RapidJSON's GenericStringRef that writes const members. clang
// rejects the header, and g++ rejects code that uses the operator. An operator that is deleted or
// only declared is not a defect.
#include <rapidjson/document.h>

using Ref = rapidjson::GenericStringRef<char>;

template <typename T>
concept Assignable = requires(T &to, const T &from) { to = from; };

template <typename T>
void assign(T &to, const T &from) {
  if constexpr (Assignable<T>) to = from;
}

template void assign<Ref>(Ref &, const Ref &);
