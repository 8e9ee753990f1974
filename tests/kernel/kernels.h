// Kernels written by hand, shared by the tests of text, verifier and interpreter. Each is printed as it stands here.
#pragma once
#include <string_view>

namespace burin::ir::kernels {

// y = a * b + 1 over 2 tasks of 50 elements in lanes of 16, with a partial last group.
inline constexpr std::string_view elementwise = R"k(kernel @mul_add_one(in a: f32[100], in b: f32[100], out y: f32[100]) tasks (t in 2) cost 25.5 {
  for j in 0..50 vector 16 {
    %0 = load a[50*t + j]
    %1 = load b[50*t + j]
    %2 = mul %0, %1 : f32
    %3 = constant 1 : f32
    %4 = add %2, %3 : f32
    store y[50*t + j], %4
  }
}
)k";

// The same in tiles of 16 whose last one is cut off by a second bound.
inline constexpr std::string_view tails = R"k(kernel @double(in a: i32[100], out y: i32[100]) tasks (t in 7) {
  for j in 0..min(16, 100 - 16*t) vector 8 {
    %0 = load a[16*t + j]
    %1 = add %0, %0 : i32
    store y[16*t + j], %1
  }
}
)k";

inline constexpr std::string_view softmax = R"k(kernel @softmax(in x: f32[5,37], out y: f32[5,37]) tasks (r in 5) {
  scratch row: f32[37]
  acc %max0: f32 max lanes 8
  for j in 0..37 vector 8 {
    %0 = load x[r, j]
    accumulate %max0, %0
  }
  %1 = finish %max0 : f32
  acc %sum1: f32 sum lanes 8
  for j in 0..37 vector 8 {
    %2 = load x[r, j]
    %3 = sub %2, %1 : f32
    %4 = exp %3 : f32
    store row[j], %4
    accumulate %sum1, %4
  }
  %5 = finish %sum1 : f32
  for j in 0..37 vector 8 {
    %6 = load row[j]
    %7 = div %6, %5 : f32
    store y[r, j], %7
  }
}
)k";

// A transposed view is read row by row.
inline constexpr std::string_view transpose = R"k(kernel @transpose(in x: f64[6,4] strides [1,6], out y: f64[6,4]) tasks (i in 6) {
  for j in 0..4 {
    %0 = load x[i, j]
    store y[i, j], %0
  }
}
)k";

// y is x moved by two places, zeros in front.
inline constexpr std::string_view pad = R"k(kernel @pad(in x: f32[10], out y: f32[13]) {
  %0 = constant 0 : f32
  for j in 0..13 vector 4 {
    %1 = load x[j - 2] if j - 2 >= 0 and 11 - j >= 0 else %0
    store y[j], %1
  }
}
)k";

inline constexpr std::string_view gather_clip = R"k(kernel @take(in table: f32[7,3], in ids: i32[5], out y: f32[5,3]) tasks (i in 5) {
  %0 = load ids[i]
  bind row = %0 in 0..7 clip
  for j in 0..3 {
    %1 = load table[row, j]
    store y[i, j], %1
  }
}
)k";

inline constexpr std::string_view gather_error = R"k(kernel @take(in table: f32[7,3], in ids: i32[5], out y: f32[5,3]) tasks (i in 5) {
  site "take: index {index} is out of range for axis 0, whose extent is {extent} (model.cpp:42)"
  %0 = load ids[i]
  bind row = %0 in 0..7 error site 0
  for j in 0..3 {
    %1 = load table[row, j]
    store y[i, j], %1
  }
}
)k";

// c[30,40] = a[30,9] . b[9,40] in tiles of 14 x 32. Rows past the end are left out of the last tile by its shape, columns
// likewise; the four combinations stand one after another.
inline constexpr std::string_view matmul = R"k(kernel @matmul(in a: f32[30,9], in b: f32[9,40], out c: f32[30,40]) tasks (t in 3) {
  tile full: f32[14,32]
  tile right: f32[14,8]
  tile low: f32[2,32]
  tile corner: f32[2,8]
  %0 = constant 0 : f32
  if 1 - t >= 0 {
    for r in 0..14 unroll {
      for j in 0..32 vector 16 {
        store full[r, j], %0
      }
    }
    mma full[r, j] += a[14*t + r, k] * b[k, j] for k in 0..9
    for r in 0..14 unroll {
      for j in 0..32 vector 16 {
        %1 = load full[r, j]
        store c[14*t + r, j], %1
      }
    }
    for r in 0..14 unroll {
      for j in 0..8 vector 8 {
        store right[r, j], %0
      }
    }
    mma right[r, j] += a[14*t + r, k] * b[k, j + 32] for k in 0..9
    for r in 0..14 unroll {
      for j in 0..8 vector 8 {
        %2 = load right[r, j]
        store c[14*t + r, j + 32], %2
      }
    }
  }
  if t - 2 >= 0 {
    for r in 0..2 unroll {
      for j in 0..32 vector 16 {
        store low[r, j], %0
      }
    }
    mma low[r, j] += a[14*t + r, k] * b[k, j] for k in 0..9
    for r in 0..2 unroll {
      for j in 0..32 vector 16 {
        %3 = load low[r, j]
        store c[14*t + r, j], %3
      }
    }
    for r in 0..2 unroll {
      for j in 0..8 vector 8 {
        store corner[r, j], %0
      }
    }
    mma corner[r, j] += a[14*t + r, k] * b[k, j + 32] for k in 0..9
    for r in 0..2 unroll {
      for j in 0..8 vector 8 {
        %4 = load corner[r, j]
        store c[14*t + r, j + 32], %4
      }
    }
  }
}
)k";

// Pairs of bf16, two at a time.
inline constexpr std::string_view pairs = R"k(kernel @pairs(in a: u32[2,5], in b: u32[5,3], inout c: f32[2,3]) {
  tile t: f32[2,3]
  for r in 0..2 unroll {
    for j in 0..3 unroll {
      %0 = load c[r, j]
      store t[r, j], %0
    }
  }
  mma t[r, j] += a[r, k] * b[k, j] for k in 0..5 blocks 2
  for r in 0..2 unroll {
    for j in 0..3 unroll {
      %1 = load t[r, j]
      store c[r, j], %1
    }
  }
}
)k";

// Statement kinds that the others leave out: index values, converts, a started accumulator, a serial one, inout.
inline constexpr std::string_view assorted = R"k(kernel @assorted(in x: bf16[3,0,2], inout n: u64[4], out y: i32[]) {
  acc %sum0: i32 sum lanes 1
  for i in -2..3 {
    %0 = index 3*i - 1 : i32
    accumulate %sum0, %0
  }
  %1 = finish %sum0 : i32
  store y[], %1
  for i in 0..4 unroll {
    %2 = load n[3 - i]
    %3 = constant 18446744073709551615 : u64
    %4 = bit_xor %2, %3 : u64
    store n[3 - i], %4 if 2 - i >= 0
  }
  %5 = load y[]
  acc %or1: i32 or lanes 1 from %5
  %6 = finish %or1 : i32
  %7 = convert %6 : f32
  %8 = constant nan : f32
  %9 = lt %7, %8 : bool
  %10 = convert %9 : i32
  store y[], %10
}
)k";

inline constexpr std::string_view all[] = {elementwise, tails,       softmax,      transpose, pad,
                                           gather_clip, gather_error, matmul,      pairs,      assorted};

}  // namespace burin::ir::kernels
