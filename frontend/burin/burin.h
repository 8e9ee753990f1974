// Everything a program over tensors needs.
#pragma once
#if __cplusplus < 202002L
#error "Burin needs C++20: compile with -std=c++20 or later"
#endif
#include <burin/index.h>
#include <burin/jit.h>
#include <burin/nn.h>
#include <burin/ops.h>
#include <burin/random.h>
#include <burin/tensor.h>
#include <burin/trace.h>
#include <burin/transforms.h>
#include <burin/tree.h>
#include <burin/version.h>
