#include "frontend/perf.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "base/message_ids.h"
#include "frontend/compile.h"
#include "frontend/io/file.h"
#include "ir/kernel/printer.h"

namespace burin::detail {
namespace {

// Where other programs that make code put theirs, too.
std::string folder() {
  std::string base = ".";
  for (const char* variable : {"HOME", "JITDUMPDIR"})
    if (const char* path = std::getenv(variable); path != nullptr && *path != '\0') base = path;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(base, error);
  return fmt::format("{}/.debug/jit/burin-{}", error ? base : absolute.string(), ::getpid());
}

std::string save(const ir::Kernel& kernel) {
  static std::atomic<int> number{0};
  const std::string where = folder();
  std::error_code error;
  std::filesystem::create_directories(where, error);
  if (error) fail(Msg::perf_unwritable, fmt::format("{}: {}", where, error.message()));
  const std::string path = fmt::format("{}/{:04}_{}.txt", where, number++, ir::identifier(kernel.name, "kernel"));
  const std::string text = print(kernel);
  try {
    io::replace_file(path, {std::as_bytes(std::span(text))});
  } catch (const Error& refused) {
    fail(Msg::perf_unwritable, refused.what());
  }
  return path;
}

}  // namespace

std::function<std::string(const ir::Kernel&)> kernel_texts() {
  if (!environment_flag("BURIN_PERF")) return {};
  return save;
}

}  // namespace burin::detail
