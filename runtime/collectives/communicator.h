// Defines the collective operations of a fixed set of ranks. A communicator belongs to one
// generation of a group (group.h). If a rank is lost, all operations of all other ranks fail, and
// the group forms a new generation with a new communicator.
//
// All ranks must call the same operations in the same order with the same sizes, types and
// arguments. Spans must be aligned to their elements. A sum has one definition, the pairwise tree
// over the ranks in rank order (reduction.h). All ranks therefore get the same bits, regardless of
// the algorithm, the transport, the size of the spans and the order in which the ranks arrive. Only
// a communicator that was created with SumOrder::kRing, or that uses NCCL, adds in another order.
//
// Only one thread at a time may call the operations, and each call blocks until it is complete.
// Abort and CurrentWait may be called on any thread. After the first error, every further operation
// returns that error; the contents of the spans are then undefined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/device/device_runtime.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::collectives {

// How values of type float32, float64, bfloat16, float16, int32 or int64 are combined. A mean is
// the sum, divided once by the number of ranks. There is no mean of integers.
enum class Reduction : uint8_t { kSum = 0, kMinimum = 1, kMaximum = 2, kMean = 3 };

// The order in which a communicator adds. With kRing, the order depends on the number of ranks and
// on an element's position in the span (plan.h); all ranks still get equal bits.
enum class SumOrder : uint8_t { kTree, kRing };

// The part of a span that one rank reduces: elements [begin, begin + count).
struct Slice {
  int64_t begin = 0;
  int64_t count = 0;
  bool operator==(const Slice&) const = default;
};
// Splits `count` elements into `ranks` slices whose sizes differ by at most one; the first (count
// mod ranks) slices have one more element.
Slice SliceOf(int64_t count, int rank, int ranks);

// Describes what an operation waits for. See Communicator::CurrentWait.
struct Waiting {
  int64_t operation = 0;  // ordinal of the operation in this communicator, from 1; 0: none yet
  std::string_view name;  // "AllReduce"; a literal
  int on = -1;            // the rank that the operation waits for; -1: none
  Duration since{0};      // when this wait started, on the clock RealClock().Monotonic()
};

// A sum of values in the memory of each rank's device.
struct DeviceSum {
  // Contiguous values that are copied to `values` before the ranks add, for ranks whose values are
  // in several places.
  struct Part {
    const void* from = nullptr;  // device memory
    size_t begin = 0;            // position in `values`, in bytes
    size_t bytes = 0;
  };

  std::span<std::byte> values;  // device memory; replaced by the sum over all ranks
  DType dtype = DType::kFloat32;
  std::span<const Part> parts;     // read only during the call
  std::span<std::byte> host_copy;  // pinned memory that receives the sum, or empty
};

class Communicator {
 public:
  // Closes the communicator. If operations on other ranks still need this rank, they fail with
  // Cancelled, or with this rank's first error. No other thread may use the communicator.
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Names the transport for logs: "tcp", "shared memory", "shared memory and tcp" (ranks share
  // memory within each machine), "threads", "nccl".
  virtual std::string_view transport() const = 0;

  // Memory whose contents this communicator can exchange without copying them.
  class Memory {
   public:
    virtual ~Memory() = default;
    virtual std::span<std::byte> bytes() const = 0;  // aligned to 64
  };
  // All ranks must call Allocate, with the same size. The memory is filled with zeros, and may
  // outlive the communicator. All operations also accept spans in other memory, from which some
  // transports must copy the values.
  virtual StatusOr<std::unique_ptr<Memory>> Allocate(size_t bytes) = 0;

  // Replaces `values` with the reduction of all ranks' values.
  virtual Status AllReduce(std::span<std::byte> values, DType dtype, Reduction reduction) = 0;
  // Returns the device in whose memory this communicator can add values, or null if it only accepts
  // values in the host's memory. If it is null on one rank, it is null on all ranks.
  virtual device::DeviceRuntime* device() const { return nullptr; }
  // Submits a sum to the communicator's own stream on the device, once all ranks have called this
  // function. The host must have waited for the operations that computed the values and their
  // parts. Until AwaitDevice has returned, no other operation may access the values, the parts and
  // the copy. If this function or AwaitDevice fails, the device no longer accesses them, unless it
  // does not respond. Returns Unimplemented if there is no device.
  virtual Status AllReduceOnDevice(const DeviceSum& sum) {
    return Unimplemented(transport(), " adds ", sum.values.size(), " bytes only on the host");
  }
  // Waits until all sums that were submitted are complete. Waits only for this rank's device. Does
  // nothing if there is no device.
  virtual Status AwaitDevice() { return OkStatus(); }
  // Replaces this rank's slice (SliceOf) with the reduction of all ranks' values. The other slices
  // become undefined.
  virtual Status ReduceScatter(std::span<std::byte> values, DType dtype, Reduction reduction) = 0;
  // For every rank r, replaces slice r (SliceOf) with rank r's values in that slice. An element has
  // `element_bytes` bytes.
  virtual Status AllGather(std::span<std::byte> values, size_t element_bytes) = 0;
  // Sets `all` to the concatenated bytes of all ranks, and `sizes` to the number of bytes that each
  // rank contributed. Ranks may have different numbers of bytes, including 0. Returns
  // ResourceExhausted on every rank if `all` would exceed `most_bytes`. Reuses the capacity of both
  // vectors.
  virtual Status AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                                   std::vector<std::byte>& all, std::vector<size_t>& sizes) = 0;
  // Replaces the values with the values of `root`.
  virtual Status Broadcast(std::span<std::byte> values, int root) = 0;
  // On `root`, replaces `values` with the reduction of all ranks' values. On other ranks, `values`
  // becomes undefined.
  virtual Status Reduce(std::span<std::byte> values, DType dtype, Reduction reduction,
                        int root) = 0;
  // For every rank r, sends slice r of `values` to rank r, and replaces this slice with the one
  // that rank r sends to this rank. The number of elements must be a multiple of size().
  virtual Status AllToAll(std::span<std::byte> values, size_t element_bytes) = 0;
  // Returns once every rank has called Barrier.
  virtual Status Barrier() = 0;

  // Makes the operation in progress and all later operations fail with the error `why`, on this
  // rank and on all others. If the error cannot reach the other ranks, their operations fail with
  // Unavailable. Over sockets, for example, a rank that aborts while it is sending a frame can only
  // close its connections. An operation in progress may still succeed on a rank that no longer
  // needs any other rank. If several ranks abort, each rank fails with the first error that reaches
  // it. Does nothing if the communicator already has an error.
  virtual void Abort(const Status& why) = 0;
  // Returns the rank that the operation in progress waits for, and since when no data has been
  // exchanged with that rank. Between two waits, `on` is briefly −1.
  virtual Waiting CurrentWait() const = 0;
};

}  // namespace tfjob::collectives
