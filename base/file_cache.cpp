#include "base/file_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

namespace burin {
namespace {

constexpr char magic[8] = {'B', 'U', 'R', 'I', 'N', 'F', 'C', '1'};
constexpr std::string_view temporary_prefix = "new-";
constexpr std::time_t abandoned_after_s = 3600;  // a temporary file whose process died before the rename

struct Header {
  char magic[8];
  Hash128 key;
  Hash128 checksum;  // of the bytes
  std::uint64_t size;
};
static_assert(sizeof(Header) == 48);

Hash128 checksum(std::string_view bytes) {
  Hasher hasher;
  hasher.add(bytes);
  return hasher.finish();
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

bool read_all(int fd, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = ::read(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_all(int fd, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    (void)::mkdir(path.substr(0, slash).c_str(), 0700);  // those that are there already are fine
  return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

std::string reason(int error) { return std::strerror(error); }

}  // namespace

std::shared_ptr<FileCache> FileCache::open(const std::string& directory, std::string* why, std::int64_t max_bytes) {
  std::string path = directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();  // behind a slash, a symbolic link would be followed
  const auto refuse = [&](const std::string& text) {
    *why = path + " " + text;
    return nullptr;
  };
  if (path.empty() || path[0] != '/') return refuse("is not an absolute path");
  if (!make_folders(path)) return refuse("cannot be made: " + reason(errno));
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0) {
    struct stat status;
    const int error = errno;
    if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) return refuse("is a symbolic link");
    return refuse("cannot be opened: " + reason(error));
  }
  struct stat status;
  if (::fstat(folder.get(), &status) != 0) return refuse("cannot be looked at: " + reason(errno));
  if (status.st_uid != ::geteuid()) return refuse("belongs to another user");
  if ((status.st_mode & 0777) != 0700) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 0777));
    return refuse("has mode " + std::string(mode) + ", not 0700");
  }
  if (::faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return refuse("cannot be written: " + reason(errno));
  return std::shared_ptr<FileCache>(new FileCache(folder.release(), max_bytes));
}

FileCache::~FileCache() { ::close(folder_); }

std::optional<std::string> FileCache::read(const Hash128& key) const {
  // O_NONBLOCK: a pipe of that name is refused, not waited for.
  const Descriptor file(::openat(folder_, key.hex().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) return std::nullopt;
  Header header;
  if (!read_all(file.get(), &header, sizeof header)) return std::nullopt;
  const bool fits = std::memcmp(header.magic, magic, sizeof magic) == 0 && header.key == key &&
                    header.size == static_cast<std::uint64_t>(status.st_size) - sizeof header &&
                    header.size <= static_cast<std::uint64_t>(max_bytes_);
  if (!fits) return std::nullopt;
  std::string bytes(header.size, '\0');
  if (!read_all(file.get(), bytes.data(), bytes.size()) || checksum(bytes) != header.checksum) return std::nullopt;
  (void)::futimens(file.get(), nullptr);  // used now; only the order of eviction suffers when it fails
  return bytes;
}

void FileCache::write(const Hash128& key, std::string_view bytes) {
  static std::atomic<std::uint64_t> count{0};
  const std::string temporary =
      std::string(temporary_prefix) + std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1));
  Descriptor file(::openat(folder_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return;
  Header header{.magic = {}, .key = key, .checksum = checksum(bytes), .size = bytes.size()};
  std::memcpy(header.magic, magic, sizeof magic);
  // Not synced: after a crash of the machine the checksum finds what did not reach the disk.
  const bool written = write_all(file.get(), &header, sizeof header) &&
                       write_all(file.get(), bytes.data(), bytes.size()) && ::close(file.release()) == 0 &&
                       ::renameat(folder_, temporary.c_str(), folder_, key.hex().c_str()) == 0;
  if (!written) {
    (void)::unlinkat(folder_, temporary.c_str(), 0);
    return;
  }
  const auto size = static_cast<std::int64_t>(sizeof header + bytes.size());
  if (unchecked_bytes_.fetch_add(size) + size >= max_bytes_ / 64) evict();
}

void FileCache::evict() {
  const std::unique_lock lock(evicting_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  unchecked_bytes_ = 0;
  struct Entry {
    std::string name;
    std::int64_t size;
    timespec used;
  };
  std::vector<Entry> entries;
  std::int64_t sum = 0;
  const int listed = ::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = listed < 0 ? nullptr : ::fdopendir(listed);
  if (folder == nullptr) {
    if (listed >= 0) ::close(listed);
    return;
  }
  while (const dirent* found = ::readdir(folder)) {
    struct stat status;
    if (::fstatat(folder_, found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    const std::string_view name = found->d_name;
    if (name.starts_with(temporary_prefix)) {
      if (std::time(nullptr) - status.st_mtime > abandoned_after_s) (void)::unlinkat(folder_, found->d_name, 0);
      continue;
    }
    const bool is_entry = name.size() == 32 && name.find_first_not_of("0123456789abcdef") == name.npos;
    if (!is_entry) continue;  // not ours to remove
    entries.push_back({found->d_name, status.st_size, status.st_mtim});
    sum += status.st_size;
  }
  ::closedir(folder);
  if (sum <= max_bytes_) return;
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  // A quarter more than need be, so that a full cache is not looked through again at once.
  for (const Entry& entry : entries) {
    if (sum <= max_bytes_ / 4 * 3) break;
    (void)::unlinkat(folder_, entry.name.c_str(), 0);
    sum -= entry.size;
  }
}

}  // namespace burin
