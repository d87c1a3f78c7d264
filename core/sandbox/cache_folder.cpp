#include "sandbox/cache_folder.hpp"

#include <sodium/crypto_hash_sha256.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "bulkhead/cpp/text.hpp"
#include "sandbox/paths.hpp"
#include "sandbox/start_folder.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t key_bytes = 8;

}  // namespace

std::string cache_key(std::string_view command, const std::vector<std::string> &args) {
  std::string text(command);
  for (std::size_t i = 0; i < arguments_of_program(command, args); ++i) {
    text.append(1, '\0').append(args[i]);
  }
  unsigned char digest[crypto_hash_sha256_BYTES];
  ::crypto_hash_sha256(digest, reinterpret_cast<const unsigned char *>(text.data()), text.size());
  return bh::hex({reinterpret_cast<const char *>(digest), key_bytes});
}

std::string make_cache_folder(const std::string &state_dir, const std::string &server,
                              std::string_view command, const std::vector<std::string> &args) {
  if (state_dir.empty() || server.empty() || server.find('/') != std::string::npos) return {};
  if (server.starts_with('.')) return {};  // ".." would be the state folder
  std::error_code error;
  std::filesystem::create_directories(state_dir, error);
  std::string folder = state_dir;
  for (const std::string &name : {std::string("cache"), server, cache_key(command, args)}) {
    folder += "/" + name;
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return {};
  }
  return real_path(folder);
}

}  // namespace bulkhead
