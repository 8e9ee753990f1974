// The table of user-facing messages and the one way to throw them.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace burin::ir {

enum class Msg {
#define MESSAGE(id, text) id,
#include "ir/messages.def"
#undef MESSAGE
};

/// The format string of a message.
std::string_view message_text(Msg id);
/// The id as spelled in messages.def.
std::string_view message_name(Msg id);

/// Throws Error with `where` appended as " (where)" when it is not empty; records that the id was provoked.
[[noreturn]] void throw_message(Msg id, std::string text, std::string_view where);

/// True for each id thrown so far in this process: how the suite finds messages without a test.
bool message_was_thrown(Msg id);

template <class... Args>
[[noreturn]] void fail_at(std::string_view where, Msg id, const Args&... args) {
  throw_message(id, fmt::vformat(message_text(id), fmt::make_format_args(args...)), where);
}
template <class... Args>
[[noreturn]] void fail(Msg id, const Args&... args) {
  fail_at("", id, args...);
}

}  // namespace burin::ir
