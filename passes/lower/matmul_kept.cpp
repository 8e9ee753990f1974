// Packed copies that outlive a product: of its right side, for the kernel that updates that; of its results, by itself.
#include "passes/lower/matmul_emitter.h"

namespace burin::passes::lower {
namespace {

// a * x + b * y, and nothing else?
bool is_plane(const Affine& e, VarId x, std::int64_t a, VarId y, std::int64_t b) {
  return e.constant == 0 && e.terms.size() == 2 && e.coefficient(x) == a && e.coefficient(y) == b;
}

// An argument in bf16, or one of f32 that is rounded to it once, perhaps moved.
bool is_cast_argument(const Function& body, ValueId v) {
  for (bool cast = false; !body.is_arg(v);) {
    const OpId op = body.def(v);
    const ValueId from = body.operand(op, 0);
    if (!is_movement(body.kind(op))) {
      if (cast || body.kind(op) != Op::convert || body.type(from).dtype != DType::f32) return false;
      cast = true;
    }
    v = from;
  }
  return true;
}

}  // namespace

std::optional<PackedMatrix> MatmulEmitter::find_matrix() {
  const std::int64_t k = loops_.inner(Dim::k), n = loops_.inner(Dim::n);
  if (!pairs() || k < 2 || n < 2 || rounds(Dim::n) != 1) return std::nullopt;
  if (!is_cast_argument(body_, plan_.rhs)) return std::nullopt;
  const std::size_t before = b_.kernel().body.size();
  const auto place = find_largest_place(body_, plan_.rhs, operand_index(body_.type(plan_.rhs).shape, plan_.rhs_axes, plan_, flats(), *emitter_), *emitter_);
  const bool divides = b_.kernel().body.size() > before;
  b_.kernel().body.resize(before);
  if (!place || divides || body_.type(body_.args()[place->arg]).size() != k * n) return std::nullopt;
  const VarId n_var = loop_value_[loops_.of(Dim::n).back()].terms[0].first, k_var = loop_value_[loops_.of(Dim::k).back()].terms[0].first;
  PackedMatrix matrix{.width = tiles_.columns, .last_width = padded(tiles_.rest_columns), .tile_size = tiles_.padded_steps(k) * tiles_.columns};
  if (is_plane(place->offset, k_var, n, n_var, 1)) {
    matrix.rows = k;
    matrix.columns = n;
  } else if (is_plane(place->offset, k_var, 1, n_var, k)) {
    matrix.rows = n;
    matrix.columns = k;
    matrix.k_is_columns = true;
  } else {
    return std::nullopt;
  }
  return matrix;
}

AxisBlocks MatmulEmitter::blocks_of(Dim dim) const {
  const bool m = dim == Dim::m;
  const std::int64_t total = loops_.inner(dim), count = m ? tiles_.row_blocks : tiles_.column_blocks;
  const std::int64_t size = m ? tiles_.row_block * tiles_.rows : tiles_.column_block * tiles_.columns;
  return {m ? row_block_ : column_block_, count == 1 ? total : size, count, total};
}

bool MatmulEmitter::place_kept() {
  const std::int64_t m = loops_.inner(Dim::m), n = loops_.inner(Dim::n);
  if (kept_.empty() || part_ != MatmulPart::product || m < 2 || n < 2) return false;
  if (loops_.size(Dim::batch) != 1 || loops_.size(Dim::m) != m || loops_.size(Dim::n) != n) return false;
  const VarId m_var = loop_value_[loops_.of(Dim::m).back()].terms[0].first, n_var = loop_value_[loops_.of(Dim::n).back()].terms[0].first;
  const std::map<ValueId, Index> places = downstream_places(dot_index());
  std::optional<bool> turned;
  for (const KeptPack& kept : kept_) {
    const auto place = places.find(body_.results()[kept.result]);
    if (place == places.end()) return false;
    const Affine at = emitter_->flat(place->second);
    const bool straight = is_plane(at, m_var, n, n_var, 1);
    if (!straight && !is_plane(at, m_var, 1, n_var, m)) return false;
    if (turned.value_or(!straight) != !straight) return false;
    turned = !straight;
    if (!blocks_fit(kept.matrix, blocks_of(*turned ? Dim::n : Dim::m), blocks_of(*turned ? Dim::m : Dim::n))) return false;
  }
  kept_turned_ = *turned;
  return true;
}

void MatmulEmitter::add_kept() {
  const AxisBlocks rows = blocks_of(kept_turned_ ? Dim::n : Dim::m), columns = blocks_of(kept_turned_ ? Dim::m : Dim::n);
  for (std::uint32_t i = 0; i < kept_.size(); ++i) {
    lowered_.params.push_back({Param::kept, i});
    kept_buffers_.push_back(add_packed(b_.kernel(), kept_[i].matrix));
  }
  for (const KeptPack& kept : kept_)
    if (!halves_.contains(kept.result)) halves_[kept.result] = add_half(b_.kernel(), rows, columns);
}

Affine MatmulEmitter::half_at(const Affine& row, const Affine& column) const {
  const Affine r = row - row_block_ * (tiles_.row_block * tiles_.rows), c = column - column_block_ * (tiles_.column_block * tiles_.columns);
  const std::int64_t stride = half_stride(blocks_of(kept_turned_ ? Dim::m : Dim::n));
  return space_.resolve(kept_turned_ ? c * stride + r : r * stride + c);
}

}  // namespace burin::passes::lower
