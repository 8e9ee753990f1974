// Everything a program over tensors needs.
#pragma once
#include <burin/standard.h>

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
