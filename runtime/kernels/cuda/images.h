// Provides the CUDA kernels of this program: fat binaries, with machine code for several GPUs. Two
// files define Images: embedded_images.cc in builds with --config=cuda, and no_images.cc in others.
#pragma once

#include <cstddef>
#include <span>

namespace tfjob::kernels::cuda {

// Returns one fat binary per .cu file, or no binaries in a build without --config=cuda. They stay
// valid until the process ends.
std::span<const std::span<const std::byte>> Images();

}  // namespace tfjob::kernels::cuda
