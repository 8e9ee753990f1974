// Which files compiled code outlives the process in. Inside the frontend only.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/file_cache.h"

namespace burin::detail {

/// The folder that Runtime::cache_directory names; without it BURIN_CACHE_DIR, else the folder `burin` in the user's
/// cache directory (XDG_CACHE_HOME, else .cache in HOME). "" means none. Null then, and when the folder cannot be used,
/// which the log is told once per folder.
std::shared_ptr<FileCache> code_files();
void set_code_directory(std::optional<std::string> directory);

}  // namespace burin::detail
