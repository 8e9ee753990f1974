// Linked into every test executable: appends the ids of the messages that its tests provoked to the file named by
// BURIN_THROWN_MESSAGES, so that the runner can tell which rows of ir/messages.def no test reaches.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "ir/message.h"

namespace {

constexpr burin::ir::Msg ids[] = {
#define MESSAGE(id, text) burin::ir::Msg::id,
#include "ir/messages.def"
#undef MESSAGE
};

class ThrownMessages : public testing::Environment {
 public:
  void TearDown() override {
    const char* path = std::getenv("BURIN_THROWN_MESSAGES");
    if (path == nullptr) return;
    std::string thrown;
    for (burin::ir::Msg id : ids) {
      if (message_was_thrown(id)) thrown.append(message_name(id)).append("\n");
    }
    std::ofstream(path, std::ios::app) << thrown;
  }
};

const testing::Environment* registered = testing::AddGlobalTestEnvironment(new ThrownMessages);

}  // namespace
