#include "runtime/collectives/transport/gpu_ranks.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/collectives/nccl/nccl_communicator.h"
#include "runtime/collectives/socket/socket_communicator.h"
#include "runtime/device/cuda/cuda_runtime.h"

namespace tfjob::collectives {
namespace {

using device::cuda::CudaRuntime;

// Contains the parts that a rank needs to use NCCL.
struct GpuParts {
  const nccl::NcclApi* library = nullptr;
  std::shared_ptr<CudaRuntime> gpu;
  int version = 0;  // of the library
};

StatusOr<GpuParts> PartsOf(const TaskCommunicatorOptions& options) {
  GpuParts parts{.library = options.nccl_library,
                 .gpu = std::dynamic_pointer_cast<CudaRuntime>(options.device)};
  if (parts.gpu == nullptr) {
    return FailedPrecondition(
        "it does not compute on an NVIDIA GPU, which NCCL needs; set device: cuda in all tasks");
  }
  if (parts.library == nullptr) {
    ASSIGN_OR_RETURN(parts.library, nccl::OpenNccl());
  }
  RETURN_IF_ERROR(
      ToStatus(*parts.library, parts.library->GetVersion(&parts.version), "ncclGetVersion"));
  return parts;
}

// A rank sends this to the others. Its values are not trusted.
struct Introduction {
  int32_t version = 0;
  device::cuda::Uuid uuid{};
};

// Returns an error that names two ranks if NCCL would refuse to connect them.
Status CheckPairs(const std::vector<Introduction>& ranks) {
  for (size_t higher = 1; higher < ranks.size(); ++higher) {
    const Introduction& own = ranks[higher];
    if (own.version != ranks[0].version) {
      return FailedPrecondition("rank 0 has NCCL ", nccl::NcclVersionText(ranks[0].version),
                                ", rank ", higher, " has NCCL ", nccl::NcclVersionText(own.version),
                                "; install the same version in all tasks");
    }
    for (size_t lower = 0; lower < higher; ++lower) {
      if (own.uuid != ranks[lower].uuid) continue;
      return FailedPrecondition("rank ", lower, " and rank ", higher,
                                " use the same GPU, which NCCL does not allow; give each task a "
                                "GPU of its own");
    }
  }
  return OkStatus();
}

}  // namespace

Status CanUseNccl(const std::shared_ptr<device::DeviceRuntime>& device) {
  return PartsOf({.device = device}).status();
}

StatusOr<NcclAttempt> TryNccl(TaskCommunicatorOptions& options) {
  const StatusOr<GpuParts> parts = PartsOf(options);
  RankRounds rounds(options.rank, options.sockets, options.interrupt);
  ASSIGN_OR_RETURN(const auto verdict, rounds.Agree(parts.status(), options.patience));
  if (!verdict.status.ok()) return NcclAttempt{.why_not = verdict.status};
  const std::vector<Introduction> own(options.sockets.size(),
                                      {.version = parts->version, .uuid = parts->gpu->uuid()});
  ASSIGN_OR_RETURN(const std::vector<Introduction> ranks, rounds.Exchange(own, options.patience));
  if (Status refused = CheckPairs(ranks); !refused.ok())
    return NcclAttempt{.why_not = std::move(refused)};
  ASSIGN_OR_RETURN(auto control, MakeSocketCommunicator({.rank = options.rank,
                                                         .sockets = std::move(options.sockets),
                                                         .costs = options.costs}));
  ASSIGN_OR_RETURN(auto made, nccl::MakeNcclCommunicator({.nccl = parts->library,
                                                          .device = parts->gpu,
                                                          .control = std::move(control),
                                                          .patience = options.nccl_patience,
                                                          .interrupt = options.interrupt}));
  return NcclAttempt{.made = std::move(made), .why_not = OkStatus()};
}

}  // namespace tfjob::collectives
