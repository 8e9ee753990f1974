#include "runtime/errors.h"

#include "base/counted.h"
#include "base/message_ids.h"
#include "runtime/limits.h"

namespace burin::runtime {
namespace {

void replace_all(std::string& text, std::string_view placeholder, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos; at += value.size())
    text.replace(at, placeholder.size(), value);
}

}  // namespace

void throw_out_of_memory(std::int64_t bytes) {
  try {
    fail(Msg::out_of_memory, bytes, static_cast<double>(bytes) / 1048576.0);
  } catch (const Error& error) {
    throw OutOfMemory(error.what(), bytes);
  }
}

void throw_bad_thread_count(std::string_view source, int least, std::string_view found) {
  fail(Msg::thread_count, source, least, max_threads, found);
}

void throw_wrong_count(const char* kind, std::size_t expected, std::size_t found) {
  fail(Msg::run_pointer_count, expected, kind, counted(found, "pointer"));
}

void throw_null_pointer(const char* kind, std::size_t index, std::int64_t bytes) {
  fail(Msg::run_null_pointer, index, kind, counted(bytes, "byte"));
}

void throw_index_error(const std::string& site, std::int64_t index, std::int64_t extent) {
  std::string message = site;
  replace_all(message, "{index}", std::to_string(index));
  replace_all(message, "{extent}", std::to_string(extent));
  throw Error(message);
}

}  // namespace burin::runtime
