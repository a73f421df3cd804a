#include <dlfcn.h>

#include "runtime/collectives/nccl/nccl_api.h"

namespace tfjob::collectives::nccl {
namespace {

// The file name contains the major version, because another major version may have a different ABI.
constexpr char kNcclLibrary[] = "libnccl.so.2";
constexpr char kInstall[] =
    "install NCCL 2.18 or newer for CUDA 13 (libnccl2), and name its folder in LD_LIBRARY_PATH";

Status TooOld(const std::string& library, int version) {
  return FailedPrecondition("NCCL (", library, ") is version ", NcclVersionText(version),
                            ", but this program needs ", NcclVersionText(kOldestNccl),
                            " or newer: ", kInstall);
}

}  // namespace

std::string NcclVersionText(int version) {
  // The numbers of versions up to 2.8 have one digit fewer.
  const int thousands = version < 10000 ? 1000 : 10000;
  return StrCat(version / thousands, ".", version % thousands / 100, ".", version % 100);
}

Status ToStatus(const NcclApi& nccl, NcclResult result, std::string_view call) {
  if (result == kNcclSuccess) return OkStatus();
  const char* const text = nccl.GetErrorString(result);
  const std::string message =
      StrCat(call, ": ", text == nullptr ? StrCat("unknown error ", result) : text);
  const bool others = result == kNcclRemoteError || result == kNcclSystemError;
  return others ? Unavailable(message) : Internal(message);
}

StatusOr<NcclApi> OpenNccl(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = dlerror();
    return FailedPrecondition("no NCCL, which strategy.implementation nccl needs: ",
                              error == nullptr ? "unknown error" : error, "; ", kInstall);
  }
  // Check the version first: an old library also lacks functions, but the error should name the
  // version, not a missing function.
  const auto get_version =
      reinterpret_cast<NcclApi::GetVersionFunction>(dlsym(handle, "ncclGetVersion"));
  if (int version = 0; get_version != nullptr && get_version(&version) == kNcclSuccess) {
    if (version < kOldestNccl) return TooOld(library, version);
  }
  NcclApi nccl;
#define TFJOB_NCCL_LOAD(name, symbol, ...)                                      \
  nccl.name = reinterpret_cast<NcclApi::name##Function>(dlsym(handle, symbol)); \
  if (nccl.name == nullptr) {                                                   \
    return FailedPrecondition("NCCL (", library, ") lacks ", symbol,            \
                              ", which this program needs: ", kInstall);        \
  }
  TFJOB_NCCL_FUNCTIONS(TFJOB_NCCL_LOAD)
#undef TFJOB_NCCL_LOAD
  return nccl;
}

StatusOr<const NcclApi*> OpenNccl() {
  static const auto* const kNccl = new StatusOr<NcclApi>(OpenNccl(kNcclLibrary));
  if (!kNccl->ok()) return kNccl->status();
  return &**kNccl;
}

}  // namespace tfjob::collectives::nccl
