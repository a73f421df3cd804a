#include <dlfcn.h>

#include <optional>

#include "runtime/base/env.h"
#include "runtime/device/cuda/driver_api.h"

namespace tfjob::device::cuda {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

// Returns the version as text, such as "13.0" for 13000.
std::string Version(int version) {
  return StrCat(version / 1000, ".", version % 1000 / 10);
}

std::string_view LastError() {
  const char* const error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

// Returns whether this value of CUDA_VISIBLE_DEVICES hides all GPUs on every machine. The driver
// ignores the first entry that names no GPU, and all entries after it.
bool HidesEveryGpu(const std::string& visible) {
  return visible.empty() || visible.front() == '-' || visible == "NoDevFiles";
}

Status NoDevice(const std::string* visible) {
  if (visible != nullptr && HidesEveryGpu(*visible)) {
    return FailedPrecondition("CUDA_VISIBLE_DEVICES is \"", *visible,
                              "\", which leaves no GPU: unset it, or name a GPU such as 0");
  }
  return FailedPrecondition(
      "the NVIDIA driver finds no GPU",
      visible == nullptr ? "" : StrCat(" (CUDA_VISIBLE_DEVICES is \"", *visible, "\")"),
      ": in a container, request one (resource nvidia.com/gpu); on the host, see what nvidia-smi "
      "says");
}

Status CheckVersion(int version) {
  if (version >= kOldestCuda) return OkStatus();
  return FailedPrecondition("the NVIDIA driver supports CUDA ", Version(version),
                            ", but this program needs ", Version(kOldestCuda),
                            ": install driver 580 or newer");
}

// Loads the library, which then stays loaded until the process exits.
StatusOr<void*> LoadLibrary(const std::string& library) {
  if (void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  return FailedPrecondition("no NVIDIA driver: ", LastError(),
                            "; install driver 580 or newer, and in a container request a GPU "
                            "(resource nvidia.com/gpu)");
}

}  // namespace

Status ToStatus(const DriverApi& driver, Result result, std::string_view call) {
  if (result == kSuccess) return OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.GetErrorName(result, &name) != kSuccess || name == nullptr) name = "unknown error";
  if (driver.GetErrorString(result, &text) != kSuccess || text == nullptr) text = "no description";
  const std::string message = StrCat(call, ": ", name, " (", text, ")");
  return result == kOutOfMemory ? ResourceExhausted(message) : Internal(message);
}

Status CheckDriver(const DriverApi& driver, const std::string* visible) {
  int version = 0;
  RETURN_IF_ERROR(ToStatus(driver, driver.DriverGetVersion(&version), "cuDriverGetVersion"));
  RETURN_IF_ERROR(CheckVersion(version));
  const Result initialised = driver.Init(0);
  if (initialised == kNoDevice) return NoDevice(visible);
  if (initialised != kSuccess) {
    return FailedPrecondition("the NVIDIA driver cannot start: ",
                              Message(ToStatus(driver, initialised, "cuInit")));
  }
  int count = 0;
  RETURN_IF_ERROR(ToStatus(driver, driver.DeviceGetCount(&count), "cuDeviceGetCount"));
  return count > 0 ? OkStatus() : NoDevice(visible);
}

StatusOr<DriverApi> OpenDriver(const std::string& library, const std::string* visible) {
  ASSIGN_OR_RETURN(void* const handle, LoadLibrary(library));
  // Check the version first: an old driver also lacks functions, but the error should name the
  // version, not a missing function.
  const auto get_version =
      reinterpret_cast<DriverApi::DriverGetVersionFunction>(dlsym(handle, "cuDriverGetVersion"));
  if (int version = 0; get_version != nullptr && get_version(&version) == kSuccess)
    RETURN_IF_ERROR(CheckVersion(version));
  DriverApi driver;
#define TFJOB_CUDA_LOAD(name, symbol, ...)                                                \
  driver.name = reinterpret_cast<DriverApi::name##Function>(dlsym(handle, symbol));       \
  if (driver.name == nullptr) {                                                           \
    return FailedPrecondition("the NVIDIA driver (", library, ") lacks ", symbol,         \
                              ", which this program needs: install driver 580 or newer"); \
  }
  TFJOB_CUDA_DRIVER_FUNCTIONS(TFJOB_CUDA_LOAD)
#undef TFJOB_CUDA_LOAD
  RETURN_IF_ERROR(CheckDriver(driver, visible));
  return driver;
}

Status FindDriver(const std::string& library) {
  return LoadLibrary(library).status();
}

Status FindDriver() {
  return FindDriver(kLibrary);
}

StatusOr<const DriverApi*> OpenDriver() {
  static const auto* const kDriver = [] {
    const std::optional<std::string> visible = GetEnv("CUDA_VISIBLE_DEVICES");
    return new StatusOr<DriverApi>(OpenDriver(kLibrary, visible ? &*visible : nullptr));
  }();
  if (!kDriver->ok()) return kDriver->status();
  return &**kDriver;
}

}  // namespace tfjob::device::cuda
