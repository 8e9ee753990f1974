// Whether this build is slowed down by a sanitizer, for tests whose size is all they are about: they take a smaller one.
#pragma once

namespace burin::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace burin::test
