// Provides the CUDA kernels that this program contains, as fat binaries, with machine code for
// several GPUs. Two files define Images: embedded_images.cc in builds with --config=cuda, and
// no_images.cc in all others.
#pragma once

#include <cstddef>
#include <span>

namespace tfjob::kernels::cuda {

// Returns one fat binary per .cu file, or an empty list in a build without --config=cuda. The fat
// binaries stay valid until the process exits.
std::span<const std::span<const std::byte>> Images();

}  // namespace tfjob::kernels::cuda
