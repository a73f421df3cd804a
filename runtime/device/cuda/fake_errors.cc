#include "runtime/device/cuda/fake_errors.h"

#include <map>

namespace tfjob::device::cuda {

Result GetErrorName(Result result, const char** name) {
  static const auto* const kNames = new std::map<Result, const char*>{
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"}};
  const auto found = kNames->find(result);
  *name = found == kNames->end() ? nullptr : found->second;
  return *name == nullptr ? kInvalidValue : kSuccess;
}

Result GetErrorString(Result result, const char** text) {
  *text = result == kOutOfMemory ? "out of memory" : nullptr;
  return *text != nullptr ? kSuccess : kInvalidValue;
}

}  // namespace tfjob::device::cuda
