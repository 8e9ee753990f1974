// A thread-safe map from 128-bit keys to values that are dear to make, for instance compiled programs. It forgets those that nobody has asked
// for longest: a process that goes on compiling holds no more of them in the end than in the beginning.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"

namespace burin::runtime {

/// Value: copied out to every caller, so usually a shared_ptr.
template <class Value>
class Cache {
 public:
  /// At most so many values are kept; who has one keeps it when it is forgotten here.
  explicit Cache(std::size_t most) : most_(most) {}

  /// The value of `key`; the first to ask makes it with `make()`, others who ask meanwhile wait for him. When make
  /// throws, he and those who wait get the exception, nothing is kept, and the next to ask tries again. `make` may ask
  /// for other keys, not for its own.
  template <class Make>
  Value get_or_make(const Hash128& key, Make&& make) {
    std::shared_ptr<Entry> entry;
    {
      std::unique_lock lock(mutex_);
      auto [at, inserted] = entries_.try_emplace(key);
      if (inserted) at->second = std::make_shared<Entry>();
      at->second->asked = ++calls_;
      if (!inserted) return wait_for(lock, at->second);
      entry = at->second;
    }
    try {
      Value value = std::forward<Make>(make)();
      std::lock_guard lock(mutex_);
      entry->value.emplace(value);
      made_.notify_all();
      if (entries_.size() > most_) forget_half();
      return value;
    } catch (...) {
      std::lock_guard lock(mutex_);
      entry->error = std::current_exception();
      if (const auto at = entries_.find(key); at != entries_.end() && at->second == entry) entries_.erase(at);
      made_.notify_all();
      throw;
    }
  }

  /// The value if it is there and done.
  std::optional<Value> find(const Hash128& key) const {
    std::lock_guard lock(mutex_);
    const auto at = entries_.find(key);
    return at == entries_.end() ? std::nullopt : at->second->value;
  }

  /// Values that are done.
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    std::size_t n = 0;
    for (const auto& [key, entry] : entries_) n += entry->value.has_value();
    return n;
  }

  /// Forgets everything; what is being made at that time still reaches those who wait for it.
  void clear() {
    std::lock_guard lock(mutex_);
    entries_.clear();
  }

 private:
  struct Entry {
    std::optional<Value> value;
    std::exception_ptr error;
    std::thread::id maker = std::this_thread::get_id();
    std::uint64_t asked = 0;  // when last, counted in calls
  };

  // Those of the values that are done that were asked for longest ago: so many at once that a call takes no longer for it on average.
  void forget_half() {
    std::vector<std::uint64_t> times;
    for (const auto& [key, entry] : entries_)
      if (entry->value) times.push_back(entry->asked);
    if (times.empty()) return;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    std::erase_if(entries_, [&](const auto& item) { return item.second->value && item.second->asked < *middle; });
  }

  Value wait_for(std::unique_lock<std::mutex>& lock, std::shared_ptr<Entry> entry) {
    if (!entry->value) {
      BURIN_CHECK(entry->maker != std::this_thread::get_id(), "a value that needs itself");
      made_.wait(lock, [&] { return entry->value.has_value() || entry->error != nullptr; });
    }
    if (entry->error != nullptr) std::rethrow_exception(entry->error);
    return *entry->value;
  }

  const std::size_t most_;
  std::uint64_t calls_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable made_;
  std::unordered_map<Hash128, std::shared_ptr<Entry>> entries_;
};

}  // namespace burin::runtime
