#include "base/file_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/write_all.h"

namespace burin {
namespace {

constexpr char magic[8] = {'B', 'U', 'R', 'I', 'N', 'F', 'C', '1'};
// Names that nobody else gives: the folder may be one in which the user keeps other things.
constexpr std::string_view entry_suffix = ".burin", temporary_suffix = ".burin-new";
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
  void reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

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

std::string entry_name(const Hash128& key) { return key.hex() + std::string(entry_suffix); }

/// Whether `name` is `digits`, at least one, and `suffix`.
bool is_named(std::string_view name, std::string_view digits, std::string_view suffix) {
  return name.size() > suffix.size() && name.ends_with(suffix) && name.find_first_not_of(digits) == name.size() - suffix.size();
}

// A process that writes beyond its limit on the size of files is killed by a signal.
bool may_be_written(std::size_t size) {
  rlimit limit;
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur);
}

std::string reason(int error) { return std::strerror(error); }

/// Makes what is missing of the folder. False with the reason in *why.
bool make_folders(const std::string& path, std::string* why) {
  int first_error = 0;
  bool made = true;
  uid_t owner_above = 0;
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    struct stat status;
    if (::stat(folder.c_str(), &status) == 0) {
      owner_above = status.st_uid;
    } else if (::geteuid() == 0 && owner_above != 0) {
      // Of root's, it would be in the way of the user whose home this is.
      *why = "is not there, and root makes no folder in another user's";
      return false;
    } else {
      made = ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
      if (!made && first_error == 0) first_error = errno;
    }
    if (slash == std::string::npos) break;
  }
  if (!made) *why = "cannot be made: " + reason(first_error);
  return made;
}

/// A descriptor of the folder if it may be trusted and used; else -1 and the reason in *why.
int open_folder(const std::string& path, std::string* why) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (folder.get() < 0) {
    *why = "cannot be opened: " + reason(errno);
    if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) *why = "is a symbolic link";
    return -1;
  }
  if (::fstat(folder.get(), &status) != 0) {
    *why = "cannot be looked at: " + reason(errno);
  } else if (status.st_uid != ::geteuid()) {
    *why = "belongs to another user";
  } else if ((status.st_mode & 0777) != 0700) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 0777));
    *why = "has mode " + std::string(mode) + ", not 0700";
  } else if (::faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    *why = "cannot be written: " + reason(errno);
  } else {
    return folder.release();
  }
  return -1;
}

}  // namespace

std::shared_ptr<FileCache> FileCache::open(const std::string& directory, std::string* why, std::int64_t max_bytes) {
  std::string path = directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();  // behind a slash, a symbolic link would be followed
  std::shared_ptr<FileCache> cache(new FileCache(std::move(path), max_bytes));
  return cache->is_usable(why) ? cache : nullptr;
}

bool FileCache::is_usable(std::string* why) const {
  std::string problem;
  struct stat status;
  if (path_.empty() || path_[0] != '/')
    problem = "is not an absolute path";
  else if (::lstat(path_.c_str(), &status) == 0 || make_folders(path_, &problem))
    (void)Descriptor(open_folder(path_, &problem));
  if (!problem.empty()) *why = path_ + " " + problem;
  return problem.empty();
}

// No descriptor outlives a call: programs that become daemons close all they find, and then the number is another file's.

std::optional<std::string> FileCache::read(const Hash128& key) const try {
  std::string why;
  const Descriptor folder(open_folder(path_, &why));
  if (folder.get() < 0) return std::nullopt;
  // O_NONBLOCK: a pipe of that name is refused, not waited for.
  const Descriptor file(
      ::openat(folder.get(), entry_name(key).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
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
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

void FileCache::write(const Hash128& key, std::string_view bytes) try {
  const std::size_t size = sizeof(Header) + bytes.size();
  if (size > static_cast<std::uint64_t>(max_bytes_) || !may_be_written(size)) return;
  std::string why;
  const Descriptor folder(open_folder(path_, &why));
  if (folder.get() < 0) return;
  // In containers, processes of the same number share a folder, and may have died in it.
  static std::atomic<std::uint64_t> count{0};
  std::string temporary;
  Descriptor file(-1);
  for (int attempt = 0; attempt < 100 && file.get() < 0; ++attempt) {
    temporary = std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1)) + std::string(temporary_suffix);
    file.reset(::openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.get() < 0 && errno != EEXIST) return;
  }
  if (file.get() < 0) return;
  Header header{.magic = {}, .key = key, .checksum = checksum(bytes), .size = bytes.size()};
  std::memcpy(header.magic, magic, sizeof magic);
  // Not synced: after a crash of the machine the checksum finds what did not reach the disk.
  const bool written = write_all(file.get(), std::as_bytes(std::span(&header, 1))) == 0 &&
                       write_all(file.get(), std::as_bytes(std::span(bytes))) == 0 && ::close(file.release()) == 0 &&
                       ::renameat(folder.get(), temporary.c_str(), folder.get(), entry_name(key).c_str()) == 0;
  if (!written) (void)::unlinkat(folder.get(), temporary.c_str(), 0);
  // Also after a failure: a full disk may be full of abandoned files.
  const auto added = static_cast<std::int64_t>(size);
  if (unchecked_bytes_.fetch_add(added) + added >= max_bytes_ / 64) evict(folder.get());
} catch (const std::bad_alloc&) {
}

void FileCache::evict(int folder) {
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
  const int listed = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(listed < 0 ? nullptr : ::fdopendir(listed), &::closedir);
  if (listing == nullptr) {
    if (listed >= 0) ::close(listed);
    return;
  }
  while (const dirent* found = ::readdir(listing.get())) {
    const std::string_view name = found->d_name;
    const bool temporary = is_named(name, "0123456789-", temporary_suffix);
    const bool entry = name.size() == 32 + entry_suffix.size() && is_named(name, "0123456789abcdef", entry_suffix);
    struct stat status;
    if ((!temporary && !entry) || ::fstatat(folder, found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;  // not ours to remove
    if (temporary && std::abs(std::time(nullptr) - status.st_mtime) > abandoned_after_s) {  // of the future: the clock was set
      (void)::unlinkat(folder, found->d_name, 0);
      continue;
    }
    sum += status.st_size;
    if (entry) entries.push_back({found->d_name, status.st_size, status.st_mtim});
  }
  if (sum <= max_bytes_) return;
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  // A quarter more than need be, so that a full cache is not looked through again at once.
  for (const Entry& entry : entries) {
    if (sum <= max_bytes_ / 4 * 3) break;
    (void)::unlinkat(folder, entry.name.c_str(), 0);
    sum -= entry.size;
  }
}

}  // namespace burin
