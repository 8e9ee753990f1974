// The one way to throw what a user is shown. The ids are in message_ids.h, which only files that throw include: a new row
// of messages.def then compiles few files anew.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace burin {

/// A row of messages.def.
enum class Msg : std::uint16_t;

/// The format string of a message.
std::string_view message_text(Msg id);
/// The id as spelled in messages.def.
std::string_view message_name(Msg id);

/// Throws Error with `where` appended as " (where)" when it is not empty; records that the id was provoked.
[[noreturn]] void throw_message(Msg id, std::string text, std::string_view where);

/// True for each id thrown so far in this process: how the suite finds messages without a test.
bool message_was_thrown(Msg id);

/// The message with its places filled in, for what puts more before or behind it and then calls throw_message.
template <class... Args>
std::string format_message(Msg id, const Args&... args) {
  return fmt::vformat(message_text(id), fmt::make_format_args(args...));
}

template <class... Args>
[[noreturn]] void fail_at(std::string_view where, Msg id, const Args&... args) {
  throw_message(id, format_message(id, args...), where);
}
template <class... Args>
[[noreturn]] void fail(Msg id, const Args&... args) {
  fail_at("", id, args...);
}

}  // namespace burin
