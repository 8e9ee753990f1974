// The ids of messages.def, for files that throw.
#pragma once
#include "base/message.h"

namespace burin {

enum class Msg : std::uint16_t {
#define MESSAGE(id, text) id,
#include "base/messages.def"
#undef MESSAGE
};

}  // namespace burin
