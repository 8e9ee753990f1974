// Linked into every test executable: appends the ids of the messages that its tests provoked to the file named by
// BURIN_THROWN_MESSAGES, so that the runner can tell which rows of base/messages.def no test reaches.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/message_ids.h"

namespace {

constexpr burin::Msg ids[] = {
#define MESSAGE(id, text) burin::Msg::id,
#include "base/messages.def"
#undef MESSAGE
};

class ThrownMessages : public testing::Environment {
 public:
  void TearDown() override {
    const char* path = std::getenv("BURIN_THROWN_MESSAGES");
    if (path == nullptr) return;
    std::string thrown;
    for (burin::Msg id : ids) {
      if (message_was_thrown(id)) thrown.append(message_name(id)).append("\n");
    }
    std::ofstream(path, std::ios::app) << thrown;
  }
};

const testing::Environment* registered = testing::AddGlobalTestEnvironment(new ThrownMessages);

}  // namespace
