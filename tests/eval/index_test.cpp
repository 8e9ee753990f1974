#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/values.h"

namespace burin::ir {
namespace {

using test::apply;
using test::error_of;
using test::text;
using test::values;

const std::vector<DType> numbers{f64, f32, bf16, f16, i8, i16, i32, i64, u8, u16, u32, u64};
const std::vector<DType> index_dtypes{i8, i16, i32, i64, u8, u16, u32, u64};

TEST(EvalIndex, IotaInEveryDtype) {
  for (DType dtype : numbers) {
    EXPECT_EQ(text(apply<Op::iota>({}, {.dtype = dtype, .shape = {2, 3}, .axis = 1})), "0 1 2 0 1 2") << dtype;
    EXPECT_EQ(text(apply<Op::iota>({}, {.dtype = dtype, .shape = {2, 3}, .axis = 0})), "0 0 0 1 1 1") << dtype;
    EXPECT_EQ(apply<Op::iota>({}, {.dtype = dtype, .shape = {0}, .axis = 0}).type(), (Type{dtype, {0}}));
  }
  const Literal wide = apply<Op::iota>({}, {.dtype = bf16, .shape = {260}, .axis = 0});
  EXPECT_EQ(wide.at(257), 256);
  EXPECT_EQ(wide.at(259), 260);
  EXPECT_EQ(apply<Op::iota>({}, {.dtype = u8, .shape = {300}, .axis = 0}).int_at(257), 1);
}

TEST(EvalIndex, ConstantIsItsValue) {
  const Literal value = values(bf16, "1 2 nan");
  EXPECT_EQ(apply<Op::constant>({}, {.value = value}), value);
}

// x[ids] along axis 0.
Literal take(const Literal& x, const Literal& ids, IndexMode mode, std::string_view where = "") {
  Ints offset, sizes{1};
  for (std::size_t axis = 1; axis < x.shape().rank(); ++axis) {
    offset.push_back(static_cast<Int>(ids.shape().rank() + axis - 1));
    sizes.push_back(x.shape()[axis]);
  }
  return apply<Op::gather>({x, ids},
                           {.offset_dims = offset,
                            .collapsed_slice_dims = {0},
                            .start_index_map = {0},
                            .index_vector_dim = static_cast<Int>(ids.shape().rank()),
                            .slice_sizes = sizes,
                            .mode = mode},
                           where);
}

TEST(EvalGather, RowsInEveryDtype) {
  for (DType dtype : numbers)
    for (DType index : index_dtypes)
      EXPECT_EQ(text(take(values(dtype, {3, 2}, "1 2 3 4 5 6"), values(index, "2 0 2"), IndexMode::error)),
                "5 6 1 2 5 6");
  EXPECT_EQ(text(take(values(bool_, "1 0 0"), values(i32, "0 1 0"), IndexMode::clip)), "1 0 1");
}

TEST(EvalGather, ClipsOrReports) {
  const Literal x = values(f32, "1 2 3");
  EXPECT_EQ(text(take(x, values(i32, "-1 5 1"), IndexMode::clip)), "1 3 2");
  EXPECT_EQ(text(take(x, values(u64, "0xffffffffffffffff 0x8000000000000000"), IndexMode::clip)), "3 3");
  EXPECT_EQ(text(take(x, values(i64, "-9223372036854775808 9223372036854775807"), IndexMode::clip)), "1 3");
  EXPECT_EQ(error_of([&] { take(x, values(i32, "0 5"), IndexMode::error, "model.cpp:42, in take"); }),
            "gather: index 5 is out of range for axis 0 of f32[3]: expected 0 to 2 (model.cpp:42, in take)");
  EXPECT_EQ(error_of([&] { take(x, values(i8, "-1"), IndexMode::error); }),
            "gather: index -1 is out of range for axis 0 of f32[3]: expected 0 to 2");
  const attrs::gather pairs{
      .offset_dims = {1}, .start_index_map = {0}, .index_vector_dim = 1, .slice_sizes = {2}, .mode = IndexMode::error};
  EXPECT_EQ(error_of([&] {
              apply<Op::gather>({x, values(i32, "2")}, pairs);
            }),
            "gather: index 2 is out of range for axis 0 of f32[3]: expected 0 to 1");
}

TEST(EvalGather, AlongAnAxisByBatching) {
  // take_along_axis(x, ids, 1)
  const Literal x = values(i32, {2, 3}, "1 2 3 4 5 6"), ids = values(i32, {2, 2}, "2 0 1 1");
  const attrs::gather along{.collapsed_slice_dims = {1},
                            .operand_batching_dims = {0},
                            .indices_batching_dims = {0},
                            .start_index_map = {1},
                            .index_vector_dim = 2,
                            .slice_sizes = {1, 1}};
  EXPECT_EQ(text(apply<Op::gather>({x, ids}, along)), "3 1 5 5");
}

TEST(EvalGather, SizesZeroAndOne) {
  EXPECT_EQ(take(values(f32, "1 2"), Literal(Type{i32, {0}}), IndexMode::error).type(), (Type{f32, {0}}));
  EXPECT_EQ(take(Literal(Type{f32, {0, 3}}), Literal(Type{i32, {0}}), IndexMode::error).type(), (Type{f32, {0, 3}}));
  EXPECT_EQ(text(take(values(f32, "7"), Literal::scalar(i32, 0), IndexMode::error)), "7");
}

// x.at[ids].combine(updates) along axis 0.
Literal scatter(const Literal& x, const Literal& ids, const Literal& updates, Combine combine,
                IndexMode mode = IndexMode::clip, std::string_view where = "") {
  Ints window;
  for (std::size_t axis = 1; axis < x.shape().rank(); ++axis) window.push_back(static_cast<Int>(axis));
  return apply<Op::scatter>({x, ids, updates},
                            {.update_window_dims = window,
                             .inserted_window_dims = {0},
                             .scatter_dims_to_operand_dims = {0},
                             .index_vector_dim = 1,
                             .combine = combine,
                             .mode = mode},
                            where);
}

TEST(EvalScatter, EveryCombinationInEveryDtype) {
  for (DType dtype : numbers) {
    const Literal x = values(dtype, {3, 2}, "1 2 3 4 5 6"), ids = values(i32, "2 0 2"),
                  updates = values(dtype, {3, 2}, "1 3 2 2 7 0");
    EXPECT_EQ(text(scatter(x, ids, updates, Combine::add)), "3 4 3 4 13 9") << dtype;
    EXPECT_EQ(text(scatter(x, ids, updates, Combine::mul)), "2 4 3 4 35 0") << dtype;
    EXPECT_EQ(text(scatter(x, ids, updates, Combine::min)), "1 2 3 4 1 0") << dtype;
    EXPECT_EQ(text(scatter(x, ids, updates, Combine::max)), "2 2 3 4 7 6") << dtype;
    EXPECT_EQ(text(scatter(x, ids, updates, Combine::set)), "2 2 3 4 7 0") << dtype;
  }
  EXPECT_EQ(text(scatter(values(bool_, "0 1 0"), values(i32, "0 1"), values(bool_, "1 0"), Combine::add)), "1 1 0");
  EXPECT_EQ(text(scatter(values(bool_, "0 1 0"), values(i32, "0 1"), values(bool_, "1 0"), Combine::set)), "1 0 0");
}

TEST(EvalScatter, OutOfBoundsIsDroppedOrReported) {
  const Literal x = values(f32, "1 2 3"), updates = values(f32, "10 20 30");
  EXPECT_EQ(text(scatter(x, values(i32, "-1 1 3"), updates, Combine::add)), "1 22 3");
  EXPECT_EQ(text(scatter(x, values(u64, "0xffffffffffffffff 1 3"), updates, Combine::set)), "1 20 3");
  EXPECT_EQ(error_of([&] { scatter(x, values(i32, "0 1 3"), updates, Combine::add, IndexMode::error, "a.cpp:7"); }),
            "scatter: index 3 is out of range for axis 0 of f32[3]: expected 0 to 2 (a.cpp:7)");
  EXPECT_EQ(error_of([&] { scatter(values(f32, {0}, ""), values(i32, "0 1 3"), updates, Combine::add, IndexMode::error, "a.cpp:7"); }),
            "scatter: index 0 is out of range for axis 0 of f32[0]: expected none, as there is no place (a.cpp:7)");
  // A window partly outside is dropped whole.
  const attrs::scatter windows{.update_window_dims = {1},
                               .scatter_dims_to_operand_dims = {0},
                               .index_vector_dim = 1,
                               .combine = Combine::add,
                               .mode = IndexMode::clip};
  const Literal two = values(f32, {3, 2}, "1 2 10 20 100 200");
  EXPECT_EQ(text(apply<Op::scatter>({values(f32, "0 0 0"), values(i32, "-1 1 2"), two}, windows)), "0 10 20");
  attrs::scatter strict = windows;
  strict.mode = IndexMode::error;
  EXPECT_EQ(error_of([&] {
              apply<Op::scatter>({values(f32, "0 0 0"), values(i32, "0 1 2"), two}, strict);
            }),
            "scatter: index 2 is out of range for axis 0 of f32[3]: expected 0 to 1");
}

TEST(EvalScatter, RepeatedIndicesAddUp) {
  EXPECT_EQ(text(scatter(values(f32, {5, 2}, "0 0 0 0 0 0 0 0 0 0"), values(i32, "3 1 3 3"),
                         values(f32, {4, 2}, "1 1 2 2 3 3 4 4"), Combine::add)),
            "0 0 2 2 0 0 8 8 0 0");
}

TEST(EvalScatter, HalfSumsAreF32RoundedOnce) {
  Literal updates = Literal::splat({1000}, Literal::scalar(bf16, 1));
  updates.expand();
  EXPECT_EQ(text(scatter(values(bf16, "0"), Literal(Type{i32, {1000}}), updates, Combine::add)), "1000");
  EXPECT_EQ(text(scatter(values(f16, "2048"), values(i32, "0 0 0"), values(f16, "1 1 1"), Combine::add)), "2052");
  // f32 adds in row-major order, rounding each time.
  EXPECT_EQ(text(scatter(values(f32, "16777216"), values(i32, "0 0"), values(f32, "1 1"), Combine::add)), "16777216");
}

TEST(EvalScatter, SizesZeroAndOne) {
  const Literal x = values(f32, "1 2");
  EXPECT_EQ(scatter(x, Literal(Type{i32, {0}}), Literal(Type{f32, {0}}), Combine::add, IndexMode::error), x);
  EXPECT_EQ(text(scatter(values(f32, "1"), values(i32, "0"), values(f32, "2"), Combine::add)), "3");
}

TEST(EvalDynamicSlice, ClampsItsStarts) {
  for (DType dtype : numbers) {
    const Literal x = apply<Op::iota>({}, {.dtype = dtype, .shape = {10}, .axis = 0});
    const auto slice = [&](const Literal& start) { return text(apply<Op::dynamic_slice>({x, start}, {.sizes = {4}})); };
    EXPECT_EQ(slice(Literal::scalar_int(i32, 3)), "3 4 5 6");
    EXPECT_EQ(slice(Literal::scalar_int(i32, 9)), "6 7 8 9");
    EXPECT_EQ(slice(Literal::scalar_int(i8, -5)), "0 1 2 3");
    EXPECT_EQ(slice(Literal::scalar_int(u64, -1)), "6 7 8 9");
  }
  const Literal x = apply<Op::iota>({}, {.dtype = u16, .shape = {300}, .axis = 0});
  EXPECT_EQ(text(apply<Op::dynamic_slice>({x, Literal::scalar_int(u8, 200)}, {.sizes = {1}})), "200");
  const Literal square = values(i32, {3, 3}, "0 1 2 3 4 5 6 7 8"), one = Literal::scalar_int(i32, 1);
  EXPECT_EQ(text(apply<Op::dynamic_slice>({square, one, Literal::scalar_int(i64, 7)}, {.sizes = {2, 2}})), "4 5 7 8");
  EXPECT_EQ(apply<Op::dynamic_slice>({square, one, one}, {.sizes = {0, 2}}).type(), (Type{i32, {0, 2}}));
}

TEST(EvalDynamicUpdateSlice, ClampsItsStarts) {
  for (DType dtype : numbers) {
    const Literal x = values(dtype, "1 2 3 4"), u = values(dtype, "8 9");
    EXPECT_EQ(text(apply<Op::dynamic_update_slice>({x, u, Literal::scalar_int(i32, 1)})), "1 8 9 4");
    EXPECT_EQ(text(apply<Op::dynamic_update_slice>({x, u, Literal::scalar_int(i32, 7)})), "1 2 8 9");
    EXPECT_EQ(text(apply<Op::dynamic_update_slice>({x, u, Literal::scalar_int(i64, -7)})), "8 9 3 4");
    EXPECT_EQ(text(x), "1 2 3 4");  // the operand stays as it is
  }
  const Literal square = values(i32, {3, 3}, "0 1 2 3 4 5 6 7 8"), one = Literal::scalar_int(i32, 1);
  EXPECT_EQ(text(apply<Op::dynamic_update_slice>({square, values(i32, {1, 2}, "-1 -2"), one, one})),
            "0 1 2 3 -1 -2 6 7 8");
  EXPECT_EQ(text(apply<Op::dynamic_update_slice>({values(f32, "1"), Literal(Type{f32, {0}}), one})), "1");
}

// Random dimension numbers and out-of-range indices, with JAX's results (clip, and drop for scatter).
class Jax : public testing::Test {
 protected:
  const nlohmann::json cases = nlohmann::json::parse(std::ifstream("tests/data/index_cases.json"))["cases"];
  static Literal tensor(DType dtype, const nlohmann::json& shape, const nlohmann::json& elements) {
    Literal result(Type{dtype, Shape(shape.get<Ints>())});
    for (std::size_t i = 0; i < elements.size(); ++i) result.set_int(static_cast<std::int64_t>(i), elements[i]);
    return result;
  }
};

TEST_F(Jax, GathersTheSame) {
  int count = 0;
  for (const auto& c : cases) {
    if (c["op"] != "gather") continue;
    ++count;
    const Literal flat = apply<Op::iota>({}, {.dtype = i32, .shape = {Shape(c["operand"].get<Ints>()).size()}});
    const Literal result = apply<Op::gather>(
        {flat.reshaped(Shape(c["operand"].get<Ints>())), tensor(i64, c["indices_shape"], c["indices"])},
        {.offset_dims = c["offset_dims"],
         .collapsed_slice_dims = c["collapsed_slice_dims"],
         .operand_batching_dims = c["operand_batching_dims"],
         .indices_batching_dims = c["indices_batching_dims"],
         .start_index_map = c["start_index_map"],
         .index_vector_dim = c["index_vector_dim"],
         .slice_sizes = c["slice_sizes"],
         .mode = IndexMode::clip});
    EXPECT_EQ(result, tensor(i32, c["shape"], c["values"])) << c.dump();
  }
  EXPECT_EQ(count, 40);
}

TEST_F(Jax, ScattersTheSame) {
  int count = 0;
  for (const auto& c : cases) {
    if (c["op"] != "scatter") continue;
    ++count;
    Combine combine = Combine::add;
    while (name(combine) != c["combine"].get<std::string>())
      combine = static_cast<Combine>(static_cast<int>(combine) + 1);
    const Literal result = apply<Op::scatter>(
        {tensor(i32, c["operand"], c["operand_values"]), tensor(i64, c["indices_shape"], c["indices"]),
         tensor(i32, c["updates_shape"], c["updates"])},
        {.update_window_dims = c["update_window_dims"],
         .inserted_window_dims = c["inserted_window_dims"],
         .operand_batching_dims = c["operand_batching_dims"],
         .indices_batching_dims = c["indices_batching_dims"],
         .scatter_dims_to_operand_dims = c["scatter_dims_to_operand_dims"],
         .index_vector_dim = c["index_vector_dim"],
         .combine = combine,
         .mode = IndexMode::clip});
    EXPECT_EQ(result, tensor(i32, c["operand"], c["values"])) << c.dump();
  }
  EXPECT_EQ(count, 40);
}

}  // namespace
}  // namespace burin::ir
