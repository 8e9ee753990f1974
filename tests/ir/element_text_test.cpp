#include "ir/element_text.h"

#include <gtest/gtest.h>

#include <bit>

namespace burin::ir {
namespace {

std::string round_trip(DType dtype, std::string_view text) {
  Literal literal(Type{dtype, {2}});
  if (!element_from_text(text, literal, 1)) return "no";
  EXPECT_EQ(element_text(literal, 0), dtype == DType::bool_ ? "false" : "0");
  return element_text(literal, 1);
}

TEST(ElementText, FloatsPrintShortestAndReadBackExactly) {
  EXPECT_EQ(round_trip(f32, "0.1"), "0.1");
  EXPECT_EQ(round_trip(f32, "1e30"), "1e+30");
  EXPECT_EQ(round_trip(f32, "1e-45"), "1e-45");
  EXPECT_EQ(round_trip(f32, "-0"), "-0");
  EXPECT_EQ(round_trip(f32, "3.4028235e38"), "3.4028235e+38");
  EXPECT_EQ(round_trip(f32, "-inf"), "-inf");
  EXPECT_EQ(round_trip(f64, "0.1"), "0.1");
  EXPECT_EQ(round_trip(f64, "0.30000000000000004"), "0.30000000000000004");
  EXPECT_EQ(round_trip(bf16, "0.1"), "0.1");
  EXPECT_EQ(round_trip(f16, "65504"), "65504");
  EXPECT_EQ(round_trip(f16, "65519"), "65504");
  EXPECT_EQ(round_trip(f16, "0.333"), "0.333");
}

TEST(ElementText, EveryHalfReadsBack) {
  for (DType dtype : {bf16, f16})
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      Literal literal(Type{dtype, {}}), read(Type{dtype, {}});
      const auto half = static_cast<std::uint16_t>(bits);
      std::memcpy(literal.mutable_raw().data(), &half, 2);
      ASSERT_TRUE(element_from_text(element_text(literal, 0), read, 0)) << bits;
      ASSERT_EQ(read, literal) << bits << " " << element_text(literal, 0);
    }
}

TEST(ElementText, NansKeepTheirBits) {
  EXPECT_EQ(round_trip(f32, "nan"), "nan");
  EXPECT_EQ(round_trip(f32, "0x7FC00000"), "nan");
  EXPECT_EQ(round_trip(f32, "0x7FC00001"), "0x7FC00001");
  EXPECT_EQ(round_trip(f32, "0xFFC00000"), "0xFFC00000");
  EXPECT_EQ(round_trip(bf16, "0x7FA0"), "0x7FA0");
  EXPECT_EQ(round_trip(f64, "nan"), "nan");
  EXPECT_EQ(round_trip(f16, "nan"), "nan");
}

TEST(ElementText, IntegersAndBools) {
  EXPECT_EQ(round_trip(i8, "-128"), "-128");
  EXPECT_EQ(round_trip(u64, "18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(round_trip(i64, "-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(round_trip(bool_, "true"), "true");
}

TEST(ElementText, RefusesWhatIsNoNumberOfTheType) {
  for (std::string_view text : {"", "-", "1.5", "128", "-129", "true", "0x1", "1 "})
    EXPECT_EQ(round_trip(i8, text), "no") << text;
  for (std::string_view text : {"", "-", "one", "1.5x", "0x", "0x1FFFFFFFF", "0xG", "infinity", "NaN", " 1", "1 "})
    EXPECT_EQ(round_trip(f32, text), "no") << text;
  for (std::string_view text : {"", "1", "True"}) EXPECT_EQ(round_trip(bool_, text), "no") << text;
  EXPECT_EQ(round_trip(u8, "-1"), "no");
  // What is rounded to infinity is refused like an integer that does not fit.
  EXPECT_EQ(round_trip(f32, "1e40"), "no");
  EXPECT_EQ(round_trip(f64, "-1e400"), "no");
  EXPECT_EQ(round_trip(f64, "1e999999999"), "no");
  EXPECT_EQ(round_trip(f16, "65520"), "no");
  EXPECT_EQ(round_trip(bf16, "3.4e38"), "no");
}

}  // namespace
}  // namespace burin::ir
