#include "runtime/peaks.h"

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/buffer.h"

namespace burin::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double round_seconds = 4e-3;
constexpr int rounds = 3;  // the best counts: neighbours come and go

// Twelve independent chains hide the latency of the two units that processors have for this.
#define BURIN_FMA_ROUND(r)                                                                                        \
  "vfmadd231ps %%" r "15,%%" r "14,%%" r "0\n\tvfmadd231ps %%" r "15,%%" r "14,%%" r "1\n\t"                       \
  "vfmadd231ps %%" r "15,%%" r "14,%%" r "2\n\tvfmadd231ps %%" r "15,%%" r "14,%%" r "3\n\t"                       \
  "vfmadd231ps %%" r "15,%%" r "14,%%" r "4\n\tvfmadd231ps %%" r "15,%%" r "14,%%" r "5\n\t"                       \
  "vfmadd231ps %%" r "15,%%" r "14,%%" r "6\n\tvfmadd231ps %%" r "15,%%" r "14,%%" r "7\n\t"                       \
  "vfmadd231ps %%" r "15,%%" r "14,%%" r "8\n\tvfmadd231ps %%" r "15,%%" r "14,%%" r "9\n\t"                       \
  "vfmadd231ps %%" r "15,%%" r "14,%%" r "10\n\tvfmadd231ps %%" r "15,%%" r "14,%%" r "11\n\t"
#define BURIN_FMA_LOOP(r, turns)                                                                                  \
  asm volatile("vzeroall\n1:\n\t" BURIN_FMA_ROUND(r) BURIN_FMA_ROUND(r) "dec %0\n\tjnz 1b\n\tvzeroupper"                                             \
               : "+r"(turns)                                                                                      \
               :                                                                                                  \
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",           \
                 "xmm11", "xmm14", "xmm15", "cc")

// f32 operations of one call.
double multiply_and_add() {
  constexpr std::int64_t turns = 20'000;
  std::int64_t left = turns;
  if (__builtin_cpu_supports("avx512f")) {
    BURIN_FMA_LOOP("zmm", left);
    return turns * 24.0 * 32.0;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    BURIN_FMA_LOOP("ymm", left);
    return turns * 24.0 * 16.0;
  }
  return 0;
}

// work(thread) does something once and says how much; all threads at once, the amount per second of all.
double best_rate(int threads, const std::function<double(int)>& work) {
  std::vector<std::vector<double>> rates(static_cast<std::size_t>(threads), std::vector<double>(rounds));
  std::barrier gate(threads);
  const auto run = [&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      gate.arrive_and_wait();
      double amount = 0, seconds = 0;
      const Clock::time_point start = Clock::now();
      do {
        amount += work(thread);
        seconds = std::chrono::duration<double>(Clock::now() - start).count();
      } while (seconds < round_seconds);
      rates[static_cast<std::size_t>(thread)][static_cast<std::size_t>(round)] = amount / seconds;
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    double sum = 0;
    for (const auto& rate : rates) sum += rate[static_cast<std::size_t>(round)];
    best = std::max(best, sum);
  }
  return best;
}

Peaks measure(int threads) {
  Peaks peaks;
  peaks.threads = threads;
  peaks.flops = best_rate(threads, [](int) { return multiply_and_add(); });
  const std::int64_t memory = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const std::int64_t last_cache = std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 16 << 20);
  const std::int64_t largest = std::min({4 * last_cache, std::int64_t{256} << 20, memory / 8});
  const std::shared_ptr<Buffer> buffer = Buffer::allocate(largest);
  std::memset(buffer->data(), 1, static_cast<std::size_t>(largest));
  for (std::int64_t bytes = 64 << 10;; bytes = std::min(bytes * 4, largest)) {
    const std::int64_t half = bytes / threads / 2 / 64 * 64;
    peaks.copies.push_back({bytes, best_rate(threads, [&](int thread) {
                              std::byte* from = static_cast<std::byte*>(buffer->data()) + thread * 2 * half;
                              constexpr std::int64_t at_least = 256 << 10;  // between two looks at the clock
                              std::int64_t copied = 0;
                              for (; copied < at_least; copied += half) {
                                std::memcpy(from + half, from, static_cast<std::size_t>(half));
                                asm volatile("" ::: "memory");
                              }
                              return 2.0 * static_cast<double>(copied);
                            })});
    if (bytes == largest) break;
  }
  return peaks;
}

}  // namespace

double Peaks::bytes_per_second(std::int64_t bytes) const {
  double best = 0;
  for (const Copy& copy : copies)
    if (copy.working_set >= bytes || copy.working_set == copies.back().working_set) best = std::max(best, copy.bytes_per_second);
  return best;
}

const Peaks& machine_peaks(int threads) {
  static std::mutex mutex;
  static auto* const known = new std::map<int, std::unique_ptr<const Peaks>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<const Peaks>& peaks = (*known)[threads];
  if (peaks == nullptr) peaks = std::make_unique<const Peaks>(measure(threads));
  return *peaks;
}

}  // namespace burin::runtime
