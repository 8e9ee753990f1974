// Offsets that do not fit 32 bits, over memory that is reserved but for the most part never touched.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "frontend/compile.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "runtime/executable.h"
#include "tests/support/machine.h"

#if BURIN_WITH_LLVM
namespace burin::conformance {
namespace {

using namespace ir;

class Reserved {
 public:
  explicit Reserved(std::size_t bytes) : bytes_(bytes) {
    data_ = static_cast<std::uint8_t*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  ~Reserved() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  std::uint8_t* data() const { return data_ == MAP_FAILED ? nullptr : data_; }

 private:
  std::size_t bytes_;
  std::uint8_t* data_;
};

void run(const std::string& text, const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  const Function f = parse(text);
  for (const Target& target : test::runnable_targets()) {
    const Program program = passes::build_program(f, target, {});
    const auto executable = detail::make_executable(program, target, 1);
    ASSERT_LT(executable->held(1).bytes(), 1 << 20) << text;  // nothing large is made on the way
    executable->run(inputs, outputs);
  }
}

// microsoft/onnxruntime#28107: the last element of this row lies 2147487999 bytes behind the first of the table.
TEST(Offsets, OfARowBehindTwoGigabytes) {
  const std::int64_t rows = 262144, width = 8960, row = 239674;
  const Reserved table(static_cast<std::size_t>(rows * width));
  if (table.data() == nullptr) GTEST_SKIP() << "no room for 2 GiB of addresses";
  for (std::int64_t i = 0; i < width; ++i) table.data()[row * width + i] = static_cast<std::uint8_t>(i % 251 + 1);
  const std::int32_t id = row;
  std::vector<std::uint8_t> found(static_cast<std::size_t>(width), 0);
  const auto check = [&](const char* what) {
    for (std::int64_t i = 0; i < width; ++i)
      ASSERT_EQ(found[static_cast<std::size_t>(i)], i % 251 + 1) << what << ' ' << i;
    std::fill(found.begin(), found.end(), 0);
  };
  run("func @main(%x: u8[262144,8960], %i: i32[1]) {\n"
      "  %y = gather %x, %i {offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = "
      "1, "
      "slice_sizes = [1, 8960], mode = clip}\n  return %y\n}\n",
      {table.data(), &id}, {found.data()});
  check("gather");
  run("func @main(%x: u8[262144,8960], %i: i32[]) {\n"
      "  %z = constant 0 : i32[]\n  %y = dynamic_slice %x, %i, %z {sizes = [1, 8960]}\n  return %y\n}\n",
      {table.data(), &id}, {found.data()});
  check("dynamic_slice");
  run("func @main(%x: u8[262144,8960], %i: i32[]) {\n"
      "  %y = slice %x {start = [239674, 0], limit = [239675, 8960], stride = [1, 1]}\n  return %y\n}\n",
      {table.data(), &id}, {found.data()});
  check("slice");
}

// jax-ml/jax#2178: the end of 2^32 ones followed by 2, 3, 4.
TEST(Offsets, InAConcatenationOfMoreThan32Bits) {
  const std::uint8_t one = 1, rest[] = {2, 3, 4};
  std::vector<std::uint8_t> found(4, 0);
  run("func @main(%x: u8[], %y: u8[3]) {\n"
      "  %a = broadcast %x {shape = [4294967296]}\n  %b = concatenate %a, %y {axis = 0}\n"
      "  %c = slice %b {start = [4294967295], limit = [4294967299], stride = [1]}\n  return %c\n}\n",
      {&one, rest}, {found.data()});
  EXPECT_EQ(found, (std::vector<std::uint8_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace burin::conformance
#endif
