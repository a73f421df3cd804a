#include "runtime/device/device_runtime.h"

namespace tfjob::device {

std::string_view Name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHost:
      return "host";
    case MemoryKind::kPinned:
      return "pinned";
    case MemoryKind::kDevice:
      return "device";
  }
  return "unknown";
}

}  // namespace tfjob::device
