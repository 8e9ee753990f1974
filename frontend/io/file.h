// Files as bytes: reading pieces of one, and replacing one as a whole. Every failure is a burin::Error with path and
// reason; the reasons are rows of base/messages.def.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <burin/trace.h>

#include "base/message.h"

namespace burin::io {

/// Throws "cannot read <place>: <message>". The place is a path, or a path and a part of the file. In a function of the
/// public headers the caller's line stands behind.
template <class... Args>
[[noreturn]] void fail_reading(const std::string& place, Msg id, const Args&... args) {
  throw_message(id, "cannot read " + place + ": " + format_message(id, args...), detail::where_text({}));
}
/// Throws "cannot write <place>: <message>".
template <class... Args>
[[noreturn]] void fail_writing(const std::string& place, Msg id, const Args&... args) {
  throw_message(id, "cannot write " + place + ": " + format_message(id, args...), detail::where_text({}));
}

/// A regular file that is open for reading.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }
  /// Fills `out` from byte `offset` on; the file must have so many.
  void read(std::int64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

/// Writes the pieces, one after another, to a temporary file beside `path`, and renames it when all is on disk: whoever
/// reads `path` sees the old file or the new one, and a failure leaves nothing behind. A device or pipe is written to
/// directly. A link stays: what it leads to is replaced. The permissions of a file that is replaced stay.
void replace_file(const std::string& path, const std::vector<std::span<const std::byte>>& pieces);

}  // namespace burin::io
