#include "tools/execute/compare.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tools {
namespace {

using namespace burin;
using namespace burin::ir;

// Each of 100 functions calls the next twice.
TEST(Agreement, LooksAtASharedBodyOnce) {
  Builder last("last");
  const ValueId y = last.add_arg({f64, {3}});
  Body body = std::make_shared<const Function>(last.finish({last.sin(y)}));
  for (int i = 0; i < 100; ++i) {
    Builder b("next");
    ValueId x = b.add_arg({f64, {3}});
    for (int twice = 0; twice < 2; ++twice) x = b.call(Op::call, std::span(&x, 1), {body})[0];
    body = std::make_shared<const Function>(b.finish({x}));
  }
  EXPECT_EQ(agreement_of(*body, true).reason, "sin");
}

}  // namespace
}  // namespace tools
