#include "frontend/io/npy.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/io/file_bytes.h"

namespace burin::io {
namespace {

class NpyFile : public FileTest {
 protected:
  static std::string npy(const std::string& header, const std::string& data, int major = 1) {
    std::string bytes = "\x93NUMPY";
    bytes += {static_cast<char>(major), '\0', static_cast<char>(header.size() & 0xff),
              static_cast<char>(header.size() >> 8)};
    if (major > 1) bytes += {'\0', '\0'};
    return bytes + header + data;
  }
  HostTensor read(const std::string& header, const std::string& data, int major = 1) {
    return read_npy(write("x.npy", npy(header, data, major)));
  }
  /// The message without "cannot read <path>: ".
  std::string refusal_of(const std::string& bytes) {
    const std::string file = write("x.npy", bytes);
    const std::string message = message_of([&] { read_npy(file); });
    const std::string start = "cannot read " + file + ": ";
    EXPECT_EQ(message.substr(0, start.size()), start);
    return message.size() < start.size() ? message : message.substr(start.size());
  }
  std::string refusal(const std::string& header, const std::string& data = "") { return refusal_of(npy(header, data)); }
};

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST_F(NpyFile, RoundTripOfEveryDtype) {
  for (const char* dtype : {"f64", "f32", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"}) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(15 * dtype_bytes(dtype)));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(37 * i + 11);
    HostTensor tensor = host<std::uint8_t>(dtype, {3, 5}, bytes);
    normalize_bools(tensor);
    write_npy(path("a.npy"), tensor);
    EXPECT_EQ(read_npy(path("a.npy")), tensor) << dtype;
  }
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {1}, {1, 1, 1}, {0}, {2, 0, 3}}) {
    HostTensor tensor{"f32", shape, {}};
    tensor.data.resize(static_cast<std::size_t>(tensor_bytes("f32", shape)), std::byte{7});
    write_npy(path("a.npy"), tensor);
    EXPECT_EQ(read_npy(path("a.npy")), tensor);
  }
  EXPECT_EQ(files(), std::vector<std::string>{"a.npy"});
}

TEST_F(NpyFile, WritesWhatNumpyWrites) {
  const auto expected = [](const std::string& dict) {
    std::string header = dict + std::string(117 - dict.size(), ' ') + "\n";
    return npy(header, raw<float>({1, 2, 3, 4, 5, 6}));
  };
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  write_npy(path("a.npy"), host<float>("f32", {2, 3}, values));
  EXPECT_EQ(bytes_of(path("a.npy")), expected("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  write_npy(path("a.npy"), host<float>("f32", {6}, values));
  EXPECT_EQ(bytes_of(path("a.npy")), expected("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"));
  EXPECT_EQ(bytes_of(path("a.npy")).size(), 128u + 24u);
  write_npy(path("a.npy"), host<std::uint8_t>("bool", {}, {1}));
  EXPECT_NE(bytes_of(path("a.npy")).find("{'descr': '|b1', 'fortran_order': False, 'shape': (), }"), std::string::npos);
}

TEST_F(NpyFile, ReadsVersionsSpellingsAndByteOrders) {
  const HostTensor tensor = host<std::int32_t>("i32", {3}, {1, -2, 70000});
  const std::string data = raw<std::int32_t>({1, -2, 70000});
  for (int major : {1, 2, 3})
    EXPECT_EQ(read("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }  \n", data, major), tensor);
  EXPECT_EQ(read("{\"shape\":(3L,),\"descr\":\"=i4\",\"fortran_order\":True}", data), tensor);
  EXPECT_EQ(read("{'descr': '>i4', 'fortran_order': False, 'shape': (3,), }",
                 std::string("\0\0\0\1\xff\xff\xff\xfe\0\1\x11\x70", 12)),
            tensor);
  EXPECT_EQ(read("{'descr': '|b1', 'fortran_order': False, 'shape': (2, 1)}", std::string("\0\5", 2)),
            host<std::uint8_t>("bool", {2, 1}, {0, 1}));
}

TEST_F(NpyFile, TurnsColumnsIntoRows) {
  EXPECT_EQ(
      read("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", raw<std::int16_t>({11, 21, 12, 22, 13, 23})),
      host<std::int16_t>("i16", {2, 3}, {11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(read("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 2), }",
                 raw<std::int16_t>({111, 211, 121, 221, 131, 231, 112, 212, 122, 222, 132, 232})),
            host<std::int16_t>("i16", {2, 3, 2}, {111, 112, 121, 122, 131, 132, 211, 212, 221, 222, 231, 232}));
  EXPECT_EQ(read("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 0, 2), }", ""),
            host<std::int16_t>("i16", {2, 0, 2}, {}));
}

TEST_F(NpyFile, RefusesElementsItHasNot) {
  const auto of = [&](const std::string& descr) {
    return refusal("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }", "12345678");
  };
  const std::string expected = "', expected f2 f4 f8, i1 i2 i4 i8, u1 u2 u4 u8 or b1 after <, > or |";
  for (const std::string descr : {"<c8", "|O", "<U4", "|S3", "<f3", "f4", "|f4", "<M8[ns]", ""})
    EXPECT_EQ(of("'" + descr + "'"), "elements of type '" + descr + expected);
  EXPECT_EQ(of("'|V2'"), "elements of type '|V2" + expected + " (bf16 has no type in .npy files: use .safetensors)");
  EXPECT_EQ(of("[('a', '<f4')]"), "an array of records, expected one of numbers or bools");
}

TEST_F(NpyFile, RefusesBytesThatDoNotFit) {
  const auto of = [&](const std::string& shape, std::size_t bytes) {
    return refusal("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", std::string(bytes, 'x'));
  };
  EXPECT_EQ(of("(2, 3)", 23), "f32[2,3] has 24 bytes, found 23 after the header");
  EXPECT_EQ(of("(2, 3)", 25), "f32[2,3] has 24 bytes, found 25 after the header");
  EXPECT_EQ(of("(4294967296, 4294967296)", 0),
            "f32[4294967296,4294967296] has more bytes than can be counted in 63 bits");
  EXPECT_EQ(of("(9223372036854775808,)", 0),
            "expected a size from 0 to 2^63-1 at byte 51 of the header, found \"922337203685\"");
  EXPECT_EQ(of("(-1,)", 4), "expected a size from 0 to 2^63-1 at byte 51 of the header, found \"-1,), }\"");
}

TEST_F(NpyFile, RefusesMalformedHeaders) {
  EXPECT_EQ(refusal_of(""), "this is not a .npy file");
  EXPECT_EQ(refusal_of("PK\3\4 a zip of arrays"), "this is not a .npy file");
  EXPECT_EQ(refusal_of("\x93NUMPY\x01"), "it ends after 7 bytes");
  EXPECT_EQ(refusal_of(std::string("\x93NUMPY\2\0\1\0\0", 11)), "it ends after 11 bytes");
  EXPECT_EQ(refusal_of(std::string("\x93NUMPY\4\0\1\0\0\0{", 13)), ".npy version 4.0, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(refusal_of(std::string("\x93NUMPY\1\0\xff\0{}", 12)), "a header of 255 bytes in a file of 12");
  EXPECT_EQ(refusal_of(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14)),
            "a header of 4294967295 bytes in a file of 14");
  EXPECT_EQ(refusal("[]"), "expected '{' at byte 0 of the header, found \"[]\"");
  EXPECT_EQ(refusal("{'descr': '<f4'"), "expected ',' or '}' at byte 15 of the header, found its end");
  EXPECT_EQ(refusal("{'descr': '<f4}"), "expected a string that ends at byte 10 of the header, found \"'<f4}\"");
  EXPECT_EQ(refusal("{descr: '<f4'}"), "expected a string at byte 1 of the header, found \"descr: '<f4'\"");
  EXPECT_EQ(refusal("{'descr' '<f4'}"), "expected ':' at byte 9 of the header, found \"'<f4'}\"");
  EXPECT_EQ(refusal("{'descr': '<f4', 'fortran_order': 0}"),
            "expected True or False at byte 34 of the header, found \"0}\"");
  EXPECT_EQ(refusal("{'shape': (1 2)}"), "expected ',' or ')' at byte 13 of the header, found \"2)}\"");
  EXPECT_EQ(refusal("{'shape': (x)}"), "expected a size at byte 11 of the header, found \"x)}\"");
  EXPECT_EQ(refusal("{'shape': 3}"), "expected '(' at byte 10 of the header, found \"3}\"");
  EXPECT_EQ(refusal("{'descr': '<f4', 'descr': '<f8'}"), "the header has the key 'descr' twice");
  EXPECT_EQ(refusal("{'author': 'me'}"), "the header has the key 'author'");
  EXPECT_EQ(refusal("{'descr': '<f4', 'fortran_order': False}"), "the header lacks the key 'shape'");
  EXPECT_EQ(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': ()} 3"),
            "expected the end of the header at byte 54 of the header, found \"3\"");
}

TEST_F(NpyFile, RefusesToWriteWhatItCannot) {
  const std::string start = "cannot write " + path("a.npy") + ": ";
  EXPECT_EQ(message_of([&] { write_npy(path("a.npy"), host<std::uint16_t>("bf16", {1}, {1})); }),
            start + ".npy files have no bf16: convert to f32, or write .safetensors");
  EXPECT_EQ(message_of([&] { write_npy(path("a.npy"), host<float>("f32", {2}, {1})); }),
            start + "f32[2] has 8 bytes, found 4");
  HostTensor deep{"f32", std::vector<std::int64_t>(40000, 1), std::vector<std::byte>(4)};
  EXPECT_EQ(message_of([&] { write_npy(path("a.npy"), deep); }), start + "40000 sizes are too many");
  deep.data.clear();
  EXPECT_EQ(message_of([&] { write_npy(path("a.npy"), deep); }),
            start + "f32[1,1,1,1,1,1,1,1,...: 40000 axes] has 4 bytes, found 0");
  EXPECT_EQ(message_of([&] { write_npy(path("none/a.npy"), host<float>("f32", {1}, {1})); }),
            "cannot write " + path("none/a.npy") + ": No such file or directory");
  EXPECT_EQ(message_of([&] { read_npy(path("none.npy")); }),
            "cannot read " + path("none.npy") + ": No such file or directory");
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace burin::io
