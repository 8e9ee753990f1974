// The format of the dump is described in tools/perf/Documentation/jitdump-specification.txt of Linux, that of the names
// in jit-interface.txt beside it.
#include "codegen/perf_files.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/message_ids.h"
#include "base/write_all.h"

namespace burin::codegen {
namespace {

[[noreturn]] void refuse(const std::string& path) {
  fail(Msg::perf_unwritable, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

template <class T>
void append(std::string* bytes, T value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_text(std::string* bytes, std::string_view text) { bytes->append(text).push_back('\0'); }

// By the clock of `perf record -k mono`.
std::uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

enum class Kind : std::uint32_t { code = 0, lines = 2 };

std::string record(Kind kind, const std::string& body) {
  constexpr std::size_t head = 16;
  std::string bytes;
  append(&bytes, kind);
  append(&bytes, static_cast<std::uint32_t>(head + body.size()));
  append(&bytes, now());
  return bytes + body;
}

}  // namespace

PerfFiles::File::File(std::string name) : path(std::move(name)) {
  // What is there is of a process that had the same number, and has ended.
  ::unlink(path.c_str());
  descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) refuse(path);
}

PerfFiles::File::~File() { ::close(descriptor); }

void PerfFiles::File::write(const std::string& bytes) {
  if (write_all(descriptor, std::as_bytes(std::span(bytes))) != 0) refuse(path);
}

PerfFiles::PerfFiles(const std::string& folder)
    : names_(fmt::format("/tmp/perf-{}.map", ::getpid())), dump_(fmt::format("{}/jit-{}.dump", folder, ::getpid())) {
  std::string header;
  append<std::uint32_t>(&header, 0x4A695444);  // "JiTD"
  append<std::uint32_t>(&header, 1);           // version
  append<std::uint32_t>(&header, 40);          // bytes of the header
  append<std::uint32_t>(&header, EM_X86_64);
  append<std::uint32_t>(&header, 0);
  append<std::uint32_t>(&header, static_cast<std::uint32_t>(::getpid()));
  append<std::uint64_t>(&header, now());
  append<std::uint64_t>(&header, 0);  // flags
  dump_.write(header);
  // perf learns of the dump by this mapping, which must look like code.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump_.descriptor, 0) == MAP_FAILED) refuse(dump_.path);
}

void PerfFiles::add(const std::string& name, std::span<const std::uint8_t> code, std::span<const PerfLine> lines) {
  const auto address = reinterpret_cast<std::uint64_t>(code.data());
  names_.write(fmt::format("{:x} {:x} {}\n", address, code.size(), name));
  std::string records;
  if (!lines.empty()) {  // these come before the code that they are of
    std::string body;
    append(&body, address);
    append<std::uint64_t>(&body, lines.size());
    for (const PerfLine& line : lines) {
      append(&body, line.address);
      append(&body, line.number);
      append<std::uint32_t>(&body, 0);  // column
      append_text(&body, line.file);
    }
    records = record(Kind::lines, body);
  }
  std::string body;
  append(&body, static_cast<std::uint32_t>(::getpid()));
  append(&body, static_cast<std::uint32_t>(syscall(SYS_gettid)));
  append(&body, address);  // as loaded
  append(&body, address);
  append<std::uint64_t>(&body, code.size());
  append(&body, next_index_++);
  append_text(&body, name);
  body.append(reinterpret_cast<const char*>(code.data()), code.size());
  dump_.write(records + record(Kind::code, body));
}

}  // namespace burin::codegen
