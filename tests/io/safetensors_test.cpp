#include "frontend/io/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdint>

#include "frontend/io/file.h"
#include "tests/io/file_bytes.h"

namespace burin::io {
namespace {

std::string with_length(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

class SafetensorsFile : public FileTest {
 protected:
  Safetensors read(const std::string& header, const std::string& data) {
    return read_safetensors(write("x.safetensors", with_length(header, data)));
  }
  /// The message without "cannot read <path>: ".
  std::string refusal(const std::string& bytes) {
    const std::string file = write("x.safetensors", bytes);
    const std::string message = message_of([&] { read_safetensors(file); });
    const std::string start = "cannot read " + file + ": ";
    EXPECT_EQ(message.substr(0, start.size()), start);
    return message.size() < start.size() ? message : message.substr(start.size());
  }
  std::string refusal(const std::string& header, const std::string& data) { return refusal(with_length(header, data)); }
};

std::string zeros(std::size_t n) { return std::string(n, '\0'); }

Safetensors every_dtype() {
  Safetensors file;
  for (const char* dtype : {"f64", "f32", "bf16", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(15 * dtype_bytes(dtype)));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(37 * i + 11);
    file.tensors[std::string("layer/") + dtype] = host<std::uint8_t>(dtype, {3, 5}, bytes);
  }
  file.tensors["mask"] = host<std::uint8_t>("bool", {3}, {1, 0, 1});
  file.tensors["scalar"] = host<float>("f32", {}, {2.5f});
  file.tensors["empty"] = host<float>("f32", {4, 0, 2}, {});
  file.tensors["one"] = host<float>("f32", {1}, {-0.0f});
  file.metadata = {{"format", "pt"}, {"note", "quote \" and ümlaut"}};
  return file;
}

TEST_F(SafetensorsFile, RoundTripOfEveryDtype) {
  const Safetensors file = every_dtype();
  write_safetensors(path("a.safetensors"), file);
  EXPECT_EQ(read_safetensors(path("a.safetensors")), file);
  EXPECT_EQ(files(), std::vector<std::string>{"a.safetensors"});
  write_safetensors(path("a.safetensors"), {});
  EXPECT_EQ(read_safetensors(path("a.safetensors")), Safetensors{});
}

TEST_F(SafetensorsFile, WritesTheFormatByteByByte) {
  Safetensors file;
  file.tensors["b"] = host<float>("f32", {2}, {1, 2});
  file.tensors["a"] = host<std::uint8_t>("u8", {1}, {7});
  file.metadata["k"] = "v";
  write_safetensors(path("a.safetensors"), file);
  const std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const float values[] = {1, 2};
  EXPECT_EQ(bytes_of(path("a.safetensors")),
            with_length(padded, std::string(reinterpret_cast<const char*>(values), 8) + "\x07"));
}

TEST_F(SafetensorsFile, DataMayBeginAtAnyByte) {
  std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})";
  if (header.size() % 2 == 0) header += ' ';
  const float values[] = {1, 2};
  const Safetensors file = read(header, "\x07" + std::string(reinterpret_cast<const char*>(values), 8));
  EXPECT_EQ(file.tensors.at("a"), host<std::uint8_t>("u8", {1}, {7}));
  EXPECT_EQ(file.tensors.at("b"), host<float>("f32", {2}, {1, 2}));
}

TEST_F(SafetensorsFile, AnyByteButZeroIsTrue) {
  const Safetensors file =
      read(R"({"m":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", std::string("\x02\x00\xff", 3));
  EXPECT_EQ(file.tensors.at("m"), host<std::uint8_t>("bool", {3}, {1, 0, 1}));
}

TEST_F(SafetensorsFile, IgnoresMembersItDoesNotKnow) {
  const Safetensors file = read(R"({"m":{"later":[1],"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "\x05");
  EXPECT_EQ(file.tensors.at("m"), host<std::uint8_t>("u8", {}, {5}));
}

// A public report of safetensors: of two equal names the last one won.
TEST_F(SafetensorsFile, RefusesANameThatComesTwice) {
  const std::string twice = "the name 'a' is in the header twice";
  EXPECT_EQ(
      refusal(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          zeros(8)),
      twice);
  EXPECT_EQ(
      refusal(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
          zeros(4)),
      twice);
  EXPECT_EQ(
      refusal(
          R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          zeros(8)),
      twice);
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[1],"shape":[2],"data_offsets":[0,4]}})", zeros(4)),
            "the name 'shape' is in the header twice");
  EXPECT_EQ(refusal(R"({"__metadata__":{"k":"1","k":"2"}})", ""), "the name 'k' is in the header twice");
  EXPECT_EQ(
      read(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          zeros(2))
          .tensors.size(),
      2u);
}

// A public report of mlx: offsets were not held against shape, dtype and file.
TEST_F(SafetensorsFile, RefusesOffsetsThatDoNotFit) {
  const auto one = [&](const std::string& shape, const std::string& offsets, std::size_t data) {
    return refusal(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", zeros(data));
  };
  EXPECT_EQ(one("[1000,1000]", "[0,4]", 4), "tensor 'a': f32[1000,1000] has 4000000 bytes, data_offsets [0,4] hold 4");
  EXPECT_EQ(one("[1]", "[4,0]", 4), "tensor 'a': data_offsets [4,0] end before they begin");
  EXPECT_EQ(one("[2]", "[0,8]", 4), "tensor 'a': data_offsets [0,8] are beyond the 4 bytes of data");
  EXPECT_EQ(one("[8589934592,8589934592]", "[0,4]", 4),
            "tensor 'a': f32[8589934592,8589934592] has more bytes than can be counted in 63 bits");
  EXPECT_EQ(one("[4294967296,4294967296]", "[0,0]", 0),
            "tensor 'a': f32[4294967296,4294967296] has more bytes than can be counted in 63 bits");
  EXPECT_EQ(one("[0,4294967296,4294967296]", "[0,0]", 0),
            "tensor 'a': f32[0,4294967296,4294967296] has more bytes than can be counted in 63 bits");
  EXPECT_EQ(one("[4]", "[0,9]", 9), "tensor 'a': f32[4] has 16 bytes, data_offsets [0,9] hold 9");
  EXPECT_EQ(one("[]", "[0,0]", 0), "tensor 'a': f32[] has 4 bytes, data_offsets [0,0] hold 0");
  EXPECT_EQ(one("[1]", "[0,4]", 7), "3 bytes behind the last tensor, which ends at 4");
  EXPECT_EQ(one("[1]", "[2,6]", 6), "bytes 0 to 2 of the data, before tensor 'a', belong to no tensor");
  EXPECT_EQ(refusal("{}", "x"), "1 byte behind the last tensor, which ends at 0");
  EXPECT_EQ(
      refusal(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
          zeros(6)),
      "tensor 'b': data_offsets [2,6] overlap the tensor before, which ends at 4");
  EXPECT_EQ(
      refusal(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
          zeros(4)),
      "tensor 'b': data_offsets [0,4] overlap the tensor before, which ends at 4");
  EXPECT_EQ(
      refusal(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}})",
          zeros(10)),
      "bytes 4 to 6 of the data, before tensor 'b', belong to no tensor");
}

TEST_F(SafetensorsFile, RefusesMalformedHeaders) {
  EXPECT_EQ(refusal(""), "it has 0 bytes, a .safetensors file begins with 8 of header length");
  EXPECT_EQ(refusal("1234567"), "it has 7 bytes, a .safetensors file begins with 8 of header length");
  EXPECT_EQ(refusal(zeros(8)), "the header does not begin with '{'");
  EXPECT_EQ(refusal(std::string(16, '\xff')),
            "a header of 18446744073709551615 bytes, expected at most 100000000: this is not a .safetensors file");
  EXPECT_EQ(refusal(with_length("{}", "").substr(0, 9)), "a header of 2 bytes in a file of 9");
  EXPECT_EQ(refusal(" {}", ""), "the header does not begin with '{'");
  EXPECT_EQ(refusal(R"({"a":)", "").find("the header is not valid JSON: parse error at line 1, column 6"), 0u);
  EXPECT_EQ(refusal("{} x", "").find("the header is not valid JSON: "), 0u);
  EXPECT_EQ(refusal("{\"\xff\":1}", "").find("the header is not valid JSON: "), 0u);
  EXPECT_EQ(read("{}    ", ""), Safetensors{});
}

TEST_F(SafetensorsFile, RefusesMalformedEntries) {
  const auto entry = [&](const std::string& value) { return refusal("{\"w\":" + value + "}", zeros(4)); };
  EXPECT_EQ(entry("3"), "tensor 'w': expected an object, found number");
  EXPECT_EQ(entry(R"({"shape":[1],"data_offsets":[0,4]})"), "tensor 'w': 'dtype' is missing");
  EXPECT_EQ(entry(R"({"dtype":"F32","data_offsets":[0,4]})"), "tensor 'w': 'shape' is missing");
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":[1]})"), "tensor 'w': 'data_offsets' is missing");
  EXPECT_EQ(entry(R"({"dtype":32,"shape":[1],"data_offsets":[0,4]})"),
            "tensor 'w': dtype is number, expected a string");
  EXPECT_EQ(entry(R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})"),
            "tensor 'w': dtype 'F8_E4M3', expected one of F64 F32 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 BOOL");
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})"),
            "tensor 'w': shape is number, expected an array");
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"),
            "tensor 'w': shape holds -1, expected integers from 0 to 2^63-1");
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})"),
            "tensor 'w': shape holds 1.0, expected integers from 0 to 2^63-1");
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":["1"],"data_offsets":[0,4]})"),
            "tensor 'w': shape holds string, expected integers from 0 to 2^63-1");
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]})"),
            "tensor 'w': shape holds 9223372036854775808, expected integers from 0 to 2^63-1");
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"),
            "tensor 'w': data_offsets has 1 numbers, expected 2");
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,-4]})"),
            "tensor 'w': data_offsets holds -4, expected integers from 0 to 2^63-1");
  EXPECT_EQ(refusal(R"({"__metadata__":[]})", ""), "__metadata__: expected an object, found array");
  EXPECT_EQ(refusal(R"({"__metadata__":{"k":1}})", ""), "__metadata__: 'k' is number, expected a string");
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":)" + deep + R"(,"data_offsets":[0,4]})"),
            "tensor 'w': shape holds array, expected integers from 0 to 2^63-1");
}

TEST_F(SafetensorsFile, RefusesWhatIsNoFile) {
  EXPECT_EQ(message_of([&] { read_safetensors(path("none")); }),
            "cannot read " + path("none") + ": No such file or directory");
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(message_of([&] { read_safetensors(path("folder")); }),
            "cannot read " + path("folder") + ": Is a directory");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(message_of([&] { read_safetensors(path("pipe")); }),
            "cannot read " + path("pipe") + ": not a regular file");
}

TEST_F(SafetensorsFile, RefusesToWriteWhatIsNoTensor) {
  const auto writing = [&](const std::string& name, HostTensor tensor) {
    const std::string message = message_of([&] { write_safetensors(path("w"), {{{name, std::move(tensor)}}, {}}); });
    EXPECT_TRUE(files().empty());
    return message;
  };
  const std::string start = "cannot write " + path("w") + ": ";
  EXPECT_EQ(writing("a", host<float>("f32", {3}, {1, 2})), start + "tensor 'a': f32[3] has 12 bytes, found 8");
  EXPECT_EQ(writing("a", host<float>("F32", {2}, {1, 2})), start + "tensor 'a': there is no dtype 'F32'");
  EXPECT_EQ(writing("a", host<float>("f32", {-2}, {1, 2})), start + "tensor 'a': f32[-2] is no possible shape");
  EXPECT_EQ(writing("__metadata__", host<float>("f32", {1}, {1})), start + "no tensor can be named '__metadata__'");
  EXPECT_EQ(
      writing("\xff", host<float>("f32", {1}, {1})).find(start + "a name or a text of the metadata is not UTF-8: "),
      0u);
}

TEST_F(SafetensorsFile, RefusesToWriteAHeaderThatNobodyReads) {
  Safetensors file;
  file.metadata["k"] = std::string(100'000'000, 'x');
  EXPECT_EQ(message_of([&] { write_safetensors(path("w"), file); }),
            "cannot write " + path("w") + ": a header of 100000032 bytes, expected at most 100000000");
  EXPECT_TRUE(files().empty());
}

TEST_F(SafetensorsFile, AFileThatShrinksWhileItIsReadIsAnError) {
  const InputFile file(write("a", "0123456789"));
  std::filesystem::resize_file(path("a"), 4);
  std::vector<std::byte> bytes(10);
  EXPECT_EQ(message_of([&] { file.read(0, bytes); }),
            "cannot read " + path("a") + ": it became shorter than 10 bytes while it was read");
}

TEST_F(SafetensorsFile, AFailureToWriteLeavesTheOldFile) {
  Safetensors file;
  file.tensors["w"] = host<float>("f32", {1}, {3});
  write_safetensors(path("a"), file);
  const std::string before = bytes_of(path("a"));
  file.tensors["w"] = host<float>("f32", {100000}, std::vector<float>(100000, 1));

  rlimit old_limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit{4096, old_limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message = message_of([&] { write_safetensors(path("a"), file); });
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(message, "cannot write " + path("a") + ": File too large");
  EXPECT_EQ(bytes_of(path("a")), before);
  EXPECT_EQ(files(), std::vector<std::string>{"a"});
}

TEST_F(SafetensorsFile, AnUnwritableFolderIsAnError) {
  EXPECT_EQ(message_of([&] { write_safetensors(path("none/a"), {}); }),
            "cannot write " + path("none/a") + ": No such file or directory");
  write("file", "");
  EXPECT_EQ(message_of([&] { write_safetensors(path("file/a"), {}); }),
            "cannot write " + path("file/a") + ": Not a directory");
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(message_of([&] { write_safetensors(path("folder"), {}); }),
            "cannot write " + path("folder") + ": Is a directory");
  ::chmod(path("folder").c_str(), 0555);
  const bool root = ::geteuid() == 0;
  ASSERT_TRUE(!root || ::seteuid(65534) == 0);  // root may write everywhere
  const std::string message = message_of([&] { write_safetensors(path("folder/a"), {}); });
  ASSERT_TRUE(!root || ::seteuid(0) == 0);
  EXPECT_EQ(message, "cannot write " + path("folder/a") + ": Permission denied");
  EXPECT_TRUE(std::filesystem::is_empty(path("folder")));
}

TEST_F(SafetensorsFile, ADeviceStaysADevice) {
  write_safetensors("/dev/null", every_dtype());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(message_of([] { write_safetensors("/dev/full", {}); }), "cannot write /dev/full: No space left on device");
}

}  // namespace
}  // namespace burin::io
