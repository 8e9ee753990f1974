#include "base/file_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace burin {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

Hash128 key(std::uint64_t n) { return {n, ~n}; }

// Differs for each key, in length too.
std::string value(std::uint64_t n) {
  std::string text;
  for (std::uint64_t i = 0; i < 100 + n % 900; ++i) text += static_cast<char>(i * i * (n + 1) >> 3);
  return text;
}

std::shared_ptr<FileCache> open(const fs::path& folder, std::int64_t max_bytes = FileCache::default_max_bytes) {
  std::string why;
  auto cache = FileCache::open(folder.string(), &why, max_bytes);
  EXPECT_NE(cache, nullptr) << why;
  return cache;
}

std::string refusal(const std::string& folder) {
  std::string why;
  EXPECT_EQ(FileCache::open(folder, &why), nullptr);
  return why;
}

std::string file_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(FileCache, gives_back_what_was_written) {
  const TemporaryFolder folder;
  const auto cache = open(folder / "a/b");
  EXPECT_FALSE(cache->read(key(1)));
  cache->write(key(1), value(1));
  cache->write(key(2), "");
  cache->write(key(3), std::string(3, '\0'));
  EXPECT_EQ(cache->read(key(1)), value(1));
  EXPECT_EQ(open(folder / "a/b/")->read(key(2)), "");
  EXPECT_EQ(cache->read(key(3)), std::string(3, '\0'));
  cache->write(key(1), "new");
  EXPECT_EQ(cache->read(key(1)), "new");
  for (const char* made : {"a", "a/b"}) {
    struct stat status;
    ASSERT_EQ(stat((folder / made).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u) << made;
  }
}

TEST(FileCache, folders_that_may_not_be_trusted_are_refused_with_the_reason) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal("some/where"), "some/where is not an absolute path");
  fs::create_directory(folder / "open");
  fs::permissions(folder / "open", fs::perms(0750));
  EXPECT_EQ(refusal(folder / "open"), (folder / "open").string() + " has mode 0750, not 0700");
  ASSERT_NE(open(folder / "real"), nullptr);
  fs::create_directory_symlink(folder / "real", folder / "link");
  EXPECT_EQ(refusal(folder / "link"), (folder / "link").string() + " is a symbolic link");
  EXPECT_EQ(refusal((folder / "link").string() + "//"), (folder / "link").string() + " is a symbolic link");
  write_file(folder / "file", "");
  EXPECT_EQ(refusal(folder / "file"), (folder / "file").string() + " cannot be opened: Not a directory");
  EXPECT_EQ(refusal(folder / "file/below"), (folder / "file/below").string() + " cannot be made: Not a directory");
  EXPECT_EQ(refusal("/proc/burin"), "/proc/burin cannot be made: No such file or directory");
  if (geteuid() != 0) {
    EXPECT_EQ(refusal("/"), "/ belongs to another user");
  } else {
    ASSERT_EQ(chown((folder / "real").c_str(), 1, 1), 0);
    EXPECT_EQ(refusal(folder / "real"), (folder / "real").string() + " belongs to another user");
  }
}

TEST(FileCache, an_entry_with_any_byte_changed_or_cut_off_is_absent_until_it_is_written_again) {
  const TemporaryFolder folder;
  const auto cache = open(folder.path());
  const fs::path path = folder / key(7).hex();
  cache->write(key(7), value(7));
  const std::string whole = file_bytes(path);
  ASSERT_EQ(whole.size(), value(7).size() + 48);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write_file(path, bad);
    EXPECT_FALSE(cache->read(key(7))) << "byte " << i;
    write_file(path, whole.substr(0, i));
    EXPECT_FALSE(cache->read(key(7))) << "cut at " << i;
  }
  write_file(path, whole + "x");
  EXPECT_FALSE(cache->read(key(7)));
  write_file(path, whole);
  EXPECT_EQ(cache->read(key(7)), value(7));
  write_file(folder / key(8).hex(), whole);  // under another's name
  fs::permissions(folder / key(8).hex(), fs::perms(0600));
  EXPECT_FALSE(cache->read(key(8)));
  write_file(path, "");
  cache->write(key(7), value(7));
  EXPECT_EQ(cache->read(key(7)), value(7));
}

TEST(FileCache, links_pipes_folders_and_files_open_to_others_are_no_entries) {
  const TemporaryFolder folder;
  const auto cache = open(folder / "cache");
  cache->write(key(1), value(1));
  const fs::path path = folder / "cache" / key(1).hex();
  fs::rename(path, folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", path);
  EXPECT_FALSE(cache->read(key(1)));
  cache->write(key(1), value(2));  // replaces the link, not what it leads to
  EXPECT_EQ(cache->read(key(1)), value(2));
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_NE(file_bytes(folder / "elsewhere").find(value(1)), std::string::npos);
  fs::permissions(path, fs::perms(0620));
  EXPECT_FALSE(cache->read(key(1)));
  ASSERT_EQ(mkfifo((folder / "cache" / key(2).hex()).c_str(), 0600), 0);
  EXPECT_FALSE(cache->read(key(2)));  // and does not wait for a writer
  fs::create_directory(folder / "cache" / key(3).hex());
  EXPECT_FALSE(cache->read(key(3)));
  cache->write(key(3), value(3));
  EXPECT_FALSE(cache->read(key(3)));
  for (const auto& entry : fs::directory_iterator(folder / "cache"))
    EXPECT_EQ(entry.path().filename().string().size(), 32u) << entry;
}

TEST(FileCache, stays_the_folder_that_was_checked) {
  const TemporaryFolder folder;
  const auto cache = open(folder / "a");
  cache->write(key(1), value(1));
  fs::rename(folder / "a", folder / "b");
  fs::create_directory(folder / "a");
  cache->write(key(2), value(2));
  EXPECT_EQ(cache->read(key(1)), value(1));
  EXPECT_TRUE(fs::is_empty(folder / "a"));
  fs::remove_all(folder / "b");
  cache->write(key(3), value(3));
  EXPECT_FALSE(cache->read(key(3)));
}

std::int64_t bytes_in(const fs::path& folder) {
  std::int64_t sum = 0;
  for (const auto& entry : fs::directory_iterator(folder)) sum += static_cast<std::int64_t>(entry.file_size());
  return sum;
}

TEST(FileCache, removes_what_was_used_longest_ago_and_nothing_that_is_not_its_own) {
  const TemporaryFolder folder;
  constexpr std::int64_t bound = 64 << 10;
  const std::string kilobytes(2048 - 48, 'x');
  write_file(folder / "notes.txt", "mine");
  write_file(folder / "new-1-1", "of a process that died");
  fs::last_write_time(folder / "new-1-1", fs::file_time_type::clock::now() - std::chrono::hours(2));
  write_file(folder / "new-1-2", "of a process at work");
  const auto cache = open(folder.path(), bound);
  const auto an_hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (std::uint64_t n = 0; n < 32; ++n) {
    cache->write(key(n), kilobytes);
    fs::last_write_time(folder / key(n).hex(), an_hour_ago + std::chrono::seconds(n));
  }
  EXPECT_FALSE(fs::exists(folder / "new-1-1"));
  for (std::uint64_t n = 0; n < 32; ++n) EXPECT_TRUE(fs::exists(folder / key(n).hex())) << n;
  EXPECT_TRUE(cache->read(key(0)));  // used again
  cache->write(key(100), kilobytes);
  EXPECT_LE(bytes_in(folder.path()), bound * 3 / 4 + 100);
  std::set<std::uint64_t> left;
  for (std::uint64_t n = 0; n < 32; ++n)
    if (cache->read(key(n))) left.insert(n);
  EXPECT_TRUE(left.contains(0));
  EXPECT_EQ(left.size(), 23u);
  EXPECT_EQ(*std::next(left.begin()), 10u) << "the oldest but the one read";
  EXPECT_TRUE(cache->read(key(100)));
  EXPECT_EQ(file_bytes(folder / "notes.txt"), "mine");
  EXPECT_TRUE(fs::exists(folder / "new-1-2"));
}

TEST(FileCache, larger_than_the_bound_an_entry_does_not_stay) {
  const TemporaryFolder folder;
  const auto cache = open(folder.path(), 1000);
  cache->write(key(1), std::string(2000, 'x'));
  EXPECT_FALSE(cache->read(key(1)));
  EXPECT_EQ(bytes_in(folder.path()), 0);
}

// Writers and readers of the same few keys, some of which are removed all the time.
void use(FileCache& cache, std::uint64_t seed, bool* wrong) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    const std::uint64_t n = (seed * 7 + i * 13) % 40;
    if (const auto found = cache.read(key(n)))
      *wrong = *wrong || *found != value(n);
    else
      cache.write(key(n), value(n));
  }
}

TEST(FileCache, serves_many_threads) {
  const TemporaryFolder folder;
  const auto cache = open(folder.path(), 12 << 10);
  bool wrong[8] = {};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) threads.emplace_back([&, t] { use(*cache, t, &wrong[t]); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::ranges::count(wrong, true), 0);
}

TEST(FileCache, serves_a_hundred_processes) {
  const TemporaryFolder folder;
  const fs::path cache = folder / "cache";
  std::vector<pid_t> children;
  for (std::uint64_t p = 0; p < 100; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // All at once make the folder, fill it beyond its bound and read it.
      bool wrong = false;
      std::string why;
      const auto own = FileCache::open(cache.string(), &why, 12 << 10);
      if (own != nullptr) use(*own, p, &wrong);
      _exit(own == nullptr ? 2 : wrong ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  const auto last = open(cache, 12 << 10);
  last->write(key(50), value(50));  // looks at the size first of all
  EXPECT_LE(bytes_in(cache), 12 << 10);
  for (const auto& entry : fs::directory_iterator(cache))
    EXPECT_EQ(entry.path().filename().string().size(), 32u) << entry;
  std::size_t found = 0;
  for (std::uint64_t n = 0; n < 40; ++n) {
    const auto bytes = last->read(key(n));
    if (!bytes) continue;
    ++found;
    EXPECT_EQ(*bytes, value(n));
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace burin
