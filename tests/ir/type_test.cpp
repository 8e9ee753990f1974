#include "ir/type.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/errors.h"

namespace burin {
namespace {

using test::error_of;

TEST(DType, SizesAndFamiliesCoverEveryDtypeOnce) {
  std::size_t bytes = 0;
  for (int i = 0; i < num_dtypes; ++i) {
    auto dtype = static_cast<DType>(i);
    bytes += size_of(dtype);
    EXPECT_EQ(is_float(dtype) + is_signed_int(dtype) + is_unsigned_int(dtype) + (dtype == bool_), 1) << dtype;
    EXPECT_EQ(is_half(dtype), is_float(dtype) && size_of(dtype) == 2) << dtype;
  }
  EXPECT_EQ(bytes, 8u + 4 + 2 + 2 + 15 + 15 + 1);
}

TEST(Shape, PrintsAndCounts) {
  EXPECT_EQ(to_string(Shape{2, 16, 64}), "[2,16,64]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ((Shape{3, 0, 5}.size()), 0);
  EXPECT_EQ((Shape{3, 5}.size()), 15);
  EXPECT_NE((Shape{3, 5}), (Shape{3, 5, 1}));
  EXPECT_NE((Shape{0}), (Shape{}));
}

TEST(Shape, AnEmptyShapeHasNoElementsHoweverLongItsOtherAxes) {
  std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ((Shape{huge, huge, 0}.size()), 0);
  EXPECT_EQ((Shape{0, huge, huge}.size()), 0);
}

TEST(Shape, CountsAxesFromBothEnds) {
  Shape shape{2, 16, 64};
  EXPECT_EQ(shape[-1], 64);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_EQ(shape.back(), 64);
  shape[-2] = 5;
  EXPECT_EQ(shape[1], 5);
  for (int axis : {3, -4, 8, 1 << 30})
    EXPECT_EQ(error_of([&] { (void)shape[axis]; }).find("shape: axis " + std::to_string(axis) + " is out of range for [2,5,64] (type_test.cpp:"),
              0u);
  EXPECT_EQ(error_of([] { (void)Shape{}.back(); }).find("shape: axis -1 is out of range for [] (type_test.cpp:"), 0u);
}

TEST(Shape, RefusesWhatIsNoShape) {
  EXPECT_EQ(error_of([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }).find("shape: more than 8 axes (type_test.cpp:"), 0u);
  EXPECT_EQ(error_of([] { Shape(std::vector<std::int64_t>{3, -1}); }).find("shape: axis 1 has the negative extent -1 (type_test.cpp:"), 0u);
  std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(error_of([=] { (void)Shape{huge, huge}.size(); }),
            "shape: [1099511627776,1099511627776] has more elements than 64 bits can count");
}

TEST(Type, PrintsAsInTheIr) {
  EXPECT_EQ(to_string(ir::Type{f32, {2, 16, 64}}), "f32[2,16,64]");
  EXPECT_EQ(to_string(ir::Type{bool_, {}}), "bool[]");
  EXPECT_EQ((ir::Type{bf16, {3, 5}}.bytes()), 30);
}

}  // namespace
}  // namespace burin
