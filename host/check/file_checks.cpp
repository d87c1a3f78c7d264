#include "check/file_checks.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "check/elf_image.hpp"
#include "plugin/plugin_file.hpp"

namespace bulkhead::check {
namespace {

constexpr std::array<std::string_view, 22> process_functions{
    "signal",  "sigaction", "bsd_signal", "sysv_signal", "__sysv_signal", "sigset",
    "setenv",  "unsetenv",  "putenv",     "clearenv",    "chdir",         "fchdir",
    "chroot",  "umask",     "setuid",     "setgid",      "setresuid",     "setresgid",
    "on_exit", "atexit",    "exit",       "daemon"};

// A library may have one entry for each major version of the ABI.
bool is_entry(std::string_view symbol) {
  constexpr std::string_view prefix = "bh_plugin_entry_v";
  return symbol.starts_with(prefix) && symbol.size() > prefix.size() &&
         symbol.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

// A file, its folder or its manifest that a host would not open.
Rule rule_of_open_error(const Error &error, bool is_manifest) {
  if (error.code == BH_E_DENIED) return Rule::trusted_files;
  return is_manifest ? Rule::manifest : Rule::complete_library;
}

std::optional<OwnedFd> open_library(const std::filesystem::path &path, Report *report,
                                    struct stat *status) {
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  auto folder_fd = open_trusted_folder(folder);
  auto file = folder_fd
                  ? open_trusted_file(folder_fd->get(), folder, path.filename().string(), status)
                  : std::unexpected(folder_fd.error());
  if (!file) {
    report->violated(rule_of_open_error(file.error(), false), file.error().text);
    return std::nullopt;
  }
  report->checked.insert(Rule::trusted_files);
  const auto size = static_cast<std::uint64_t>(status->st_size);
  if (auto ok = check_elf(file->get(), size); !ok) {
    report->violated(Rule::complete_library, "the file " + ok.error().text);
    return std::nullopt;
  }
  report->checked.insert(Rule::complete_library);
  return std::move(*file);
}

// Returns whether the library has an entry.
bool check_symbols(const ElfImage &image, Report *report) {
  report->checked.insert(
      {Rule::only_entry_exported, Rule::no_unique_symbols, Rule::no_process_functions});
  bool has_entry = false;
  for (const auto &symbol : image.symbols) {
    if (!symbol.defined) {
      if (std::find(process_functions.begin(), process_functions.end(), symbol.name) !=
          process_functions.end()) {
        report->violated(Rule::no_process_functions, "it calls " + symbol.name + "()");
      }
      continue;
    }
    if (symbol.unique) report->violated(Rule::no_unique_symbols, symbol.name + " is unique");
    if (symbol.name == BH_PLUGIN_ENTRY_SYMBOL) {
      has_entry = true;
    } else if (!symbol.unique && !is_entry(symbol.name)) {
      report->violated(Rule::only_entry_exported, "it exports " + symbol.name);
    }
  }
  if (!has_entry) {
    report->violated(Rule::only_entry_exported, "it does not export " BH_PLUGIN_ENTRY_SYMBOL);
  }
  return has_entry;
}

void check_segments(const ElfImage &image, Report *report) {
  report->checked.insert({Rule::no_static_tls, Rule::safe_segments, Rule::no_origin_path});
  if (image.static_tls) {
    report->violated(Rule::no_static_tls, "the flag DF_STATIC_TLS is set");
  }
  if (image.executable_stack) report->violated(Rule::safe_segments, "its stack is executable");
  if (image.writable_code) {
    report->violated(Rule::safe_segments, "a segment is writable and executable");
  }
  if (image.text_relocations) {
    report->violated(Rule::safe_segments, "its code has relocations (DT_TEXTREL)");
  }
  for (const std::string &path : image.library_paths) {
    if (path.starts_with('/')) continue;
    report->violated(Rule::no_origin_path, "libraries are searched in \"" + path + "\"");
  }
}

std::optional<Manifest> check_manifest(const std::filesystem::path &path, Report *report) {
  std::filesystem::path file = path;
  file.replace_extension(".plugin.toml");
  auto manifest = read_manifest(file.string());
  if (!manifest) {
    report->violated(rule_of_open_error(manifest.error(), true), manifest.error().text);
    return std::nullopt;
  }
  report->checked.insert(Rule::manifest);
  const std::string stem = path.stem().string();
  if (manifest->id != stem) {
    report->violated(Rule::manifest,
                     "id is \"" + manifest->id + "\", but the file is " + stem + ".so");
    return std::nullopt;
  }
  if (auto ok = check_abi(manifest->abi_major, manifest->abi_minor_needed); !ok) {
    report->violated(Rule::manifest, "the plugin " + ok.error().text);
    return std::nullopt;
  }
  return std::move(*manifest);
}

}  // namespace

std::optional<CheckedLibrary> check_files(const std::string &path, Report *report) {
  const std::filesystem::path where(path);
  if (where.extension() != ".so") {
    report->violated(Rule::complete_library, "its name does not end with .so");
    return std::nullopt;
  }
  auto manifest = check_manifest(where, report);
  if (manifest) {
    report->id = manifest->id;
    report->version = manifest->version;
    report->provides = manifest->provides;
  }
  CheckedLibrary library;
  auto file = open_library(where, report, &library.status);
  if (!file) return std::nullopt;
  auto image = read_elf(file->get());
  if (!image) {
    report->violated(Rule::complete_library, image.error().text);
    return std::nullopt;
  }
  const bool has_entry = check_symbols(*image, report);
  check_segments(*image, report);
  // A compartment cannot map a library with unsafe segments, and neither can a trial.
  if (!manifest || !has_entry || report->violations.contains(Rule::safe_segments)) {
    return std::nullopt;
  }
  library.manifest = std::move(*manifest);
  library.path = path;
  library.file = std::move(*file);
  return library;
}

}  // namespace bulkhead::check
