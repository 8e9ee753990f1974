// Throws the messages that a user of the runtime may see; their texts are in base/messages.def.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace burin::runtime {

/// The one error to which a caller has something to add: where the memory was asked for.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& message, std::int64_t n) : Error(message), bytes(n) {}
  const std::int64_t bytes;
};

/// Throws OutOfMemory.
[[noreturn]] void throw_out_of_memory(std::int64_t bytes);
/// `source` names where the number comes from: an environment variable, an option, a function.
[[noreturn]] void throw_bad_thread_count(std::string_view source, int least, std::string_view found);
/// `kind`: "inputs" or "outputs".
[[noreturn]] void throw_wrong_count(const char* kind, std::size_t expected, std::size_t found);
[[noreturn]] void throw_null_pointer(const char* kind, std::size_t index, std::int64_t bytes);
/// The step's own message with its placeholders {index} and {extent} filled in.
[[noreturn]] void throw_index_error(const std::string& site, std::int64_t index, std::int64_t extent);

}  // namespace burin::runtime
