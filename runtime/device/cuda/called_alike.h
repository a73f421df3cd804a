// Compares the types of functions as declared by this project and by NVIDIA's headers.
#pragma once

#include <type_traits>

namespace tfjob::device::cuda {

// True if the two types are passed in the same way: both are pointers, or both are integers or
// enums of the same size.
template <typename A, typename B>
inline constexpr bool kPassedAlike =
    (std::is_pointer_v<A> && std::is_pointer_v<B>) ||
    ((std::is_integral_v<A> || std::is_enum_v<A>) && (std::is_integral_v<B> || std::is_enum_v<B>) &&
     sizeof(A) == sizeof(B));

// True if functions of the two types are called in the same way.
template <typename Ours, typename Theirs>
inline constexpr bool kCalledAlike = false;
template <typename R, typename... A, typename S, typename... B>
inline constexpr bool kCalledAlike<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) != sizeof...(B)) {
    return false;
  } else {
    return kPassedAlike<R, S> && (... && kPassedAlike<A, B>);
  }
}();

}  // namespace tfjob::device::cuda
