// The ops. Names and meanings follow jax.numpy, jax.lax and jax.nn. Operands broadcast as in NumPy; dtypes promote as
// in JAX (half with half of the other kind gives f32, an integer with a float gives the float, C++ numbers adapt).
// Every op throws burin::Error for shapes or dtypes that do not fit, naming them and the caller's line: "add: f32[2,3]
// and f32[5] do not broadcast: axis -1 is 3 and 5 (model.cpp:42)". A Tensor without a value, one that was donated and a
// traced one whose trace has ended are errors in every op. Axes may be negative: they count from the end; one that is
// out of range, or named twice, is an error. How exactly functions are computed is in docs/numerics.md, what every op
// means at its edges (NaN, overflow, division by zero) in docs/ir.md.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <burin/index.h>
#include <burin/tensor.h>

namespace burin {

// ---- arithmetic ---------------------------------------------------------------------------------------------------------
// Of two operands: any shapes that broadcast, any number dtypes; the result has the broadcast shape and the promoted dtype.
// Integers wrap. Of bools, + is or and * is and; other arithmetic on bools alone is an error.
Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
/// True division: integers give f32.
Tensor operator/(const Operand& a, const Operand& b);
/// The remainder with the sign of the divisor.
Tensor operator%(const Operand& a, const Operand& b);
Tensor operator-(const Operand& x);
Tensor operator+(const Operand& x);
/// The quotient rounded down, in the promoted dtype.
Tensor floor_divide(const Operand& a, const Operand& b);
/// The remainder with the sign of the dividend.
Tensor fmod(const Operand& a, const Operand& b);
/// x to the y. A small whole C++ exponent (integers 0 to 64, floats 0 to 4) becomes multiplications, as
/// jax.lax.integer_pow. Integers multiply repeatedly and wrap; a negative exponent gives 0 but for x = 1 and -1.
Tensor pow(const Operand& x, const Operand& y);
/// The larger (smaller) one, element by element; NaN wins.
Tensor maximum(const Operand& a, const Operand& b);
Tensor minimum(const Operand& a, const Operand& b);
/// The angle of the point (x, y), in (-pi, pi]; integers give f32.
Tensor atan2(const Operand& y, const Operand& x);
/// log(exp(a) + exp(b)) as max(a, b) + log1p(exp(-|a - b|)); integers give f32; of nothing but -inf: -inf with zero
/// gradient.
Tensor logaddexp(const Operand& a, const Operand& b);
/// min(max(x, low), high); bounds broadcast, and where they cross, `high` wins.
Tensor clip(const Operand& x, const Operand& low, const Operand& high);

// Of one operand: any shape, which the result has. abs, sign and square keep the dtype; sign(0) is 0 and sign(NaN) NaN.
Tensor abs(const Operand& x);
Tensor sign(const Operand& x);
Tensor square(const Operand& x);
// Functions of floats. Integers and bools become f32 first; outside of their domain the result is NaN.
Tensor sqrt(const Operand& x);
/// 1 / sqrt(x).
Tensor rsqrt(const Operand& x);
/// The cube root, of negative numbers too.
Tensor cbrt(const Operand& x);
/// 1 / x.
Tensor reciprocal(const Operand& x);
Tensor exp(const Operand& x);
/// 2 to the x.
Tensor exp2(const Operand& x);
/// exp(x) - 1 without cancellation near 0.
Tensor expm1(const Operand& x);
Tensor log(const Operand& x);
Tensor log2(const Operand& x);
/// log(x) / log(10).
Tensor log10(const Operand& x);
/// log(1 + x) without cancellation near 0.
Tensor log1p(const Operand& x);
Tensor sin(const Operand& x);
Tensor cos(const Operand& x);
Tensor tan(const Operand& x);
Tensor asin(const Operand& x);
Tensor acos(const Operand& x);
Tensor atan(const Operand& x);
Tensor sinh(const Operand& x);
Tensor cosh(const Operand& x);
Tensor tanh(const Operand& x);
Tensor asinh(const Operand& x);
Tensor acosh(const Operand& x);
Tensor atanh(const Operand& x);
/// 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
Tensor erf(const Operand& x);
/// 1 - erf(x) without cancellation where erf is near 1.
Tensor erfc(const Operand& x);
/// The inverse of erf; 1 and -1 give infinities, numbers beyond NaN. XLA's approximation (M. Giles, 2011).
Tensor erf_inv(const Operand& x);
/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Operand& x);
// Rounding keeps the dtype; integers stay as they are.
Tensor floor(const Operand& x);
Tensor ceil(const Operand& x);
/// Towards zero.
Tensor trunc(const Operand& x);
/// To the nearest whole number, ties to even.
Tensor round(const Operand& x);
/// x, whose derivative is zero.
Tensor stop_gradient(const Operand& x);

// ---- comparisons and logic -------------------------------------------------------------------------------------------
// Comparisons: operands broadcast and promote, the result is bool; any comparison but != with NaN is false.
Tensor operator==(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Operand& b);
/// Bitwise for integers, logical for bools, an error for floats. && and || are C++'s own, which
/// read both sides as bools: an error while tracing.
Tensor operator&(const Operand& a, const Operand& b);
Tensor operator|(const Operand& a, const Operand& b);
Tensor operator^(const Operand& a, const Operand& b);
Tensor operator~(const Operand& x);
/// bool: true where x is false or zero.
Tensor operator!(const Tensor& x);
/// Shifts of integers; the right shift is arithmetic for signed and logical for unsigned ones. Shifting by the width or
/// more, or by a negative number, shifts everything out.
Tensor operator<<(const Operand& a, const Operand& b);
Tensor operator>>(const Operand& a, const Operand& b);
/// The number of bits that are one (of zero bits above the highest one), in the dtype of x, an integer.
Tensor popcount(const Operand& x);
Tensor count_leading_zeros(const Operand& x);
/// bool of the shape of x; integers are finite.
Tensor isnan(const Operand& x);
Tensor isinf(const Operand& x);
Tensor isfinite(const Operand& x);
/// a where the condition holds (a bool; of other dtypes: is not zero), else b. All three broadcast, a and b promote.
/// The derivative goes to the side that was chosen.
Tensor where(const Operand& condition, const Operand& a, const Operand& b);

// ---- reductions ------------------------------------------------------------------------------------------------------------
// Over all axes unless some are given; keepdims leaves them in with extent 1. Half types accumulate in f32 and round once.
// bool, i8 and i16 (u8, u16) are summed and multiplied as i32 (u32). Nothing sums to 0 and multiplies to 1.
Tensor sum(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
/// sum / count: integers give f32, no elements NaN.
Tensor mean(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
Tensor prod(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
/// In the dtype of x. NaN wins; an empty axis is an error. Equal extremes share the derivative evenly.
Tensor max(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
Tensor min(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
/// sum((x - mean(x))^2) / (n - ddof), in two passes; stddev is its square root. Integers give f32.
Tensor var(const Operand& x, const Axes& axes = {}, KeepDims keep = {}, std::int64_t ddof = 0);
Tensor stddev(const Operand& x, const Axes& axes = {}, KeepDims keep = {}, std::int64_t ddof = 0);
/// bool: whether all (any) elements are true, of numbers: not zero. Of nothing: true (false).
Tensor all_of(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
Tensor any_of(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
/// The first index (i32) of the extreme; the first NaN wins. Without an axis: in the flattened tensor. An empty axis is
/// an error. Has no derivative.
Tensor argmax(const Operand& x, std::optional<std::int64_t> axis = {}, KeepDims keep = {});
Tensor argmin(const Operand& x, std::optional<std::int64_t> axis = {}, KeepDims keep = {});
/// m + log(sum(exp(x - m))) with the maximum m; integers give f32; an empty axis is an error; of nothing but -inf: -inf
/// with zero gradient.
Tensor logsumexp(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
/// exp(x - m) / sum(exp(x - m)) along axis with its maximum m, in f32 for half types, in the shape and dtype of x. A
/// row whose maximum is -inf gives zeros, with zero gradient.
Tensor softmax(const Operand& x, std::int64_t axis = -1);
/// log(softmax(x)); a row whose maximum is -inf gives -inf, with zero gradient.
Tensor log_softmax(const Operand& x, std::int64_t axis = -1);
/// True when shapes agree and all elements are equal. Not for traced tensors; there, all_of(a == b).
bool array_equal(const Operand& a, const Operand& b);

// ---- products ----------------------------------------------------------------------------------------------------------------
/// Matrix product over the last two axes; leading axes broadcast; a vector is a row on the left and a column on the
/// right. Half types accumulate in f32 and round once. [..., n, k] and [..., k, m] give [..., n, m]; contracting
/// extents that differ, batch axes that do not broadcast and operands without axes are errors.
Tensor matmul(const Operand& a, const Operand& b);
/// As jax.numpy.dot: over the last axis of a and the last but one of b; a number multiplies.
Tensor dot(const Operand& a, const Operand& b);
/// [n] and [m] (flattened if they have more axes) give [n, m].
Tensor outer(const Operand& a, const Operand& b);
/// Sums of products over the contracting axes, for each index of the batch axes; the two lists of a kind pair up, and
/// paired extents agree. Result axes: batch, free of a, free of b. `dtype`: of the result, the same or a wider one.
Tensor dot_general(const Operand& a, const Operand& b, const IntList& a_contract, const IntList& b_contract,
                   const IntList& a_batch = {}, const IntList& b_batch = {}, std::optional<DType> dtype = {});
/// Sums of products of two operands in index notation, "bthd,bshd->bhts", or of one: "ij->ji"; "ii->i" is not included.
/// The equation needs its -> and one letter per axis; extents of one letter agree. Errors name the equation and the
/// letter.
Tensor einsum(std::string_view equation, const Operand& a, const Operand& b);
Tensor einsum(std::string_view equation, const Operand& a);

// ---- shapes --------------------------------------------------------------------------------------------------------------------
/// The elements in another dtype: floats round to nearest even, become integers towards zero and stop at the ends of
/// the range (NaN: 0); integers wrap; bool is "not zero".
Tensor astype(const Operand& x, DType dtype);
/// The same bits as another dtype of the same width.
Tensor bitcast(const Operand& x, DType dtype);
/// The same elements in row-major order under another shape of as many. One extent may be -1: whatever is left.
Tensor reshape(const Operand& x, const IntList& shape);
/// Axis i of the result is axis permutation[i] of x. Without a permutation the axes are reversed.
Tensor transpose(const Operand& x);
Tensor transpose(const Operand& x, const IntList& permutation);
Tensor swapaxes(const Operand& x, std::int64_t a, std::int64_t b);
/// Takes axis `from` out and puts it in as axis `to` of the result.
Tensor moveaxis(const Operand& x, std::int64_t from, std::int64_t to);
/// New axes of extent 1, at these places of the result.
Tensor expand_dims(const Operand& x, const IntList& axes);
/// Drops axes of extent 1: those named (another extent is an error), or all.
Tensor squeeze(const Operand& x, const Axes& axes = {});
/// NumPy's rule: axes align at the right, and an extent is that of `shape` or 1.
Tensor broadcast_to(const Operand& x, const IntList& shape);
/// Parts along one of their axes, which alone may differ in extent; dtypes promote. No parts are an error.
Tensor concatenate(const std::vector<Tensor>& parts, std::int64_t axis = 0,
                   std::source_location where = std::source_location::current());
/// Parts of one shape along a new axis of the result.
Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis = 0,
             std::source_location where = std::source_location::current());
/// n equal parts along axis; an extent that n does not divide is an error.
std::vector<Tensor> split(const Operand& x, std::int64_t n, std::int64_t axis = 0);
/// `low` and `high` elements of `value` before and after each axis (one number: all axes); negative numbers crop.
Tensor pad(const Operand& x, const IntList& low, const IntList& high, const Operand& value = 0);
/// The elements of these axes (all unless given) in reverse order.
Tensor flip(const Operand& x, const Axes& axes = {});
/// Element i of the axis goes to i + shift, around the end; a negative shift goes back.
Tensor roll(const Operand& x, std::int64_t shift, std::int64_t axis);
/// Each element of the axis n times in a row.
Tensor repeat(const Operand& x, std::int64_t n, std::int64_t axis);
/// x has at least two axes. The part of the last two on and below (above) diagonal k; zeros elsewhere.
Tensor tril(const Operand& x, std::int64_t k = 0);
Tensor triu(const Operand& x, std::int64_t k = 0);

// ---- makers --------------------------------------------------------------------------------------------------------------------
// A negative extent, more than 8 axes and a shape of more bytes than 63 bits count are errors.
Tensor zeros(const IntList& shape, DType dtype = f32, std::source_location where = std::source_location::current());
Tensor ones(const IntList& shape, DType dtype = f32, std::source_location where = std::source_location::current());
/// `value` (broadcast to the shape) in every element. The dtype is that of the number (f32, i32 or bool) unless given.
Tensor full(const IntList& shape, const Operand& value, std::optional<DType> dtype = {});
/// Of the shape and dtype of x.
Tensor zeros_like(const Operand& x);
Tensor ones_like(const Operand& x);
Tensor full_like(const Operand& x, const Operand& value);
/// 0, 1, ..., stop - 1 as i32 unless a dtype is given; from `start` in steps of `step`, which may be negative but not
/// 0.
Tensor arange(std::int64_t stop, DType dtype = i32, std::source_location where = std::source_location::current());
Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step = 1, DType dtype = i32,
              std::source_location where = std::source_location::current());
/// [n]: evenly spaced numbers from start to stop, both included.
Tensor linspace(double start, double stop, std::int64_t n, DType dtype = f32,
                std::source_location where = std::source_location::current());
/// [n, n]: 1 on the diagonal.
Tensor eye(std::int64_t n, DType dtype = f32, std::source_location where = std::source_location::current());
/// The index along `axis` in every element.
Tensor iota(const IntList& shape, std::int64_t axis, DType dtype = i32,
            std::source_location where = std::source_location::current());
/// [..., classes] for ids [...]: 1 where the new last axis equals the id, else 0; ids out of range give zeros.
Tensor one_hot(const Operand& ids, std::int64_t classes, DType dtype = f32);

// ---- indices -------------------------------------------------------------------------------------------------------------------
// Ids are integers of any shape; a bool mask is an error. An id out of range is what `mode` says: by default an error of the
// call that runs, which names id, axis, shape and line ("gather: index 7 is out of range for axis 0 of f32[3]: expected 0 to 2 (model.cpp:42, in take)").
/// Slices of x along axis at `ids`, whose axes replace it. Negative ids count from the end.
Tensor take(const Operand& x, const Operand& ids, std::int64_t axis = 0, Mode mode = Mode::error);
/// Element [..., ids[..., j, ...], ...] of x: ids has x's rank; other axes agree or are 1.
Tensor take_along_axis(const Operand& x, const Operand& ids, std::int64_t axis, Mode mode = Mode::error);
/// [sizes...]: that many elements from traced starts (one integer of rank 0 per axis). A negative start counts from
/// the end, as in JAX; then starts are clamped so that the slice fits. A size beyond the axis is an error.
Tensor dynamic_slice(const Operand& x, const std::vector<Operand>& starts, const IntList& sizes);
/// x with `update` (of x's rank, no axis longer; converted to x's dtype) written at traced starts, which
/// count and are clamped as those of dynamic_slice.
Tensor dynamic_update_slice(const Operand& x, const Operand& update, const std::vector<Operand>& starts);
/// [segments, ...]: sums of the rows of x, [n, ...], by segment number, integers [n]; numbers outside 0..segments-1 are
/// dropped. Half types accumulate in f32.
Tensor segment_sum(const Operand& x, const Operand& segment_ids, std::int64_t segments);

/// Keeps results and whatever computes them where they are: nothing is moved or merged across it.
std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& values,
                                         std::source_location where = std::source_location::current());

}  // namespace burin
