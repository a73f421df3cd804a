#include <dlfcn.h>

#include "runtime/device/cuda/blas_api.h"

namespace tfjob::device::cuda {
namespace {

// The file name contains the major version, because other major versions may have a different ABI.
constexpr char kBlasLibrary[] = "libcublasLt.so.13";

}  // namespace

Status ToStatus(const BlasApi& blas, BlasResult result, std::string_view call) {
  if (result == kBlasSuccess) return OkStatus();
  const char* const name = blas.GetStatusName(result);
  return Internal(call, ": ", name == nullptr ? "unknown error" : name);
}

StatusOr<BlasApi> OpenBlas(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = dlerror();
    return FailedPrecondition("no cuBLASLt, which computes matrix products on a GPU: ",
                              error == nullptr ? "unknown error" : error,
                              "; install cuBLAS of CUDA 13, and name its folder in "
                              "LD_LIBRARY_PATH");
  }
  BlasApi blas;
#define TFJOB_CUDA_LOAD(name, symbol, ...)                                              \
  blas.name = reinterpret_cast<BlasApi::name##Function>(dlsym(handle, symbol));         \
  if (blas.name == nullptr) {                                                           \
    return FailedPrecondition("cuBLASLt (", library, ") lacks ", symbol,                \
                              ", which this program needs: install cuBLAS of CUDA 13"); \
  }
  TFJOB_CUDA_BLAS_FUNCTIONS(TFJOB_CUDA_LOAD)
#undef TFJOB_CUDA_LOAD
  return blas;
}

StatusOr<const BlasApi*> OpenBlas() {
  static const auto* const kBlas = new StatusOr<BlasApi>(OpenBlas(kBlasLibrary));
  if (!kBlas->ok()) return kBlas->status();
  return &**kBlas;
}

}  // namespace tfjob::device::cuda
