#include "tests/fuzz/generator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace burin::fuzz {
namespace {

constexpr DType all_dtypes[] = {f64, f32, bf16, f16, i8, i16, i32, i64, u8, u16, u32, u64, bool_};

std::int64_t draw_extent(Random& random) {
  static const std::vector<std::int64_t> usual = {2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17},
                                         large = {31, 32, 33, 48, 63, 64, 65, 100, 130};
  const double u = random.uniform();
  if (u < 0.04) return 0;
  if (u < 0.22) return 1;
  return u < 0.8 ? random.pick(usual) : random.pick(large);
}

const std::vector<Op>& ops_of(Family family) {
  static const auto* const table = [] {
    auto* all = new std::vector<std::vector<Op>>(7);
    for (int i = 0; i < num_ops; ++i) {
      // A fusion is what the pass `fuse` makes of the others.
      if (static_cast<Op>(i) != Op::fusion)
        (*all)[static_cast<std::size_t>(family_of(static_cast<Op>(i)))].push_back(static_cast<Op>(i));
    }
    return all;
  }();
  return (*table)[static_cast<std::size_t>(family)];
}

struct Weight {
  Family family;
  double weight;
};
constexpr Weight weights[] = {{Family::elementwise, 38}, {Family::compare, 6},  {Family::reduce, 12},
                              {Family::movement, 22},    {Family::contract, 7}, {Family::index, 9},
                              {Family::structure, 6}};

bool allowed(const Recipe& recipe, Family family) {
  return recipe.families.empty() ||
         std::find(recipe.families.begin(), recipe.families.end(), family) != recipe.families.end();
}

Family draw_family(Random& random, const Recipe& recipe) {
  double sum = 0;
  for (const Weight& w : weights) sum += allowed(recipe, w.family) ? w.weight : 0;
  double at = random.uniform() * sum;
  Family last = Family::elementwise;
  for (const Weight& w : weights) {
    if (!allowed(recipe, w.family)) continue;
    last = w.family;
    if ((at -= w.weight) < 0) break;
  }
  return last;
}

}  // namespace

Literal draw_constant(Random& random, const Type& type) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<double> neutral = {0, 1, -1, 2, 0.5, -0.0, 3};
  static const std::vector<double> special = {inf, -inf, nan, 1e30, -1e-30, 1e-42, 255, -128, 65504};
  const auto element = [&] {
    const double u = random.uniform();
    if (u < 0.7) return random.pick(neutral);
    return u < 0.8 ? random.pick(special) : std::floor(random.uniform() * 64 - 32) / 8;
  };
  const auto store = [&](Literal& literal, std::int64_t i) {
    const double value = element();
    if (is_float(type.dtype))
      literal.set(i, value);
    else
      literal.set_int(
          i, std::abs(value) < 1e6 ? static_cast<std::int64_t>(value) : static_cast<std::int64_t>(random.bits()));
  };
  if (type.rank() == 0 || type.size() > 64 || random.chance(0.7)) {
    Literal one(Type{type.dtype, {}});
    store(one, 0);
    return Literal::splat(type.shape, one);
  }
  Literal dense(type);
  for (std::int64_t i = 0; i < type.size(); ++i) store(dense, i);
  return dense;
}

Generator::Generator(Random& r, const Recipe& p, int d) : random(r), recipe(p), depth(d) {
  // Few extents and dtypes in one program, so that values fit each other.
  const std::int64_t num_extents = random.between(2, 3);
  for (std::int64_t i = 0; i < num_extents; ++i) extents_.push_back(draw_extent(random));
  // A few programs are large enough for kernels of many tasks.
  if (depth == 0 && random.chance(0.04) && recipe.max_elements >= Recipe{}.max_elements) {
    recipe.max_elements *= 12;
    extents_.push_back(random.pick(std::vector<std::int64_t>{257, 400, 700, 1024}));
  }
  dtypes_ = recipe.dtypes;
  if (dtypes_.empty()) {
    dtypes_ = {random.chance(0.6) ? f32
                                  : random.pick(std::vector<DType>(std::begin(all_dtypes), std::end(all_dtypes)))};
    while (random.chance(0.4))
      dtypes_.push_back(random.pick(std::vector<DType>(std::begin(all_dtypes), std::end(all_dtypes))));
  }
}

ValueId Generator::add_arg(const Type& type) {
  const ValueId arg = b.add_arg(type, "a" + std::to_string(num_args_++));
  pool.push_back(arg);
  return arg;
}

DType Generator::dtype() { return random.pick(dtypes_); }

DType Generator::integer_dtype() {
  static const std::vector<DType> all = {i32, i32, i32, i64, u32, i8, u8, i16, u16, u64};
  return random.pick(all);
}

std::int64_t Generator::extent() { return random.chance(0.85) ? random.pick(extents_) : draw_extent(random); }

Shape Generator::shape(std::size_t max_rank) {
  static const std::vector<std::size_t> ranks = {0, 1, 1, 2, 2, 2, 3, 3, 4};
  const std::size_t rank = std::min(max_rank, random.pick(ranks));
  Shape result;
  // Equal extents: what confuses axes shows in values alone.
  const std::int64_t equal = random.chance(0.15) ? random.between(2, 4) : 0;
  for (std::size_t i = 0; i < rank; ++i) {
    std::int64_t n = equal > 0 ? equal : extent();
    if (result.size() * n > recipe.max_elements) n = random.between(1, 2);
    result.push_back(n);
  }
  return result;
}

Ints Generator::axes(std::size_t rank, std::size_t n) {
  Ints all;
  for (std::size_t i = 0; i < rank; ++i) all.push_back(static_cast<std::int64_t>(i));
  random.shuffle(all);
  all.resize(std::min(n, rank));
  return all;
}

Ints Generator::some_axes(std::size_t rank) {
  return axes(rank, static_cast<std::size_t>(
                        random.between(rank > 0 && random.chance(0.95) ? 1 : 0, static_cast<std::int64_t>(rank))));
}

Ints Generator::sorted(Ints values) const {
  std::sort(values.begin(), values.end());
  return values;
}

ValueId Generator::any() {
  if (pool.empty() || (depth == 0 && pool.size() < 6 && random.chance(0.08))) return add_arg({dtype(), shape()});
  const auto size = static_cast<std::int64_t>(pool.size());
  return pool[static_cast<std::size_t>(random.chance(0.6) ? size - 1 - random.below(std::min<std::int64_t>(size, 4))
                                                          : random.below(size))];
}

ValueId Generator::any_of_rank(std::size_t rank) {
  for (int attempt = 0; attempt < 8; ++attempt)
    if (const ValueId x = any(); b.type(x).rank() >= rank) return x;
  Type type{dtype(), shape()};
  while (type.rank() < rank) type.shape.push_back(random.between(1, 3));
  return add_arg(type);
}

// A broadcast, convert or reshape of what is there.
std::optional<ValueId> Generator::made_from_pool(Type type) {
  const ValueId x = any();
  const Type have = b.type(x);
  const auto fits = [&](const Ints& dims) {
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (have.shape[i] != 1 && have.shape[i] != type.shape[static_cast<std::size_t>(dims[i])]) return false;
    return true;
  };
  ValueId y = x;
  if (have.shape != type.shape) {
    if (have.size() == type.size() && random.chance(0.5)) {
      y = b.reshape(x, type.shape);
    } else if (have.rank() <= type.rank()) {
      const Ints dims = sorted(axes(type.rank(), have.rank()));
      if (!fits(dims)) return {};
      y = b.broadcast(x, type.shape, dims);
    } else {
      return {};
    }
  }
  return b.convert(y, type.dtype);
}

ValueId Generator::of_type(Type type) {
  if (random.chance(0.7)) {
    std::vector<ValueId> same;
    for (ValueId v : pool)
      if (b.type(v) == type) same.push_back(v);
    if (!same.empty()) return random.pick(same);
  }
  for (int attempt = 0; attempt < 4; ++attempt)
    if (const std::optional<ValueId> made = made_from_pool(type)) {
      if (std::find(pool.begin(), pool.end(), *made) == pool.end()) pool.push_back(*made);
      return *made;
    }
  const double u = random.uniform();
  if (u < 0.3) return b.constant(draw_constant(random, type));
  if (u < 0.35 && type.rank() > 0 && type.dtype != bool_)
    return b.iota(type.dtype, type.shape, random.below(static_cast<std::int64_t>(type.rank())));
  return add_arg(type);
}

ValueId Generator::integer(Shape shape) {
  for (ValueId v : pool)
    if (is_int(b.type(v).dtype) && b.type(v).shape == shape && random.chance(0.5)) return v;
  return random.chance(0.6) ? add_arg({integer_dtype(), shape}) : of_type({integer_dtype(), shape});
}

bool Generator::append(Op op, const std::vector<ValueId>& operands, std::vector<AttrValue> attributes) {
  std::vector<Type> types;
  for (ValueId operand : operands) types.push_back(b.type(operand));
  try {
    for (const Type& type : infer_types(op, types, attributes))
      if (type.size() > recipe.max_elements) return false;
    const std::size_t before = b.function().num_ops();
    const ValueId first = b.append(op, operands, std::move(attributes));
    for (std::size_t r = 0; r < b.function().num_results(OpId{before}); ++r) pool.push_back(ValueId{first.index + r});
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A second op equal to an earlier one: what eliminate_common is for.
bool Generator::repeat_an_op() {
  const Function& f = b.function();
  if (f.num_ops() == 0) return false;
  const OpId op{static_cast<std::size_t>(random.below(static_cast<std::int64_t>(f.num_ops())))};
  const std::vector<ValueId> operands(f.operands(op).begin(), f.operands(op).end());
  return append(f.kind(op), operands, {f.attributes(op).begin(), f.attributes(op).end()});
}

bool Generator::draw_op(Op op) { return draw_any(*this, op); }

bool Generator::draw_op() {
  if (random.chance(0.04)) return repeat_an_op();
  if (recipe.families.empty() && random.chance(0.05)) return draw_idiom(*this);
  const Family family = draw_family(random, recipe);
  if (family == Family::structure && depth >= 2) return false;
  const Op op = random.pick(ops_of(family));
  if (!draw_op(op)) return false;
  // Often once more, on what it gave: pairs are what rewrites look for.
  if (random.chance(0.15) && !pool.empty()) {
    const std::vector<ValueId> others = std::exchange(pool, {pool.back()});
    draw_op(op);
    pool.insert(pool.begin(), others.begin(), others.end() - 1);
  }
  return true;
}

std::vector<ValueId> Generator::choose_results() {
  const Function& f = b.function();
  std::vector<std::uint32_t> uses(f.num_values(), 0);
  f.for_each_op([&](OpId op) {
    for (ValueId operand : f.operands(op)) ++uses[operand.index];
  });
  std::vector<ValueId> results;
  // What nothing uses is mostly a result; the rest is dead code.
  for (std::size_t i = f.num_values(); i-- > 0;)
    if (uses[i] == 0 && !f.is_arg(ValueId{i}) && results.size() < 4 && random.chance(0.9))
      results.push_back(ValueId{i});
  if (results.empty()) results.push_back(pool.back());
  while (random.chance(0.15) && results.size() < 5) results.push_back(random.pick(pool));
  random.shuffle(results);
  return results;
}

Function Generator::draw(int num_ops, std::string name) {
  if (pool.empty()) {
    const std::int64_t first = random.between(1, 3);
    for (std::int64_t i = 0; i < first; ++i) add_arg({dtype(), shape()});
  }
  for (int failed = 0; static_cast<int>(b.function().num_ops()) < num_ops && failed < 200;) failed += draw_op() ? 0 : 1;
  b.set_name(std::move(name));
  return b.finish(choose_results());
}

}  // namespace burin::fuzz
