#include "frontend/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "base/message_ids.h"
#include "frontend/io/file.h"

namespace burin::io {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t longest_header = 100'000'000;  // the format's own limit
constexpr const char* metadata_key = "__metadata__";

constexpr std::array<std::pair<const char*, const char*>, 13> dtype_names{{{"F64", "f64"},
                                                                           {"F32", "f32"},
                                                                           {"F16", "f16"},
                                                                           {"BF16", "bf16"},
                                                                           {"I8", "i8"},
                                                                           {"I16", "i16"},
                                                                           {"I32", "i32"},
                                                                           {"I64", "i64"},
                                                                           {"U8", "u8"},
                                                                           {"U16", "u16"},
                                                                           {"U32", "u32"},
                                                                           {"U64", "u64"},
                                                                           {"BOOL", "bool"}}};

// What a header says of one tensor.
struct Entry {
  std::string name;
  HostTensor tensor;  // without data
  std::int64_t begin = 0, end = 0;
};

// The library's messages begin with its own name in brackets.
std::string plain(const std::string& text) {
  const std::size_t bracket = text.find("] ");
  return bracket == std::string::npos ? text : text.substr(bracket + 2);
}

// The JSON library lets the last of two equal names win; here the first to come twice is kept, and refused by the
// caller. A text that begins with { and parses is an object.
Json parse_header(const std::string& path, const std::string& text) {
  std::vector<std::set<std::string>> names;
  std::optional<std::string> twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !twice && !names.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  Json header;
  try {
    header = Json::parse(text, watch);
  } catch (const Json::exception& error) {
    fail_reading(path, Msg::safetensors_json, plain(error.what()));
  }
  if (twice) fail_reading(path, Msg::safetensors_name_twice, *twice);
  return header;
}

std::string place_of(const std::string& path, const std::string& tensor) {
  return fmt::format("{}: tensor '{}'", path, tensor);
}

class EntryReader {
 public:
  EntryReader(const std::string& path, std::string name) : place_(place_of(path, name)) { entry_.name = std::move(name); }

  Entry read(const Json& value, std::int64_t data_bytes) {
    if (!value.is_object()) fail(Msg::safetensors_entry_type, value.type_name());
    read_dtype(member(value, "dtype"));
    entry_.tensor.shape = integers(member(value, "shape"), "shape");
    const std::vector<std::int64_t> offsets = integers(member(value, "data_offsets"), "data_offsets");
    if (offsets.size() != 2) fail(Msg::safetensors_offset_count, offsets.size());
    entry_.begin = offsets[0];
    entry_.end = offsets[1];
    if (entry_.begin > entry_.end) fail(Msg::safetensors_offset_order, entry_.begin, entry_.end);
    if (entry_.end > data_bytes) fail(Msg::safetensors_offset_range, entry_.begin, entry_.end, counted(data_bytes, "byte"));
    const std::string type = describe(entry_.tensor.dtype, entry_.tensor.shape);
    const std::int64_t expected = tensor_bytes(entry_.tensor.dtype, entry_.tensor.shape);
    if (expected < 0) fail(Msg::file_tensor_too_large, type);
    if (expected != entry_.end - entry_.begin)
      fail(Msg::safetensors_offset_size, type, counted(expected, "byte"), entry_.begin, entry_.end, entry_.end - entry_.begin);
    return std::move(entry_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(Msg id, const Args&... args) const {
    fail_reading(place_, id, args...);
  }

  const Json& member(const Json& value, const char* name) const {
    const auto at = value.find(name);
    if (at == value.end()) fail(Msg::safetensors_key_missing, name);
    return *at;
  }

  void read_dtype(const Json& value) {
    if (!value.is_string()) fail(Msg::safetensors_dtype_type, value.type_name());
    const std::string& name = value.get_ref<const std::string&>();
    const auto at = std::find_if(dtype_names.begin(), dtype_names.end(), [&](auto& row) { return row.first == name; });
    if (at == dtype_names.end()) fail(Msg::safetensors_dtype, name);
    entry_.tensor.dtype = at->second;
  }

  std::vector<std::int64_t> integers(const Json& value, const char* what) const {
    if (!value.is_array()) fail(Msg::safetensors_no_array, what, value.type_name());
    std::vector<std::int64_t> numbers;
    for (const Json& item : value) {
      if (!item.is_number_unsigned() || item.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
        fail(Msg::safetensors_no_integer, what, item.is_number() ? item.dump() : item.type_name());
      numbers.push_back(item.get<std::int64_t>());
    }
    return numbers;
  }

  std::string place_;
  Entry entry_;
};

// Every byte of the data belongs to one tensor.
void check_layout(const std::string& path, std::vector<Entry>& entries, std::int64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::int64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < at)
      fail_reading(place_of(path, entry.name), Msg::safetensors_overlap, entry.begin, entry.end, at);
    if (entry.begin > at)
      fail_reading(path, Msg::safetensors_gap, at, entry.begin, entry.name);
    at = entry.end;
  }
  if (at != data_bytes) fail_reading(path, Msg::safetensors_rest, counted(data_bytes - at, "byte"), at);
}

std::map<std::string, std::string> read_metadata(const std::string& path, const Json& value) {
  std::map<std::string, std::string> metadata;
  if (!value.is_object()) fail_reading(path, Msg::safetensors_metadata_type, metadata_key, value.type_name());
  for (const auto& [name, text] : value.items()) {
    if (!text.is_string()) fail_reading(path, Msg::safetensors_metadata_text, metadata_key, name, text.type_name());
    metadata[name] = text.get<std::string>();
  }
  return metadata;
}

const char* file_dtype(const std::string& dtype) {
  for (const auto& [theirs, ours] : dtype_names)
    if (dtype == ours) return theirs;
  return nullptr;
}

}  // namespace

Safetensors read_safetensors(const std::string& path) {
  const InputFile file(path);
  std::uint64_t header_bytes = 0;
  if (file.size() < 8) fail_reading(path, Msg::safetensors_short, counted(file.size(), "byte"));
  file.read(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
  if (header_bytes > longest_header)
    fail_reading(path, Msg::safetensors_header_long, header_bytes, longest_header);
  const std::int64_t data_start = 8 + static_cast<std::int64_t>(header_bytes);
  if (data_start > file.size()) fail_reading(path, Msg::file_header_size, counted(header_bytes, "byte"), file.size());
  std::string text(header_bytes, '\0');
  file.read(8, std::as_writable_bytes(std::span(text.data(), text.size())));
  if (!text.starts_with('{')) fail_reading(path, Msg::safetensors_header_start);

  const Json header = parse_header(path, text);
  Safetensors result;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == metadata_key)
      result.metadata = read_metadata(path, value);
    else
      entries.push_back(EntryReader(path, name).read(value, file.size() - data_start));
  }
  check_layout(path, entries, file.size() - data_start);
  for (Entry& entry : entries) {
    make_room("cannot read " + path, entry.tensor, entry.end - entry.begin);
    file.read(data_start + entry.begin, entry.tensor.data);
    normalize_bools(entry.tensor);
    result.tensors.emplace(std::move(entry.name), std::move(entry.tensor));
  }
  return result;
}

void write_safetensors(const std::string& path, const Safetensors& file) {
  std::vector<const std::pair<const std::string, HostTensor>*> order;
  for (const auto& tensor : file.tensors) {
    check_before_writing(place_of(path, tensor.first), tensor.second);
    if (tensor.first == metadata_key) fail_writing(path, Msg::safetensors_reserved_name, metadata_key);
    order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, [](const auto* tensor) {
    return std::pair(-dtype_bytes(tensor->second.dtype), std::string_view(tensor->first));
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) header[metadata_key] = file.metadata;
  std::vector<std::span<const std::byte>> pieces(2);
  std::uint64_t at = 0;
  for (const auto* tensor : order) {
    const auto& [name, value] = *tensor;
    header[name] = {
        {"dtype", file_dtype(value.dtype)}, {"shape", value.shape}, {"data_offsets", {at, at + value.data.size()}}};
    at += value.data.size();
    pieces.push_back(value.data);
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::ordered_json::exception& error) {
    fail_writing(path, Msg::safetensors_not_utf8, plain(error.what()));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > longest_header)
    fail_writing(path, Msg::safetensors_header_written, text.size(), longest_header);
  const std::uint64_t header_bytes = text.size();
  pieces[0] = std::as_bytes(std::span(&header_bytes, 1));
  pieces[1] = std::as_bytes(std::span(text.data(), text.size()));
  replace_file(path, pieces);
}

}  // namespace burin::io
