// The ops. Names and meanings follow jax.numpy, jax.lax and jax.nn. Operands broadcast as in NumPy; dtypes promote as in
// JAX (half with half of the other kind gives f32, an integer with a float gives the float, C++ numbers adapt).
// Every op throws burin::Error for shapes or dtypes that do not fit, naming them and the caller's line.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <burin/index.h>
#include <burin/tensor.h>

namespace burin {

// ---- arithmetic ---------------------------------------------------------------------------------------------------------
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
/// x to the y. A small whole C++ exponent becomes multiplications.
Tensor pow(const Operand& x, const Operand& y);
Tensor maximum(const Operand& a, const Operand& b);
Tensor minimum(const Operand& a, const Operand& b);
Tensor atan2(const Operand& y, const Operand& x);
/// log(exp(a) + exp(b)); of nothing but -inf: -inf with zero gradient.
Tensor logaddexp(const Operand& a, const Operand& b);
/// min(max(x, low), high).
Tensor clip(const Operand& x, const Operand& low, const Operand& high);

Tensor abs(const Operand& x);
Tensor sign(const Operand& x);
Tensor square(const Operand& x);
Tensor sqrt(const Operand& x);
Tensor rsqrt(const Operand& x);
Tensor cbrt(const Operand& x);
Tensor reciprocal(const Operand& x);
Tensor exp(const Operand& x);
Tensor exp2(const Operand& x);
Tensor expm1(const Operand& x);
Tensor log(const Operand& x);
Tensor log2(const Operand& x);
Tensor log10(const Operand& x);
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
Tensor erf(const Operand& x);
Tensor erfc(const Operand& x);
Tensor erf_inv(const Operand& x);
/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Operand& x);
Tensor floor(const Operand& x);
Tensor ceil(const Operand& x);
Tensor trunc(const Operand& x);
/// To the nearest whole number, ties to even.
Tensor round(const Operand& x);
/// x, whose derivative is zero.
Tensor stop_gradient(const Operand& x);

// ---- comparisons and logic: results are bool -------------------------------------------------------------------------
Tensor operator==(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Operand& b);
/// Bitwise for integers, logical for bools. There is no && and ||: they could not be lazy.
Tensor operator&(const Operand& a, const Operand& b);
Tensor operator|(const Operand& a, const Operand& b);
Tensor operator^(const Operand& a, const Operand& b);
Tensor operator~(const Operand& x);
Tensor operator!(const Tensor& x);
/// Shifts; the right shift is arithmetic for signed and logical for unsigned integers.
Tensor operator<<(const Operand& a, const Operand& b);
Tensor operator>>(const Operand& a, const Operand& b);
Tensor popcount(const Operand& x);
Tensor count_leading_zeros(const Operand& x);
Tensor isnan(const Operand& x);
Tensor isinf(const Operand& x);
Tensor isfinite(const Operand& x);
/// a where condition (bool) holds, else b.
Tensor where(const Operand& condition, const Operand& a, const Operand& b);

// ---- reductions ------------------------------------------------------------------------------------------------------------
// Over all axes unless some are given; keepdims leaves them in with extent 1. Half types accumulate in f32.
Tensor sum(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
Tensor mean(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
Tensor prod(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
/// NaN wins; an empty axis is an error.
Tensor max(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
Tensor min(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
/// Divides by n - ddof; two passes.
Tensor var(const Operand& x, const Axes& axes = {}, KeepDims keep = {}, std::int64_t ddof = 0);
Tensor stddev(const Operand& x, const Axes& axes = {}, KeepDims keep = {}, std::int64_t ddof = 0);
Tensor all_of(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
Tensor any_of(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
/// The first index (i32) of the extreme; the first NaN wins. Without an axis: in the flattened tensor.
Tensor argmax(const Operand& x, std::optional<std::int64_t> axis = {}, KeepDims keep = {});
Tensor argmin(const Operand& x, std::optional<std::int64_t> axis = {}, KeepDims keep = {});
/// log(sum(exp(x))), shifted by the maximum; of nothing but -inf: -inf with zero gradient.
Tensor logsumexp(const Operand& x, const Axes& axes = {}, KeepDims keep = {});
/// exp(x) / sum(exp(x)) along axis, in f32 for half types. A row whose maximum is -inf gives zeros, with zero gradient.
Tensor softmax(const Operand& x, std::int64_t axis = -1);
/// log(softmax(x)); a row whose maximum is -inf gives -inf, with zero gradient.
Tensor log_softmax(const Operand& x, std::int64_t axis = -1);
/// True when shapes agree and all elements are equal. Not for traced tensors; there, all_of(a == b).
bool array_equal(const Operand& a, const Operand& b);

// ---- products ----------------------------------------------------------------------------------------------------------------
/// Matrix product over the last two axes; leading axes broadcast; a vector is a row on the left and a column on the right.
/// Half types accumulate in f32.
Tensor matmul(const Operand& a, const Operand& b);
Tensor dot(const Operand& a, const Operand& b);
Tensor outer(const Operand& a, const Operand& b);
/// Result axes: batch, free of a, free of b.
Tensor dot_general(const Operand& a, const Operand& b, const IntList& a_contract, const IntList& b_contract,
                   const IntList& a_batch = {}, const IntList& b_batch = {}, std::optional<DType> dtype = {});
/// Sums of products of two operands in index notation, "bthd,bshd->bhts", or of one: "ij->ji", "ii->i" is not included.
Tensor einsum(std::string_view equation, const Operand& a, const Operand& b);
Tensor einsum(std::string_view equation, const Operand& a);

// ---- shapes --------------------------------------------------------------------------------------------------------------------
Tensor astype(const Operand& x, DType dtype);
/// The same bits as another dtype of the same width.
Tensor bitcast(const Operand& x, DType dtype);
/// One extent may be -1: whatever is left.
Tensor reshape(const Operand& x, const IntList& shape);
/// Without a permutation the axes are reversed.
Tensor transpose(const Operand& x);
Tensor transpose(const Operand& x, const IntList& permutation);
Tensor swapaxes(const Operand& x, std::int64_t a, std::int64_t b);
Tensor moveaxis(const Operand& x, std::int64_t from, std::int64_t to);
Tensor expand_dims(const Operand& x, const IntList& axes);
/// Drops axes of extent 1: those named, or all.
Tensor squeeze(const Operand& x, const Axes& axes = {});
Tensor broadcast_to(const Operand& x, const Shape& shape);
Tensor concatenate(const std::vector<Tensor>& parts, std::int64_t axis = 0,
                   std::source_location where = std::source_location::current());
Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis = 0,
             std::source_location where = std::source_location::current());
/// n equal parts along axis.
std::vector<Tensor> split(const Operand& x, std::int64_t n, std::int64_t axis = 0);
/// `low` and `high` elements of `value` before and after each axis (one number: all axes); negative numbers crop.
Tensor pad(const Operand& x, const IntList& low, const IntList& high, const Operand& value = 0);
Tensor flip(const Operand& x, const Axes& axes = {});
Tensor roll(const Operand& x, std::int64_t shift, std::int64_t axis);
Tensor repeat(const Operand& x, std::int64_t n, std::int64_t axis);
/// The part of the last two axes on and below (above) diagonal k; zeros elsewhere.
Tensor tril(const Operand& x, std::int64_t k = 0);
Tensor triu(const Operand& x, std::int64_t k = 0);

// ---- makers --------------------------------------------------------------------------------------------------------------------
Tensor zeros(const Shape& shape, DType dtype = f32, std::source_location where = std::source_location::current());
Tensor ones(const Shape& shape, DType dtype = f32, std::source_location where = std::source_location::current());
/// The dtype is that of the number (f32, i32 or bool) unless given.
Tensor full(const Shape& shape, const Operand& value, std::optional<DType> dtype = {});
Tensor zeros_like(const Operand& x);
Tensor ones_like(const Operand& x);
Tensor full_like(const Operand& x, const Operand& value);
/// 0, 1, ..., stop - 1 as i32 unless a dtype is given.
Tensor arange(std::int64_t stop, DType dtype = i32, std::source_location where = std::source_location::current());
Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step = 1, DType dtype = i32,
              std::source_location where = std::source_location::current());
/// n evenly spaced numbers from start to stop, both included.
Tensor linspace(double start, double stop, std::int64_t n, DType dtype = f32,
                std::source_location where = std::source_location::current());
Tensor eye(std::int64_t n, DType dtype = f32, std::source_location where = std::source_location::current());
/// The index along `axis` in every element.
Tensor iota(const Shape& shape, std::int64_t axis, DType dtype = i32,
            std::source_location where = std::source_location::current());
/// 1 where the new last axis equals the id, else 0; ids out of range give zeros.
Tensor one_hot(const Operand& ids, std::int64_t classes, DType dtype = f32);

// ---- indices -------------------------------------------------------------------------------------------------------------------
/// Slices of x along axis at `ids`, whose axes replace it. Negative ids count from the end.
Tensor take(const Operand& x, const Operand& ids, std::int64_t axis = 0, Mode mode = Mode::error);
/// Element [..., ids[..., j, ...], ...] of x: ids has x's rank; other axes agree or are 1.
Tensor take_along_axis(const Operand& x, const Operand& ids, std::int64_t axis, Mode mode = Mode::error);
/// `sizes` elements from traced starts (one integer per axis), clamped so that the slice fits.
Tensor dynamic_slice(const Operand& x, const std::vector<Operand>& starts, const IntList& sizes);
/// x with `update` written at traced starts, clamped so that it fits.
Tensor dynamic_update_slice(const Operand& x, const Operand& update, const std::vector<Operand>& starts);
/// Sums of rows of x by segment number; numbers outside 0..segments-1 are dropped. Half types accumulate in f32.
Tensor segment_sum(const Operand& x, const Operand& segment_ids, std::int64_t segments);

/// Keeps results and whatever computes them where they are: nothing is moved or merged across it.
std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& values,
                                         std::source_location where = std::source_location::current());

}  // namespace burin
