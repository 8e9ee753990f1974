// Files by key in one folder, which all processes of a user share: what is dear to make outlives the process that made
// it.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"

namespace burin {

/// Bytes by 128-bit key. What is read is what was written under that key, whole, or nothing: an entry carries its key
/// and a checksum of its bytes, is read into memory once, and appears by an atomic rename. Only files of the user's own
/// count, and no symbolic links. Safe to use from any number of threads and processes at once, forked ones too. Reading
/// and writing throw nothing: a disk that is full or a folder that is gone makes entries absent. What else lies in the
/// folder is left alone: entries are named by 32 hexadecimal digits and ".burin".
class FileCache {
 public:
  static constexpr std::int64_t default_max_bytes = std::int64_t{256} << 20;

  /// The cache in `directory`, which is made (mode 0700, as are its missing parents) when it is not there. Null when it
  /// may not be trusted or used, with the reason in *why: no folder, a symbolic link, somebody else's, open to others,
  /// not writable, or yet to be made by root in the folder of another user. The entries used longest ago are removed when all take more than `max_bytes`; each process looks
  /// after at most 1/64 of that newly written, so the sum exceeds the bound by no more than this times the number of
  /// processes that write.
  static std::shared_ptr<FileCache> open(const std::string& directory, std::string* why,
                                         std::int64_t max_bytes = default_max_bytes);
  FileCache(const FileCache&) = delete;
  FileCache& operator=(const FileCache&) = delete;

  /// Asks again what `open` did, and makes a folder that was removed; the reason in *why if not. Reading and writing ask
  /// too, but make nothing.
  bool is_usable(std::string* why) const;
  /// The bytes written under `key`, and marks them as used now.
  std::optional<std::string> read(const Hash128& key) const;
  /// An entry that is larger than the bound, or than the process's files may be, is not written.
  void write(const Hash128& key, std::string_view bytes);

 private:
  FileCache(std::string path, std::int64_t max_bytes)
      : path_(std::move(path)), max_bytes_(max_bytes), unchecked_bytes_(max_bytes) {}
  void evict(int folder);

  std::string path_;
  std::int64_t max_bytes_;
  std::atomic<std::int64_t>
      unchecked_bytes_;  // written since the last look at the folder's size; the first write looks
  std::mutex evicting_;
};

}  // namespace burin
