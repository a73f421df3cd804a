// Defines whether the tests run under a sanitizer, and by how much the sanitizer slows them down.
#pragma once

namespace tfjob {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// Factor for the time limits of tests in which a slow thread must not count as a silent peer.
inline constexpr int kSlowdown = kSanitized ? 4 : 1;

}  // namespace tfjob
