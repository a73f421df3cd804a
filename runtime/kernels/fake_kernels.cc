#include "runtime/kernels/fake_kernels.h"

#include <span>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels {
namespace {

class FakeKernel final : public Kernel {
 public:
  FakeKernel(KernelRequest request, std::unique_ptr<Kernel> kernel,
             std::shared_ptr<device::FakeRuntime> runtime)
      : request_(std::move(request)), kernel_(std::move(kernel)), runtime_(std::move(runtime)) {}

  size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    ENFORCE(stream.runtime() == runtime_.get(), "a stream of the kernel's device");
    device::Operation operation{.name = request_.op, .accesses = {}, .run = {}};
    for (size_t i = 0; i < request_.inputs.size(); ++i)
      operation.accesses.push_back({inputs[i], request_.inputs[i].bytes(), false});
    for (size_t i = 0; i < request_.outputs.size(); ++i)
      operation.accesses.push_back({outputs[i], request_.outputs[i].bytes(), true});
    if (workspace_bytes() > 0) operation.accesses.push_back({workspace, workspace_bytes(), true});
    operation.run = [&stream, kernel = kernel_, inputs = request_.inputs.size(),
                     outputs = request_.outputs.size(),
                     step = stream.step()](std::span<void* const> storage) {
      if (!stream.ok()) return;
      Stream on_host(stream.pool());
      kernel->Run(storage.data(), storage.data() + inputs,
                  storage.size() > inputs + outputs ? storage.back() : nullptr, on_host);
      if (!on_host.ok()) stream.FailAt(step, on_host.TakeStatus());
    };
    runtime_->Submit(std::move(operation), *stream.queue());
  }

 private:
  const KernelRequest request_;
  const std::shared_ptr<Kernel> kernel_;  // shared with submitted operations
  const std::shared_ptr<device::FakeRuntime> runtime_;
};

}  // namespace

KernelTable FakeKernels(const KernelTable& table, std::shared_ptr<device::FakeRuntime> runtime) {
  KernelTable::Entries entries;
  for (const auto& [op, entry] : table.entries()) {
    const auto prepare = [inner = entry.prepare, runtime](
                             const KernelRequest& request) -> StatusOr<std::unique_ptr<Kernel>> {
      ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, inner(request));
      return std::make_unique<FakeKernel>(request, std::move(kernel), runtime);
    };
    entries[op] = {prepare, entry.in_place};
  }
  return KernelTable("FAKE", std::move(entries), /*host_operands=*/false);
}

}  // namespace tfjob::kernels
