// What the sanitizers of presets asan and tsan are told, in every test executable; the environment's ASAN_OPTIONS and so on
// come after it. Tests ask for more memory than there is: that is a null pointer under a sanitizer too, not the end of the
// process.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:detect_stack_use_after_return=1:check_initialization_order=1:strict_init_order=1";
}
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1"; }
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1:second_deadlock_stack=1"; }
