// Short spellings for tests over tensors.
#pragma once
#include <gtest/gtest.h>

#include <burin/burin.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace burin::test {

/// The message of the Error that f throws, without the place at its end; "no error" otherwise.
template <class F>
std::string error_text(F&& f) {
  const std::string text = error_of(std::forward<F>(f));
  return text.substr(0, text.rfind(" (messages_test.cpp:"));
}

inline void expect_values(const Tensor& t, const std::vector<double>& expected) {
  EXPECT_EQ(t.to_vector<double>(), expected) << t;
}
inline void expect_near(const Tensor& t, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> found = t.to_vector<double>();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}

}  // namespace burin::test
