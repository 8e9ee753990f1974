#include "tests/codegen/machine.h"

#include <elf.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tests/support/guarded.h"
#include "tests/support/values.h"

namespace burin::test {

ir::Target avx2_target() { return {.isa = ir::Isa::avx2}; }
ir::Target avx512_target() { return {.isa = ir::Isa::avx512}; }

std::string label(const ir::Target& target) { return std::string(ir::name(target.isa)); }

void run(BurinKernel entry, const ir::Kernel& kernel, std::vector<ir::Literal>& params, runtime::StatusSlot* status) {
  std::vector<Guarded> guarded;
  std::vector<void*> pointers;
  for (const ir::Literal& literal : params) pointers.push_back(guarded.emplace_back(literal.raw()).data());
  const std::size_t bytes = static_cast<std::size_t>(kernel.scratch_bytes());
  std::vector<std::byte> storage(bytes + 64, std::byte{0x5a});
  const auto at = (reinterpret_cast<std::uintptr_t>(storage.data()) + 63) / 64 * 64;
  BurinStatus sink{status, 0};
  entry(pointers.data(), 0, kernel.num_tasks(), reinterpret_cast<void*>(at), &sink);
  for (std::size_t i = 0; i < params.size(); ++i) guarded[i].copy_to(params[i].mutable_raw());
}

void run(const ir::Kernel& kernel, const ir::Target& target, std::vector<ir::Literal>& params,
         runtime::StatusSlot* status) {
  const ir::Kernel* kernels[] = {&kernel};
  const auto module = codegen::compile(kernels, target);
  run(module->entries()[0], kernel, params, status);
}

ir::Literal random_bits(const ir::Type& type, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  ir::Literal result(type);
  for (std::byte& byte : result.mutable_raw()) {
    byte = static_cast<std::byte>(generator());
    if (type.dtype == bool_) byte &= std::byte{1};
  }
  return result;
}

ir::Literal small_numbers(const ir::Type& type, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  ir::Literal result(type);
  const std::int64_t low = is_float(type.dtype) || is_signed_int(type.dtype) ? -3 : 0;
  for (std::int64_t i = 0; i < type.size(); ++i) {
    const std::int64_t value = type.dtype == bool_ ? static_cast<std::int64_t>(generator() % 2)
                                                   : low + static_cast<std::int64_t>(generator() % 7);
    if (is_float(type.dtype)) {
      result.set(i, static_cast<double>(value));
    } else {
      result.set_int(i, value);
    }
  }
  return result;
}

ir::BufferId add_param(ir::Kernel& kernel, std::string name, const ir::Type& type, ir::Space space) {
  return kernel.add_buffer({std::move(name), type.dtype, type.shape, ir::dense_strides(type.shape), space});
}
ir::BufferId add_tile(ir::Kernel& kernel, std::string name, const ir::Type& type) {
  return add_param(kernel, std::move(name), type, ir::Space::tile);
}
ir::BufferId add_scratch(ir::Kernel& kernel, std::string name, const ir::Type& type) {
  return add_param(kernel, std::move(name), type, ir::Space::scratch);
}

std::vector<std::string> undefined_symbols(const std::string& object) {
  std::vector<std::string> names;
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  auto section = [&](std::size_t i) {
    Elf64_Shdr s;
    std::memcpy(&s, object.data() + header.e_shoff + i * header.e_shentsize, sizeof s);
    return s;
  };
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr strings = section(table.sh_link);
    for (std::size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, object.data() + table.sh_offset + at, sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0)
        names.emplace_back(object.data() + strings.sh_offset + symbol.st_name);
    }
  }
  return names;
}

}  // namespace burin::test
