// The state of one program being drawn, shared by the files that know how to draw each family.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/random.h"

namespace burin::fuzz {

using namespace ir;

class Generator {
 public:
  /// `depth` counts the bodies around this one.
  Generator(Random& random, const Recipe& recipe, int depth);

  /// Draws ops until `num_ops` were appended (or enough draws failed), then chooses results.
  Function draw(int num_ops, std::string name);

  Random& random;
  Recipe recipe;
  int depth;
  Builder b;
  std::vector<ValueId> pool;  // values that may be operands

  ValueId add_arg(const Type& type);
  /// A value of the pool, recent ones more often; there is always one.
  ValueId any();
  /// A value with that many axes at least; a new argument if there is none.
  ValueId any_of_rank(std::size_t rank);
  /// A value of that type: one of the pool, one made from the pool, a constant or a new argument.
  ValueId of_type(Type type);  // by value: types of values move as the builder grows
  ValueId integer(Shape shape);

  DType dtype();
  DType integer_dtype();
  std::int64_t extent();
  Shape shape(std::size_t max_rank = 4);
  /// Different axes of 0..rank-1, `n` of them, in any order.
  Ints axes(std::size_t rank, std::size_t n);
  Ints some_axes(std::size_t rank);
  Ints sorted(Ints axes) const;

  /// Appends the op and puts its results into the pool. False, and nothing appended, when the type rules refuse it or
  /// a result would be too large.
  bool append(Op op, const std::vector<ValueId>& operands, std::vector<AttrValue> attributes);
  template <Op op>
  bool append_as(const std::vector<ValueId>& operands, const attrs_of<op>& a) {
    std::vector<AttrValue> attributes;
    visit_attrs(a, [&](std::string_view, const auto& field) { attributes.emplace_back(field); });
    return append(op, operands, std::move(attributes));
  }

 private:
  bool draw_op();
  bool draw_op(Op op);
  bool repeat_an_op();
  std::vector<ValueId> choose_results();
  std::optional<ValueId> made_from_pool(Type type);

  std::vector<std::int64_t> extents_;
  std::vector<DType> dtypes_;
  int num_args_ = 0;
};

/// A constant of that type: a splat, or a few elements; zeros of both signs, infinities and NaN among them.
Literal draw_constant(Random& random, const Type& type);

// How to draw one op; false when it did not work out. families.cpp: any op whose operands and attributes its family
// settles, and blindly any other.
bool draw_any(Generator& g, Op op);
// movement.cpp, contract.cpp, index.cpp, structure.cpp: the ops whose attributes must fit their operands.
bool draw_movement(Generator& g, Op op, bool* known);
bool draw_dot(Generator& g);
bool draw_index(Generator& g, Op op, bool* known);
bool draw_structure(Generator& g, Op op, bool* known);
/// Several ops that belong together: a softmax, a norm, a layer with an epilogue, so that fusion meets its anchors.
bool draw_idiom(Generator& g);

}  // namespace burin::fuzz
