#include <dlfcn.h>

#include <cstddef>
#include <span>

#include "runtime/device/cuda/blas_api.h"

namespace tfjob::device::cuda {
namespace {

// The file name contains the major version, because other major versions may have a different ABI.
constexpr int kMajor = 13;
constexpr char kBlasLibrary[] = "libcublasLt.so.13";
// Libraries that this program cannot use. If one of them is installed, the error names its version.
constexpr const char* kOtherLibraries[] = {"libcublasLt.so.14", "libcublasLt.so.12",
                                           "libcublasLt.so.11", "libcublasLt.so"};

// Returns the version of the opened library, such as 130100 for 13.1, or 0 if it does not report
// one.
size_t VersionOf(void* handle) {
  const auto get =
      reinterpret_cast<BlasApi::GetVersionFunction>(dlsym(handle, "cublasLtGetVersion"));
  return get == nullptr ? 0 : get();
}

Status WrongVersion(const std::string& library, size_t version) {
  return FailedPrecondition("cuBLASLt (", library, ") is version ", version / 10000, ".",
                            version / 100 % 100, ", but this program needs ", kMajor,
                            ": install cuBLAS of CUDA ", kMajor,
                            ", and name its folder in LD_LIBRARY_PATH");
}

// Returns the error for a library that cannot be opened.
Status Missing(const std::string& error, std::span<const char* const> others) {
  for (const char* const other : others) {
    void* const handle = dlopen(other, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    const size_t version = VersionOf(handle);
    dlclose(handle);
    if (version != 0 && version / 10000 != kMajor) return WrongVersion(other, version);
  }
  return FailedPrecondition("no cuBLASLt, which computes matrix products on a GPU: ", error,
                            "; install cuBLAS of CUDA 13, and name its folder in "
                            "LD_LIBRARY_PATH");
}

}  // namespace

Status ToStatus(const BlasApi& blas, BlasResult result, std::string_view call) {
  if (result == kBlasSuccess) return OkStatus();
  const char* const name = blas.GetStatusName(result);
  return Internal(call, ": ", name == nullptr ? "unknown error" : name);
}

StatusOr<BlasApi> OpenBlas(const std::string& library, std::span<const char* const> others) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = dlerror();
    return Missing(error == nullptr ? "unknown error" : error, others);
  }
  // Check the version first, because another version may lack functions.
  const size_t version = VersionOf(handle);
  if (version != 0 && version / 10000 != kMajor) return WrongVersion(library, version);
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
  static const auto* const kBlas = new StatusOr<BlasApi>(OpenBlas(kBlasLibrary, kOtherLibraries));
  if (!kBlas->ok()) return kBlas->status();
  return &**kBlas;
}

}  // namespace tfjob::device::cuda
