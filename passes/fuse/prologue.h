// What a product computes of an operand while it packs it, instead of reading what another kernel has stored: the scale of a
// norm, a cast, a dropout mask.
#pragma once
#include <optional>
#include <vector>

#include "passes/fuse/clusters.h"

namespace burin::passes::fusion {

class Prologues {
 public:
  explicit Prologues(const Clusters& clusters);

  /// Is the value read by products alone, perhaps moved, each of which packs it or reads it once? Of a cast argument others may
  /// make their own.
  bool wanted(ValueId v) const;
  /// Whether what is wanted costs little beside reading it: nothing expensive per element, one array that is in memory anyhow, a mask,
  /// and smaller ones. Values that have to be stored for that, each of a row or so, are appended to `smaller`.
  bool cheap(ValueId v, std::vector<ValueId>& smaller) const;

 private:
  bool expensive(ValueId v) const;
  const Clusters& c_;
  const Function& f_;
  std::vector<bool> wanted_, unwanted_, read_otherwise_;  // by value
  std::vector<std::uint32_t> readers_;
};

}  // namespace burin::passes::fusion
