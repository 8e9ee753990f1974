// Tests of the frontend run on the reference evaluator unless BURIN_BACKEND says otherwise; those of whole programs go
// through every backend. Set before any static tensor of a test is made.
#include <cstdlib>

namespace {

[[gnu::constructor(101)]] void choose_backend() { setenv("BURIN_BACKEND", "evaluator", 0); }

}  // namespace
