#include "records/sqlite_on_demand.hpp"

#include <dlfcn.h>
#include <sqlite3.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace bulkhead::program {
namespace {

constexpr char library_file[] = "libsqlite3.so.0";  // all versions of SQLite 3 have this file name

struct Loaded {
  void *library = ::dlopen(library_file, RTLD_NOW | RTLD_LOCAL);  // never unloaded
  std::string problem;

  Loaded() {
    if (library != nullptr) return;
    const char *why = ::dlerror();
    problem = std::string(library_file) +
              " cannot be loaded: " + (why == nullptr ? "unknown" : why) +
              "; install SQLite 3 (libsqlite3-0) to read the session database";
  }
};

const Loaded &loaded() {
  static const Loaded library;
  return library;
}

[[noreturn]] void give_up(const std::string &why) {
  std::fprintf(stderr, "bulkhead: %s\n", why.c_str());
  std::abort();
}

void *find(const char *name) {
  const Loaded &from = loaded();
  if (from.library == nullptr) give_up(from.problem);
  void *found = ::dlsym(from.library, name);
  if (found == nullptr) give_up(std::string(library_file) + " has no " + name);
  return found;
}

// Returns a function from the library. The function is looked up only once.
template <auto Declared>
auto function(const char *name) {
  static const auto found = reinterpret_cast<decltype(Declared)>(find(name));
  return found;
}

}  // namespace

Result<void> load_sqlite() {
  const Loaded &library = loaded();
  if (library.library == nullptr) return fail(BH_E_NOT_FOUND, library.problem);
  return {};
}

}  // namespace bulkhead::program

// Defines a function from sqlite3.h that forwards its calls to the library. If a function that the
// program calls is not defined here, linking fails.
#define PASS_ON(result, name, parameters, ...)                     \
  result name parameters {                                         \
    return bulkhead::program::function<&name>(#name)(__VA_ARGS__); \
  }

extern "C" {

using Authorizer = int (*)(void *, int, const char *, const char *, const char *, const char *);

PASS_ON(int, sqlite3_bind_blob, (sqlite3_stmt * s, int at, const void *p, int n, void (*d)(void *)),
        s, at, p, n, d)
PASS_ON(int, sqlite3_bind_int64, (sqlite3_stmt * s, int at, sqlite3_int64 v), s, at, v)
PASS_ON(int, sqlite3_bind_null, (sqlite3_stmt * s, int at), s, at)
PASS_ON(int, sqlite3_bind_text64,
        (sqlite3_stmt * s, int at, const char *p, sqlite3_uint64 n, void (*d)(void *),
         unsigned char encoding),
        s, at, p, n, d, encoding)
PASS_ON(int, sqlite3_busy_timeout, (sqlite3 * db, int ms), db, ms)
PASS_ON(int, sqlite3_close_v2, (sqlite3 * db), db)
PASS_ON(const void *, sqlite3_column_blob, (sqlite3_stmt * s, int i), s, i)
PASS_ON(int, sqlite3_column_bytes, (sqlite3_stmt * s, int i), s, i)
PASS_ON(int, sqlite3_column_count, (sqlite3_stmt * s), s)
PASS_ON(double, sqlite3_column_double, (sqlite3_stmt * s, int i), s, i)
PASS_ON(sqlite3_int64, sqlite3_column_int64, (sqlite3_stmt * s, int i), s, i)
PASS_ON(const char *, sqlite3_column_name, (sqlite3_stmt * s, int i), s, i)
PASS_ON(const unsigned char *, sqlite3_column_text, (sqlite3_stmt * s, int i), s, i)
PASS_ON(int, sqlite3_column_type, (sqlite3_stmt * s, int i), s, i)
PASS_ON(sqlite3 *, sqlite3_db_handle, (sqlite3_stmt * s), s)
PASS_ON(const char *, sqlite3_errmsg, (sqlite3 * db), db)
PASS_ON(int, sqlite3_exec,
        (sqlite3 * db, const char *sql, int (*row)(void *, int, char **, char **), void *arg,
         char **error),
        db, sql, row, arg, error)
PASS_ON(int, sqlite3_extended_errcode, (sqlite3 * db), db)
PASS_ON(int, sqlite3_extended_result_codes, (sqlite3 * db, int on), db, on)
PASS_ON(int, sqlite3_finalize, (sqlite3_stmt * s), s)
PASS_ON(sqlite3_int64, sqlite3_hard_heap_limit64, (sqlite3_int64 n), n)
PASS_ON(int, sqlite3_limit, (sqlite3 * db, int id, int value), db, id, value)
PASS_ON(int, sqlite3_open_v2, (const char *path, sqlite3 **db, int flags, const char *vfs), path,
        db, flags, vfs)
PASS_ON(int, sqlite3_prepare_v3,
        (sqlite3 * db, const char *sql, int n, unsigned flags, sqlite3_stmt **s, const char **rest),
        db, sql, n, flags, s, rest)
PASS_ON(void, sqlite3_progress_handler, (sqlite3 * db, int steps, int (*look)(void *), void *arg),
        db, steps, look, arg)
PASS_ON(int, sqlite3_reset, (sqlite3_stmt * s), s)
PASS_ON(int, sqlite3_set_authorizer, (sqlite3 * db, Authorizer authorizer, void *arg), db,
        authorizer, arg)
PASS_ON(int, sqlite3_step, (sqlite3_stmt * s), s)
PASS_ON(int, sqlite3_stmt_readonly, (sqlite3_stmt * s), s)

// This function is variadic, but all options that the program uses take these two arguments.
int sqlite3_db_config(sqlite3 *db, int option, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, option);
  const int value = __builtin_va_arg(list, int);
  int *is = __builtin_va_arg(list, int *);
  __builtin_va_end(list);
  return bulkhead::program::function<&sqlite3_db_config>("sqlite3_db_config")(db, option, value,
                                                                              is);
}

}  // extern "C"
