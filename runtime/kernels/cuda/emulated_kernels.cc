// Compiles the kernels for the emulator.
#include "runtime/kernels/cuda/cast.cu"
#include "runtime/kernels/cuda/elementwise.cu"
#include "runtime/kernels/cuda/random.cu"
#include "runtime/kernels/cuda/reduce.cu"
#include "runtime/kernels/cuda/softmax.cu"
#include "runtime/kernels/cuda/update.cu"
