#include "base/message.h"

#include <array>
#include <atomic>

namespace burin {
namespace {

constexpr std::string_view texts[] = {
#define MESSAGE(id, text) text,
#include "base/messages.def"
#undef MESSAGE
};
constexpr std::string_view names[] = {
#define MESSAGE(id, text) #id,
#include "base/messages.def"
#undef MESSAGE
};
std::array<std::atomic<bool>, std::size(texts)> thrown{};

}  // namespace

std::string_view message_text(Msg id) { return texts[static_cast<std::size_t>(id)]; }
std::string_view message_name(Msg id) { return names[static_cast<std::size_t>(id)]; }
bool message_was_thrown(Msg id) { return thrown[static_cast<std::size_t>(id)].load(std::memory_order_relaxed); }

void throw_message(Msg id, std::string text, std::string_view where) {
  thrown[static_cast<std::size_t>(id)].store(true, std::memory_order_relaxed);
  if (!where.empty()) text.append(" (").append(where).append(")");
  throw Error(text);
}

}  // namespace burin
