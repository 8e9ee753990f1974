// How threads share out units of work: each begins with a share of its own, so that the same thread does the same units of successive products, and
// takes from the others' when it is done, so that all help one that was interrupted.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace burin::runtime {

/// A count that several threads advance. To each job it begins at 0: nobody has to reset it. Job numbers grow and are not 0.
class alignas(64) JobCount {
 public:
  static constexpr std::int64_t most = (std::int64_t{1} << 24) - 1;

  std::int64_t of(std::uint64_t job, std::memory_order order) const { return count(value_.load(order), job); }
  /// By n, but not beyond `end`; returns what it was before.
  std::int64_t advance(std::uint64_t job, std::int64_t n, std::int64_t end, std::memory_order order) {
    std::uint64_t seen = value_.load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t before = count(seen, job);
      if (before >= end) return before;
      const std::uint64_t next = job << 24 | static_cast<std::uint64_t>(std::min(before + n, end));
      if (value_.compare_exchange_weak(seen, next, order, std::memory_order_relaxed)) return before;
    }
  }

 private:
  static std::int64_t count(std::uint64_t value, std::uint64_t job) { return value >> 24 == job ? static_cast<std::int64_t>(value & most) : 0; }
  std::atomic<std::uint64_t> value_{0};  // job : 40, count : 24
};

/// The units of one job, as one thread takes them.
class Shares {
 public:
  /// `taken`: how much of each thread's share. `own_only`: nobody helps the others.
  Shares(JobCount* taken, std::uint64_t job, std::int64_t units, int threads, int worker, bool own_only)
      : taken_(taken), job_(job), units_(units), threads_(threads), worker_(worker), shares_(own_only ? 1 : threads) {
    BURIN_CHECK(units <= JobCount::most, "too many units of work");
  }

  bool any_left() const {
    for (int i = 0; i < shares_; ++i)
      if (const int share = number(i); taken_[share].of(job_, std::memory_order_relaxed) < begin(share + 1) - begin(share)) return true;
    return false;
  }
  /// Calls run(begin, end) until nothing is left; returns how many units that were.
  template <class Run>
  std::int64_t take(Run&& run) {
    const std::int64_t piece = std::max<std::int64_t>(1, units_ / (threads_ * pieces_per_thread));
    std::int64_t all = 0;
    for (int i = 0; i < shares_; ++i) {
      const int share = number(i);
      const std::int64_t first = begin(share), size = begin(share + 1) - first;
      for (std::int64_t at; (at = taken_[share].advance(job_, piece, size, std::memory_order_relaxed)) < size;) {
        const std::int64_t n = std::min(piece, size - at);
        run(first + at, first + at + n);
        all += n;
      }
    }
    return all;
  }

 private:
  // Each share is taken in this many pieces, so that others can help.
  static constexpr std::int64_t pieces_per_thread = 8;
  int number(int i) const { return worker_ + i < threads_ ? worker_ + i : worker_ + i - threads_; }
  std::int64_t begin(int share) const { return units_ / threads_ * share + std::min<std::int64_t>(share, units_ % threads_); }

  JobCount* taken_;
  std::uint64_t job_;
  std::int64_t units_;
  int threads_, worker_, shares_;
};

}  // namespace burin::runtime
