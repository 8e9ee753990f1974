// The clusters that fuse forms, and the questions it asks while forming them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/function.h"

namespace burin::passes::fusion {

using namespace ir;
using ClusterId = Id<struct ClusterTag>;

enum class Kind : std::uint8_t { loop, rows, matmul, scatter, barrier, constant };
std::string_view name(Kind kind);
/// What cannot be computed element by element where its result is used.
bool is_anchor(Op op);

struct Cluster {
  Kind kind = Kind::loop;
  std::vector<ValueId> values;  // what it must compute: results of anchors and materialised values, in program order
};

class Clusters {
 public:
  explicit Clusters(const Function& f);

  const Function& f;
  std::vector<Cluster> all;

  /// The cluster that computes a materialised value; invalid for arguments and expressions.
  ClusterId of(ValueId v) const { return of_[v.index]; }
  bool materialised(ValueId v) const { return materialised_[v.index]; }
  void materialise(ValueId v);
  /// Args, materialised values and results of anchors: where expressions end.
  bool is_leaf(ValueId v) const { return f.is_arg(v) || materialised_[v.index]; }
  /// The leaves that the expression of v reads, v itself taken apart even when it is materialised.
  const std::vector<ValueId>& leaves(ValueId v);

  ClusterId open(Kind kind);
  void add(ClusterId cluster, ValueId v);
  /// Would `cluster` come to depend on itself if it computed v too?
  bool would_cycle(ClusterId cluster, ValueId v);
  /// Would the two, made one, depend on themselves?
  bool would_cycle(ClusterId a, ClusterId b);
  void merge(ClusterId into, ClusterId from);
  /// The clusters whose values v reads, directly or through materialised values that have no cluster yet: the nearest,
  /// oldest first.
  std::vector<ClusterId> nearest(ValueId v);
  /// Materialised values without a cluster that read what one of the two computes and that one of them reads: the two, made
  /// one, must compute them.
  std::vector<ValueId> between(ClusterId a, ClusterId b);
  /// The function that computes the values of the clusters, as if they were one, and `extra` from their leaves; `extra` and
  /// values used outside are its results.
  Function body(const std::vector<ClusterId>& clusters, const std::vector<ValueId>& extra, const std::string& name,
                std::vector<ValueId>* args, std::vector<ValueId>* results);
  /// The cluster that alone reads the values of this one; invalid when there are several, or a value is a result.
  ClusterId only_reader(ClusterId cluster);
  bool is_result(ValueId v) const { return is_result_[v.index]; }

 private:
  bool used_outside(const std::vector<ClusterId>& clusters, ValueId v);
  bool any_reader(ValueId v, const std::function<bool(ClusterId)>& test);
  std::vector<ClusterId> read_by(ValueId v, std::size_t max_steps = ~std::size_t{0});
  bool reaches(ClusterId from, ClusterId target);
  void raise(ClusterId cluster);
  std::vector<ClusterId> of_;
  std::vector<bool> materialised_;
  std::vector<std::vector<OpId>> users_;
  std::vector<bool> is_result_;
  std::vector<std::size_t>
      youngest_;  // of the values that a value depends on when each cluster is computed in one piece
  std::vector<std::size_t> visited_;  // the last walk of read_by that met the value
  std::size_t visit_ = 0;
  std::vector<std::vector<ValueId>> leaves_;
  std::vector<bool> leaves_known_;
  std::size_t end_of_known_ = 0;  // no later value's leaves are known
};

}  // namespace burin::passes::fusion
