#include "frontend/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/counted.h"
#include "base/message_ids.h"
#include "base/write_all.h"

namespace burin::io {
namespace {

// Linux reads at most 0x7ffff000 bytes at a time.
constexpr std::size_t largest_read = 1 << 30;

std::string reason_of(int error) { return std::strerror(error); }

// 0 or the error.
int write_pieces(int descriptor, const std::vector<std::span<const std::byte>>& pieces) {
  for (const std::span<const std::byte> piece : pieces)
    if (const int error = write_all(descriptor, piece); error != 0) return error;
  return 0;
}

// What a name without a file can be said to be: the system would read another one.
template <class Fail>
void check_name(const std::string& path, const Fail& fail) {
  if (path.empty()) fail("a file", Msg::file_name_empty);
  if (const std::size_t nul = path.find('\0'); nul != std::string::npos) fail(path.substr(0, nul), Msg::file_name_nul);
}

// The file that a chain of links leads to, which need not be there.
std::string behind_links(std::string path) {
  constexpr int longest_chain = 40;  // Linux follows as many
  for (int i = 0; i < longest_chain; ++i) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) return path;
    path = (std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

int close_error(int descriptor) { return ::close(descriptor) == 0 || errno == EINTR ? 0 : errno; }

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  check_name(path, [](const std::string& place, Msg id) { fail_reading(place, id); });
  // A pipe without a writer must not hold the process up before it is found to be no file.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_reading(path, Msg::file_system, reason_of(errno));
  struct stat status;
  const int error = ::fstat(descriptor_, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
  if (error != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    if (error != 0) fail_reading(path, Msg::file_system, reason_of(error));
    fail_reading(path, Msg::file_not_regular);
  }
  size_ = status.st_size;
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(descriptor_, out.data(), std::min(out.size(), largest_read), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_reading(path_, Msg::file_system, reason_of(errno));
    if (n == 0) fail_reading(path_, Msg::file_shrank, counted(size_, "byte"));
    out = out.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
}

void replace_file(const std::string& path, const std::vector<std::span<const std::byte>>& pieces) {
  check_name(path, [](const std::string& place, Msg id) { fail_writing(place, id); });
  struct stat status;
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail_writing(path, Msg::file_system, reason_of(EISDIR));
  if (exists && !S_ISREG(status.st_mode)) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) fail_writing(path, Msg::file_system, reason_of(errno));
    const int error = write_pieces(descriptor, pieces);
    const int closing = close_error(descriptor);
    if (error != 0 || closing != 0) fail_writing(path, Msg::file_system, reason_of(error != 0 ? error : closing));
    return;
  }
  static std::atomic<int> count{0};
  const std::string target = behind_links(path);
  const std::string temporary = fmt::format("{}.{}-{}.part", target, ::getpid(), count.fetch_add(1));
  // Nobody may read a moment earlier what he may not read in the end.
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, exists ? 0600 : 0666);
  if (descriptor < 0) fail_writing(path, Msg::file_system, reason_of(errno));
  int error = exists && ::fchmod(descriptor, status.st_mode & 0777) != 0 ? errno : 0;
  if (error == 0) error = write_pieces(descriptor, pieces);
  if (error == 0 && ::fsync(descriptor) != 0) error = errno;
  const int closing = close_error(descriptor);
  if (error == 0) error = closing;
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  fail_writing(path, Msg::file_system, reason_of(error));
}

}  // namespace burin::io
