#include "base/file_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
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
std::string entry(std::uint64_t n) { return key(n).hex() + ".burin"; }

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
  const fs::path path = folder / entry(7);
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
  write_file(folder / entry(8), whole);  // under another's name
  fs::permissions(folder / entry(8), fs::perms(0600));
  EXPECT_FALSE(cache->read(key(8)));
  write_file(path, "");
  cache->write(key(7), value(7));
  EXPECT_EQ(cache->read(key(7)), value(7));
}

TEST(FileCache, links_pipes_folders_and_files_open_to_others_are_no_entries) {
  const TemporaryFolder folder;
  const auto cache = open(folder / "cache");
  cache->write(key(1), value(1));
  const fs::path path = folder / "cache" / entry(1);
  fs::rename(path, folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", path);
  EXPECT_FALSE(cache->read(key(1)));
  cache->write(key(1), value(2));  // replaces the link, not what it leads to
  EXPECT_EQ(cache->read(key(1)), value(2));
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_NE(file_bytes(folder / "elsewhere").find(value(1)), std::string::npos);
  fs::permissions(path, fs::perms(0620));
  EXPECT_FALSE(cache->read(key(1)));
  ASSERT_EQ(mkfifo((folder / "cache" / entry(2)).c_str(), 0600), 0);
  EXPECT_FALSE(cache->read(key(2)));  // and does not wait for a writer
  fs::create_directory(folder / "cache" / entry(3));
  EXPECT_FALSE(cache->read(key(3)));
  cache->write(key(3), value(3));
  EXPECT_FALSE(cache->read(key(3)));
  for (const auto& entry : fs::directory_iterator(folder / "cache"))
    EXPECT_EQ(entry.path().extension(), ".burin") << entry;
}

TEST(FileCache, another_folder_in_its_place_is_checked_anew) {
  const TemporaryFolder folder;
  const auto cache = open(folder / "a");
  cache->write(key(1), value(1));
  fs::rename(folder / "a", folder / "b");
  fs::create_directory(folder / "a");
  fs::permissions(folder / "a", fs::perms(0755));
  cache->write(key(1), value(1));
  EXPECT_TRUE(fs::is_empty(folder / "a"));
  std::string why;
  EXPECT_FALSE(cache->is_usable(&why));
  EXPECT_EQ(why, (folder / "a").string() + " has mode 0755, not 0700");
  fs::remove(folder / "a");
  fs::create_directory_symlink(folder / "b", folder / "a");
  EXPECT_FALSE(cache->read(key(1)));
  fs::remove(folder / "a");
  cache->write(key(1), value(1));
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_TRUE(cache->is_usable(&why));  // made again
  cache->write(key(1), value(1));
  EXPECT_EQ(cache->read(key(1)), value(1));
}

TEST(FileCache, root_makes_no_folder_in_the_home_of_another) {
  if (geteuid() != 0) GTEST_SKIP() << "for root alone";
  const TemporaryFolder folder;
  fs::create_directory(folder / "home");
  ASSERT_EQ(chown((folder / "home").c_str(), 1, 1), 0);
  EXPECT_EQ(refusal(folder / "home/.cache/burin"),
            (folder / "home/.cache/burin").string() + " is not there, and root makes no folder in another user's");
  EXPECT_TRUE(fs::is_empty(folder / "home"));
}

TEST(FileCache, keeps_no_descriptor_that_the_program_could_close) {
  const TemporaryFolder folder;
  const auto cache = open(folder.path());
  cache->write(key(1), value(1));
  EXPECT_EQ(cache->read(key(1)), value(1));
  for (const auto& fd : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the listing's own
    EXPECT_FALSE(fs::read_symlink(fd, gone).string().starts_with(folder.path())) << fd;
  }
}

[[noreturn]] void write_beyond_the_limit(FileCache& cache) {
  const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
  setrlimit(RLIMIT_FSIZE, &limit);
  cache.write(key(1), std::string(2000, 'x'));
  cache.write(key(2), value(2));
  _exit(!cache.read(key(1)) && cache.read(key(2)) == value(2) ? 0 : 1);
}

[[noreturn]] void use_without_descriptors(FileCache& cache) {
  const rlimit limit{.rlim_cur = 3, .rlim_max = 3};
  setrlimit(RLIMIT_NOFILE, &limit);
  cache.write(key(2), value(2));
  std::string why;
  const bool absent = !cache.read(key(1)) && !cache.is_usable(&why);
  _exit(absent && why.ends_with("cannot be opened: Too many open files") ? 0 : 1);
}

TEST(FileCacheDeathTest, limits_of_the_process_make_entries_absent) {
  const TemporaryFolder folder;
  const auto cache = open(folder.path());
  EXPECT_EXIT(write_beyond_the_limit(*cache), testing::ExitedWithCode(0), "");
  cache->write(key(1), value(1));
  EXPECT_EXIT(use_without_descriptors(*cache), testing::ExitedWithCode(0), "");
  EXPECT_EQ(cache->read(key(1)), value(1));
}

TEST(FileCache, names_left_by_a_dead_process_of_the_same_number_are_passed_over) {
  const TemporaryFolder folder;
  const auto cache = open(folder.path());
  // Most of the names that this process gives, however many it has given.
  for (int n = 0; n < 4000; ++n)
    if (n % 50 != 49) write_file(folder / (std::to_string(getpid()) + "-" + std::to_string(n) + ".burin-new"), "");
  cache->write(key(1), value(1));
  EXPECT_EQ(cache->read(key(1)), value(1));
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
  // The user's own, however old: one is named by a hash, one looks like a temporary file.
  const std::vector<std::string> mine = {"notes.txt", "new-1-1", "d41d8cd98f00b204e9800998ecf8427e", "a.burin", "my.burin-new",
                                         "d41d8cd98f00b204e9800998ecf8427e.burin.gz"};
  for (const std::string& name : mine) {
    write_file(folder / name, "mine");
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const std::string died = "1-1.burin-new", from_the_future = "1-2.burin-new", at_work = "1-3.burin-new";
  for (const std::string& name : {died, from_the_future, at_work}) write_file(folder / name, "half");
  fs::last_write_time(folder / died, fs::file_time_type::clock::now() - std::chrono::hours(2));
  fs::last_write_time(folder / from_the_future, fs::file_time_type::clock::now() + std::chrono::hours(2));
  const auto cache = open(folder.path(), bound);
  const auto an_hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (std::uint64_t n = 0; n < 31; ++n) {
    cache->write(key(n), kilobytes);
    fs::last_write_time(folder / entry(n), an_hour_ago + std::chrono::seconds(n));
  }
  EXPECT_FALSE(fs::exists(folder / died));
  EXPECT_FALSE(fs::exists(folder / from_the_future));
  for (std::uint64_t n = 0; n < 31; ++n) EXPECT_TRUE(fs::exists(folder / entry(n))) << n;
  EXPECT_TRUE(cache->read(key(0)));  // used again
  cache->write(key(100), kilobytes);
  EXPECT_LE(bytes_in(folder.path()), bound * 3 / 4 + 100);
  std::set<std::uint64_t> left;
  for (std::uint64_t n = 0; n < 32; ++n)
    if (cache->read(key(n))) left.insert(n);
  EXPECT_TRUE(left.contains(0));
  EXPECT_EQ(left.size(), 22u);
  EXPECT_EQ(*std::next(left.begin()), 10u) << "the oldest but the one read";
  EXPECT_TRUE(cache->read(key(100)));
  for (const std::string& name : mine) EXPECT_EQ(file_bytes(folder / name), "mine");
  EXPECT_TRUE(fs::exists(folder / at_work));
}

TEST(FileCache, larger_than_the_bound_an_entry_is_not_written_and_displaces_no_other) {
  const TemporaryFolder folder;
  const auto cache = open(folder.path(), 1000);
  cache->write(key(1), value(1));
  cache->write(key(2), std::string(2000, 'x'));
  EXPECT_FALSE(cache->read(key(2)));
  EXPECT_EQ(cache->read(key(1)), value(1));
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
    EXPECT_EQ(entry.path().extension(), ".burin") << entry;
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
