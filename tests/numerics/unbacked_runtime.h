// Provides a device without memory, on which programs can be planned, but not run. A model with
// gigabytes of variables can then be planned without allocating them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/device/device_runtime.h"

namespace tfjob {

// Allocations have distinct addresses that must not be accessed. Submitted operations are ignored.
class UnbackedRuntime final : public device::DeviceRuntime {
 public:
  bool immediate() const override { return false; }
  StatusOr<device::Memory> Allocate(device::MemoryKind, size_t bytes, Buffer::Contents,
                                    std::string_view) override {
    const uint64_t address = next_;
    next_ += (bytes + 256) / 256 * 256;
    return device::Memory(reinterpret_cast<void*>(address), [](void*) {});
  }
  StatusOr<std::unique_ptr<device::Stream>> NewStream() override { return NoOperations(); }
  StatusOr<std::unique_ptr<device::Event>> NewEvent() override { return NoOperations(); }
  void Copy(void*, const void*, size_t, device::Stream&) override {}
  void Record(device::Event&, device::Stream&) override {}
  void Wait(device::Stream&, const device::Event&) override {}
  Status Synchronize(const device::Event&) override { return OkStatus(); }
  Status Synchronize() override { return OkStatus(); }
  Status Read(void*, const void*, size_t) override { return NoOperations(); }
  Status Write(void*, const void*, size_t) override { return OkStatus(); }
  Status BeginCapture(device::Stream&) override { return NoOperations(); }
  StatusOr<std::unique_ptr<device::Sequence>> EndCapture(device::Stream&) override {
    return NoOperations();
  }
  void Replay(const device::Sequence&, device::Stream&) override {}

 private:
  static Status NoOperations() { return Unimplemented("programs are only planned"); }

  uint64_t next_ = 256;
};

}  // namespace tfjob
