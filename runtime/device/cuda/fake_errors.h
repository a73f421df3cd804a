// Defines the errors of the fake driver, with the numbers and names of the real driver.
#pragma once

#include "runtime/device/cuda/driver_api.h"

namespace tfjob::device::cuda {

inline constexpr Result kInvalidValue = 1;
inline constexpr Result kInvalidDevice = 101;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kCaptureUnsupported = 900;
inline constexpr Result kCaptureInvalidated = 901;
inline constexpr Result kCaptureWrongThread = 908;

// Implement cuGetErrorName and cuGetErrorString.
Result GetErrorName(Result result, const char** name);
Result GetErrorString(Result result, const char** text);

}  // namespace tfjob::device::cuda
