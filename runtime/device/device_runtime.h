// Defines the interface to a device: its memory, its streams and events, and captured sequences of
// operations. An operation is a copy or a kernel. Kernels are not part of this interface: a kernel
// receives a stream, and submits its work to that stream (kernels/kernel.h).
//
// The operations of one stream run in the order in which they were submitted, at any time after
// their submission. Operations of different streams run in any order, unless an event orders them:
// an operation that is submitted to a stream after Wait(stream, event) runs after all operations
// that the event covers. An event covers the operations that were submitted to its stream before
// Record, and all operations that they had to wait for. The host may assume that operations have
// run only after it has synchronised with an event that covers them.
//
// Threads: an object of these classes may be used by one thread at a time, and a DeviceRuntime by
// any number of threads.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::device {

enum class MemoryKind {
  kHost,    // ordinary memory of the host; asynchronous operations must not use it
  kPinned,  // host memory for copies to and from the device; the host must not write it while an
            // operation may read it, and must not access it while an operation may write it
  kDevice,  // only operations may access it, unless the runtime is immediate
};
std::string_view Name(MemoryKind kind);  // "host", "pinned", "device"

// Memory of a device, aligned to 64 bytes. Dropping the last reference frees the memory. At that
// point, no operation that uses the memory may be pending.
using Memory = std::shared_ptr<void>;

class Stream {
 public:
  virtual ~Stream() = default;
};

class Event {
 public:
  virtual ~Event() = default;
};

// Operations that were captured from a stream.
class Sequence {
 public:
  virtual ~Sequence() = default;
};

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  // Returns true if every operation runs before the call that submits it returns, and the host may
  // access all memory. Programs on such a device need no copies of their inputs and outputs.
  virtual bool immediate() const = 0;

  // Allocates memory. `name` is for error messages. Returns ResourceExhausted if there is not
  // enough memory.
  virtual StatusOr<Memory> Allocate(MemoryKind kind, size_t bytes, Buffer::Contents contents,
                                    std::string_view name) = 0;

  virtual StatusOr<std::unique_ptr<Stream>> NewStream() = 0;
  virtual StatusOr<std::unique_ptr<Event>> NewEvent() = 0;

  // Copies between pinned and device memory, or within one of them. The ranges must not overlap.
  virtual void Copy(void* to, const void* from, size_t bytes, Stream& stream) = 0;

  // Makes the event cover all operations that have been submitted to the stream so far. An event
  // that has never been recorded covers no operations.
  virtual void Record(Event& event, Stream& stream) = 0;
  virtual void Wait(Stream& stream, const Event& event) = 0;

  // Wait until all operations that the event covers, or all operations submitted to the device,
  // have run. Return the error if the device has failed.
  virtual Status Synchronize(const Event& event) = 0;
  virtual Status Synchronize() = 0;

  // Copy between any host memory and device memory. Wait for all operations submitted before the
  // call, and return after the copy is complete. Intended for rare copies, such as those for a
  // checkpoint.
  virtual Status Read(void* to, const void* from, size_t bytes) = 0;
  virtual Status Write(void* to, const void* from, size_t bytes) = 0;

  // Capture a sequence: the operations that are submitted to the stream between these two calls are
  // recorded instead of run. During the capture, the stream must not record an event or wait for
  // one, and no thread may allocate or free device or pinned memory, or synchronise with the
  // device. Return Unimplemented on an immediate device.
  virtual Status BeginCapture(Stream& stream) = 0;
  virtual StatusOr<std::unique_ptr<Sequence>> EndCapture(Stream& stream) = 0;
  // Submits the operations of a sequence, with the addresses that were captured.
  virtual void Replay(const Sequence& sequence, Stream& stream) = 0;
};

}  // namespace tfjob::device
