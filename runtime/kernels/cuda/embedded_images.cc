#include <vector>

#include "runtime/kernels/cuda/images.h"

namespace {

struct Image {
  const std::byte* begin;
  const std::byte* end;
};

}  // namespace

// The build rule cuda_images defines this array, whose last element is a pair of null pointers.
extern "C" const Image tfjob_cuda_images[];

namespace tfjob::kernels::cuda {

std::span<const std::span<const std::byte>> Images() {
  static const auto* const kImages = [] {
    auto* images = new std::vector<std::span<const std::byte>>;
    for (const Image* image = tfjob_cuda_images; image->begin != nullptr; ++image)
      images->emplace_back(image->begin, image->end);
    return images;
  }();
  return *kImages;
}

}  // namespace tfjob::kernels::cuda
