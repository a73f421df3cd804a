#include "runtime/ps/client.h"

namespace tfjob::ps {

StatusOr<StepResult> ParameterClient::Exchange(
    std::span<const std::span<const std::byte>> gradients,
    std::span<const std::span<std::byte>> values) {
  RETURN_IF_ERROR(BeginStep(gradients, values));
  return EndStep();
}

StatusOr<std::unique_ptr<ParameterClient>> ParameterClient::Create(ClientOptions) {
  return Unimplemented("the parameter client");
}

}  // namespace tfjob::ps
