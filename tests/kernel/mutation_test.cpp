// What the verifier lets pass can be run: kernels with a number changed are refused, or stay inside their buffers and
// give the same bytes in any order of tasks.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/kernel/interpreter.h"
#include "tests/kernel/kernels.h"

namespace burin::ir {
namespace {

using Memory = std::vector<std::vector<std::byte>>;

Memory memory_for(const Kernel& kernel) {
  Memory memory;
  for (std::size_t i = 0; i < kernel.num_params(); ++i) {
    const Buffer& b = kernel.buffers[i];
    memory.emplace_back(static_cast<std::size_t>(b.span()) * size_of(b.dtype));
    // Small integers of either sign in the lowest byte; as floats these are tiny numbers.
    for (std::size_t at = 0; at < memory.back().size(); at += size_of(b.dtype))
      memory.back()[at] = static_cast<std::byte>(b.dtype == DType::bool_ ? at % 2 : (at * 37 + i) % 11);
  }
  return memory;
}

Memory run(const Kernel& kernel, TaskOrder order) {
  Memory memory = memory_for(kernel);
  std::vector<std::byte*> params;
  for (auto& bytes : memory) params.push_back(bytes.data());
  KernelRunner(kernel).run(params, order);  // aborts when an access leaves its buffer
  return memory;
}

TEST(KernelMutation, KernelsThatVerifyRunSafelyInAnyOrder) {
  int refused = 0, ran = 0;
  for (std::string_view text : kernels::all)
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] < '0' || text[at] > '9') continue;
      for (char digit = '0'; digit <= '9'; ++digit) {
        if (digit == text[at]) continue;
        std::string changed(text);
        changed[at] = digit;
        try {
          const Kernel kernel = parse_kernel(changed);
          if (!verify(kernel).empty()) {
            ++refused;
            continue;
          }
          const Memory forward = run(kernel, TaskOrder::forward);
          EXPECT_EQ(forward, run(kernel, TaskOrder::reverse)) << changed;
          EXPECT_EQ(forward, run(kernel, TaskOrder::shuffled)) << changed;
          ++ran;
        } catch (const Error&) {
          ++refused;
        }
      }
    }
  EXPECT_GT(ran, 200);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace burin::ir
