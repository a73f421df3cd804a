#include "runtime/device/cpu_runtime.h"

#include <cstring>

#include "runtime/base/env.h"

namespace tfjob::device {
namespace {

class Cpu final : public DeviceRuntime {
 public:
  bool immediate() const override { return true; }

  // Refuses to allocate more memory than the process may use, because Linux would grant the request
  // and kill the process later.
  StatusOr<Memory> Allocate(MemoryKind, size_t bytes, Buffer::Contents contents,
                            std::string_view name) override {
    if (bytes > static_cast<size_t>(AvailableMemory())) {
      return ResourceExhausted(name, " needs ", bytes,
                               " bytes of memory, but this process may use ", AvailableMemory());
    }
    auto buffer = std::make_shared<Buffer>(bytes, contents);
    return Memory(buffer, buffer->data());
  }

  StatusOr<std::unique_ptr<Stream>> NewStream() override { return std::make_unique<Stream>(); }
  StatusOr<std::unique_ptr<Event>> NewEvent() override { return std::make_unique<Event>(); }

  void Copy(void* to, const void* from, size_t bytes, Stream&) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void Record(Event&, Stream&) override {}
  void Wait(Stream&, const Event&) override {}
  Status Synchronize(const Event&) override { return OkStatus(); }
  Status Synchronize() override { return OkStatus(); }

  Status Read(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return OkStatus();
  }
  Status Write(void* to, const void* from, size_t bytes) override { return Read(to, from, bytes); }

  Status BeginCapture(Stream&) override { return CannotCapture(); }
  StatusOr<std::unique_ptr<Sequence>> EndCapture(Stream&) override { return CannotCapture(); }
  void Replay(const Sequence&, Stream&) override {}  // there is no sequence

 private:
  static Status CannotCapture() {
    return Unimplemented("the CPU runs operations at once, so it cannot capture them");
  }
};

}  // namespace

std::shared_ptr<DeviceRuntime> CpuRuntime() {
  static const auto* const kCpu = new std::shared_ptr<DeviceRuntime>(std::make_shared<Cpu>());
  return *kCpu;
}

}  // namespace tfjob::device
