// Test executables neither use nor fill the code cache of whoever runs them; tests of it name a folder of their own.
#include <cstdlib>

namespace {

[[gnu::constructor(101)]] void keep_no_code() { setenv("BURIN_CACHE_DIR", "", 0); }

}  // namespace
