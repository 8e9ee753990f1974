#include "tools/execute/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/counted.h"
#include "ir/approximated.h"

namespace tools {
namespace {

using namespace burin;
using namespace burin::ir;

// 16-bit sums accumulate in f32: fewer of their roundings add up.
double allowed_roundings(double unit) { return unit > 0x1p-23 ? 8 : 64; }

bool depends_on_order(Op op) { return op == Op::dot_general || op == Op::reduce_sum || op == Op::reduce_prod; }

struct Traits {
  std::set<std::string> reasons;
  double coarsest = 0;
  std::set<const Function*> seen;  // bodies may be shared
};

void look_at(const Function& f, bool excess_precision, Traits& traits) {
  if (!traits.seen.insert(&f).second) return;
  f.for_each_op([&](OpId op) {
    for (const AttrValue& value : f.attributes(op))
      if (const Body* body = std::get_if<Body>(&value)) look_at(**body, excess_precision, traits);
    for (std::size_t r = 0; r < f.num_results(op); ++r) {
      const DType dtype = f.type(f.result(op, r)).dtype;
      if (!is_float(dtype)) continue;
      traits.coarsest = std::max(traits.coarsest, epsilon(dtype));
      const Family family = family_of(f.kind(op));
      if (is_approximated(f.kind(op)) || depends_on_order(f.kind(op)))
        traits.reasons.insert(std::string(name(f.kind(op))));
      if (excess_precision && is_half(dtype) && family == Family::elementwise)
        traits.reasons.insert("16-bit arithmetic in f32");
    }
  });
}

std::string coordinates(const Shape& shape, std::int64_t i) {
  std::string text;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    text = fmt::format("{}{}{}", i % shape[axis], text.empty() ? "" : ",", text);
    i /= shape[axis];
  }
  return "[" + text + "]";
}

std::string element(const Literal& literal, std::int64_t i) {
  return is_float(literal.dtype()) ? fmt::format("{}", literal.at(i)) : fmt::format("{}", literal.int_at(i));
}

}  // namespace

Agreement agreement_of(const Function& f, bool excess_precision) {
  Traits traits;
  for (const Type& type : f.arg_types()) traits.coarsest = std::max(traits.coarsest, epsilon(type.dtype));
  look_at(f, excess_precision, traits);
  if (traits.reasons.empty()) return {};
  Agreement result{allowed_roundings(traits.coarsest) * traits.coarsest, ""};
  for (const std::string& reason : traits.reasons) result.reason += (result.reason.empty() ? "" : ", ") + reason;
  return result;
}

std::string first_difference(const std::vector<Literal>& found, const std::vector<Literal>& expected,
                             double tolerance) {
  if (found.size() != expected.size()) return fmt::format("{} instead of {}", counted(found.size(), "result"), expected.size());
  for (std::size_t r = 0; r < found.size(); ++r) {
    Literal a = found[r], b = expected[r];
    if (!(a.type() == b.type()))
      return fmt::format("result {}: {} instead of {}", r, to_string(a.type()), to_string(b.type()));
    if (a == b) continue;
    a.expand();
    b.expand();
    const bool floats = is_float(a.dtype());
    double scale = 1;
    for (std::int64_t i = 0; floats && i < b.type().size(); ++i)
      if (std::isfinite(b.at(i))) scale = std::max(scale, std::abs(b.at(i)));
    const std::size_t width = static_cast<std::size_t>(size_of(a.dtype()));
    for (std::int64_t i = 0; i < a.type().size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * width;
      if (std::memcmp(a.raw().data() + at, b.raw().data() + at, width) == 0) continue;
      if (floats && std::isnan(a.at(i)) && std::isnan(b.at(i))) continue;
      if (floats && tolerance > 0 && (a.at(i) == b.at(i) || std::abs(a.at(i) - b.at(i)) <= tolerance * scale)) continue;
      return fmt::format(
          "result {}{}: {} instead of {}{}", r, coordinates(a.shape(), i), element(a, i), element(b, i),
          floats && tolerance > 0 ? fmt::format(" (tolerance {:.2g} of {:.3g})", tolerance, scale) : std::string());
    }
  }
  return "";
}

}  // namespace tools
