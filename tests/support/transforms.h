// What must hold of differentiation and batching whatever the function, checked by executing. Each check returns "" or what
// does not hold. Derivative checks are for f64: arguments that are differentiated must be.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/literal.h"

namespace burin::test {

using ir::Function;
using ir::Literal;

/// Something that executes functions: the evaluator, the kernel interpreter, machine code.
using Execute = std::function<std::vector<Literal>(const Function&, std::span<const Literal>)>;

/// Flags of all float args.
std::vector<bool> float_args(const Function& f);
/// (args..., cotangents of float results...) -> (results..., cotangents of active args...): vjp in one function.
Function gradient(const Function& f, const std::vector<bool>& active);

/// jvp along a seeded direction agrees with central differences (extrapolated once), and results stay what they are.
std::string check_jvp(const Function& f, std::span<const Literal> args, const std::vector<bool>& active,
                      double tolerance = 1e-6);
/// <cotangent, jvp(tangent)> = <vjp(cotangent), tangent>, and results stay what they are.
std::string check_vjp(const Function& f, std::span<const Literal> args, const std::vector<bool>& active);
/// The same with the derivative from differences: for functions that have no jvp (custom_vjp).
std::string check_vjp_by_differences(const Function& f, std::span<const Literal> args, const std::vector<bool>& active);
/// The same two for the gradient of f as a function of args and cotangents: jvp of vjp, vjp of vjp.
std::string check_second_order(const Function& f, std::span<const Literal> args, const std::vector<bool>& active,
                               double tolerance = 1e-6);

/// batch(f) on the stacked examples is f on each. Args that are not batched are those of example 0.
std::string check_batch(const Function& f, std::span<const std::vector<Literal>> examples,
                        const std::vector<bool>& batched);
/// batch(gradient(f)) is gradient(f) on each example, and gradient(batch(f)) agrees with it (what examples share gets the
/// sum of their cotangents).
std::string check_batched_gradient(const Function& f, std::span<const std::vector<Literal>> examples,
                                   const std::vector<bool>& batched, const std::vector<bool>& active);
/// batch(batch(f)) on a 2 x n grid of examples.
std::string check_batch_twice(const Function& f, std::span<const std::vector<Literal>> examples,
                              const std::vector<bool>& batched);

}  // namespace burin::test
