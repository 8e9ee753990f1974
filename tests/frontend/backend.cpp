// Tests of the frontend run on the reference evaluator unless BURIN_BACKEND says otherwise, as it does in the ctest test
// frontend.on_machine; those with the fixture EachBackend go through every backend. Set before any static tensor of a test is made.
#include <cstdlib>

namespace {

[[gnu::constructor(101)]] void choose_backend() { setenv("BURIN_BACKEND", "evaluator", 0); }

}  // namespace
