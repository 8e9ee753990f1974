// Tensors as text, as NumPy prints them: 8 digits at most, as few as tell the elements apart, columns aligned, long axes
// abbreviated.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include <burin/tensor.h>

#include "base/place.h"
#include "frontend/node.h"

namespace burin {
namespace {

constexpr std::int64_t summary_threshold = 1000, edge_items = 3;

// The elements that are printed, row-major: all, or those near the ends of each axis.
class Printer {
 public:
  explicit Printer(const ir::Literal& value)
      : value_(value), short_(value.type().size() > summary_threshold) {}

  std::string print() {
    if (value_.type().size() == 0) return "[]";  // an axis before the empty one may be of any length
    visit(0, 0, [&](std::int64_t i) { seen_.push_back(i); });
    choose_format();
    if (value_.shape().rank() == 0) return trimmed(format(0));
    std::string text;
    nest(0, 0, 1, text);
    return text;
  }

 private:
  bool skips(std::size_t axis) const { return short_ && value_.shape()[axis] > 2 * edge_items; }

  template <class F>
  void visit(std::size_t axis, std::int64_t offset, F&& f) {
    if (axis == value_.shape().rank()) return f(offset);
    const std::int64_t n = value_.shape()[axis];
    for (std::int64_t i = 0; i < n; ++i) {
      if (skips(axis) && i == edge_items) i = n - edge_items;
      visit(axis + 1, offset * n + i, f);
    }
  }

  void choose_format() {
    const DType dtype = value_.dtype();
    if (!is_float(dtype)) {
      for (std::int64_t i : seen_) width_ = std::max(width_, format(i).size());
      return;
    }
    double largest = 0, smallest = std::numeric_limits<double>::infinity();
    for (std::int64_t i : seen_) {
      const double v = std::abs(value_.at(i));
      if (!std::isfinite(v) || v == 0) continue;
      largest = std::max(largest, v);
      smallest = std::min(smallest, v);
    }
    if (largest > 0) exponent_ = largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000;
    // As many decimals, up to 8, as the element that needs most.
    for (std::int64_t i : seen_) {
      const double v = value_.at(i);
      if (!std::isfinite(v)) continue;
      precision_ = std::max(precision_, digits_after_point(v));
    }
    for (std::int64_t i : seen_) width_ = std::max(width_, format(i).size());
  }

  int digits_after_point(double v) const {
    // The shortest text that reads back as this element, cut at 8 decimals.
    std::string text = value_.dtype() == DType::f64 ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
    if (exponent_) {
      text = value_.dtype() == DType::f64 ? fmt::format("{:.17g}", v) : text;
      double m = v;
      if (v != 0) m = v / std::pow(10.0, std::floor(std::log10(std::abs(v))));
      std::string mantissa = fmt::format("{:.8f}", m);
      mantissa.erase(mantissa.find_last_not_of('0') + 1);
      return static_cast<int>(mantissa.size() - mantissa.find('.') - 1);
    }
    std::string fixed = fmt::format("{:.8f}", v);
    if (text.find('e') == std::string::npos && text.size() < fixed.size()) {
      const std::size_t point = text.find('.');
      return point == std::string::npos ? 0 : static_cast<int>(std::min<std::size_t>(8, text.size() - point - 1));
    }
    fixed.erase(fixed.find_last_not_of('0') + 1);
    return static_cast<int>(fixed.size() - fixed.find('.') - 1);
  }

  std::string format(std::int64_t i) const {
    const DType dtype = value_.dtype();
    if (dtype == DType::bool_) return value_.int_at(i) ? "True" : "False";
    if (dtype == DType::u64) return std::to_string(static_cast<std::uint64_t>(value_.int_at(i)));
    if (!is_float(dtype)) return std::to_string(value_.int_at(i));
    const double v = value_.at(i);
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    std::string text = exponent_ ? fmt::format("{:.{}e}", v, precision_) : fmt::format("{:.{}f}", v, precision_);
    if (precision_ == 0 && !exponent_) return text + ".";
    if (exponent_) return text;
    // Zeros at the end become blanks, so that points stay aligned.
    const std::size_t last = text.find_last_not_of('0');
    for (std::size_t k = last + 1; k < text.size(); ++k) text[k] = ' ';
    return text;
  }

  static std::string trimmed(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  void nest(std::size_t axis, std::int64_t offset, std::size_t indent, std::string& text) {
    const std::size_t rank = value_.shape().rank();
    const std::int64_t n = value_.shape()[axis];
    text += '[';
    for (std::int64_t i = 0; i < n; ++i) {
      if (i > 0) text += separator(axis, rank, indent);
      if (skips(axis) && i == edge_items) {
        text += "...";
        i = n - edge_items;
        text += separator(axis, rank, indent);
      }
      if (axis + 1 == rank) {
        const std::string element = format(offset * n + i);
        text.append(width_ - element.size(), ' ');
        text += element;
      } else {
        nest(axis + 1, offset * n + i, indent + 1, text);
      }
    }
    text += ']';
  }

  static std::string separator(std::size_t axis, std::size_t rank, std::size_t indent) {
    if (axis + 1 == rank) return " ";
    return std::string(rank - axis - 1, '\n') + std::string(indent, ' ');
  }

  const ir::Literal& value_;
  bool short_;
  std::vector<std::int64_t> seen_;
  bool exponent_ = false;
  int precision_ = 0;
  std::size_t width_ = 0;
};

}  // namespace

std::string to_string(const Tensor& tensor) {
  const auto& pointer = detail::Access::node(tensor);
  if (!pointer) return "Tensor without a value";
  const detail::Node& node = *pointer;
  if (node.kind == detail::Node::Kind::donated) return "donated to the function jitted at " + place_text(node.made_at) + ": " + to_string(node.type);
  if (node.kind != detail::Node::Kind::number && node.kind != detail::Node::Kind::concrete)
    return (node.note.empty() ? "" : node.note + ": ") + to_string(node.type);
  return Printer(detail::to_literal(tensor, {})).print();
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace burin
