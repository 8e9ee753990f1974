#include "frontend/code_files.h"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "frontend/compile.h"

namespace burin::detail {
namespace {

struct State {
  std::mutex mutex;
  std::optional<std::string> chosen;  // by set_runtime
  std::string opened_directory;
  std::shared_ptr<FileCache> opened;
  std::set<std::string> told;  // reasons, each once
};

// Never destroyed, made at the first use: functions are compiled before main, and by threads that outlive it.
State& state() {
  static auto* const all = new State;
  return *all;
}

// An error stands in *why.
std::string directory(const std::optional<std::string>& chosen, std::string* why) {
  if (chosen) return *chosen;
  if (const char* asked = std::getenv("BURIN_CACHE_DIR")) return asked;
  // The XDG base directory specification: relative paths are to be ignored.
  for (const auto& [variable, below] : {std::pair("XDG_CACHE_HOME", "/burin"), std::pair("HOME", "/.cache/burin")}) {
    const char* base = std::getenv(variable);
    if (base != nullptr && base[0] == '/') return std::string(base) + below;
  }
  *why = "neither BURIN_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder";
  return "";
}

}  // namespace

std::shared_ptr<FileCache> code_files() {
  std::string why;
  std::shared_ptr<FileCache> result;
  {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    const std::string wanted = directory(s.chosen, &why);
    if (wanted != s.opened_directory) {
      result = s.opened = wanted.empty() ? nullptr : FileCache::open(wanted, &why);
      s.opened_directory = s.opened != nullptr ? wanted : "";
    } else if (s.opened != nullptr && s.opened->is_usable(&why)) {
      result = s.opened;
    }
    if (why.empty() || !s.told.insert(why).second) return result;
  }
  log_line(fmt::format("burin: compiled code is not kept for later runs: {}", why));
  return result;
}

void set_code_directory(std::optional<std::string> directory) {
  const std::lock_guard lock(state().mutex);
  state().chosen = std::move(directory);
}

}  // namespace burin::detail
