// Implements the ops that multiply matrices, using FinishedProduct (finished_product.h).
#include "runtime/kernels/cpu/products.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/finished_product.h"

namespace tfjob::kernels::cuda {
namespace {

// The offsets of a call's matrices from the operands' first matrices, in elements. `a` and `b` are
// in the library's order.
struct Offsets3 {
  int64_t a = 0, b = 0, d = 0;
};

// Does nothing. Used if the output has no elements or keeps its value.
class NoProduct final : public Kernel {
 public:
  void Run(const void* const*, void* const*, void*, Stream&) override {}
};

// Computes a product with k = 0, in which all elements are 0, and then adds the bias and applies
// the activation.
class EmptyProduct final : public Kernel {
 public:
  explicit EmptyProduct(std::unique_ptr<Kernel> program) : program_(std::move(program)) {}

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    program_->Run(inputs + 2, outputs, workspace, stream);  // the bias, if there is one
  }

 private:
  const std::unique_ptr<Kernel> program_;
};

// Runs a product one or more times, each time for another pair of matrices, or of batches of
// matrices.
class ProductKernel final : public Kernel {
 public:
  // `bytes` is the size of an element.
  ProductKernel(std::unique_ptr<FinishedProduct> product, std::vector<Offsets3> calls, bool bias,
                int64_t bytes)
      : product_(std::move(product)), calls_(std::move(calls)), bias_(bias), bytes_(bytes) {}

  size_t workspace_bytes() const override { return product_->workspace_bytes(); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    for (const Offsets3& call : calls_) {
      product_->Run({.a = static_cast<const std::byte*>(inputs[1]) + call.a * bytes_,
                     .b = static_cast<const std::byte*>(inputs[0]) + call.b * bytes_,
                     .bias = bias_ ? inputs[2] : nullptr,
                     .d = static_cast<std::byte*>(outputs[0]) + call.d * bytes_,
                     .workspace = workspace},
                    stream);
    }
  }

 private:
  const std::unique_ptr<FinishedProduct> product_;
  const std::vector<Offsets3> calls_;
  const bool bias_;
  const int64_t bytes_;
};

Prepared MakeProduct(const GpuAccess& gpu, const ProductDescription& product,
                     std::vector<Offsets3> calls, const Finish& finish, const Operand& out) {
  ASSIGN_OR_RETURN(auto finished, FinishedProduct::Prepare(gpu, product, finish, out));
  return std::make_unique<ProductKernel>(std::move(finished), std::move(calls), finish.bias,
                                         ElementBytes(product.factors));
}

// Prepares a product with k = 0.
Prepared MakeEmptyProduct(const GpuAccess& gpu, const Finish& finish, const Operand& out) {
  std::vector<Operand> inputs;
  std::string program = "Add 0 0";
  if (finish.bias) {
    inputs.push_back(Operand::Dense(out.dtype, Shape({out.cols()})));
    program = "Add i0 0";
  }
  if (!finish.activation.empty()) program += StrCat("; ", finish.activation, " t0");
  ASSIGN_OR_RETURN(auto kernel, PrepareProgram(gpu.launcher, inputs, out, program));
  return std::make_unique<EmptyProduct>(std::move(kernel));
}

Prepared PrepareMatMul(const GpuAccess& gpu, const KernelRequest& request) {
  const Attributes& attributes = request.attributes;
  const bool fused = request.op == "FusedMatMul";
  const Finish finish{
      .bias = fused && attributes.Get("bias", false),
      .activation = fused ? attributes.Get<std::string>("activation", "") : std::string()};
  RETURN_IF_ERROR(cpu::ExpectOperands(request, finish.bias ? 3 : 2, 1));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  ASSIGN_OR_RETURN(const cpu::ProductLayout layout, cpu::ProductLayoutOf(request));
  if (finish.bias) RETURN_IF_ERROR(cpu::ExpectShape(request.inputs[2], Shape({layout.n})));
  const Operand& out = request.outputs[0];
  if (layout.m * layout.n == 0) return std::make_unique<NoProduct>();
  if (layout.k == 0) return MakeEmptyProduct(gpu, finish, out);
  return MakeProduct(gpu, DescriptionOf(layout, type, gpu.arithmetic), {{}}, finish, out);
}

Prepared PrepareMatMulAccumulate(const GpuAccess& gpu, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 3, 1));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf({&request.inputs[0], &request.inputs[1]}));
  ASSIGN_OR_RETURN(const FloatType result, FloatTypeOf(request.outputs[0].dtype));
  if (request.inputs[2] != request.outputs[0])
    return InvalidArgument("the output must be input 2 itself");
  KernelRequest alike = request;  // float32 can also accumulate products of half types
  if (result == FloatType::kFloat32) alike.outputs[0].dtype = request.inputs[0].dtype;
  ASSIGN_OR_RETURN(const cpu::ProductLayout layout, cpu::ProductLayoutOf(alike));
  if (layout.m * layout.n * layout.k == 0) return std::make_unique<NoProduct>();
  ProductDescription product = DescriptionOf(layout, type, gpu.arithmetic);
  product.result = result;
  product.alpha = static_cast<float>(cpu::NumberOf(request.attributes, "alpha", 1));
  product.beta = 1;
  return MakeProduct(gpu, product, {{}}, {}, request.outputs[0]);
}

// Adds a product to a value, which is first copied to the output unless it is there already.
class AddedProduct final : public Kernel {
 public:
  // `product` may be null: then it is 0.
  AddedProduct(std::unique_ptr<Kernel> copy, std::unique_ptr<Kernel> product)
      : copy_(std::move(copy)), product_(std::move(product)) {}

  size_t workspace_bytes() const override {
    return product_ == nullptr ? 0 : product_->workspace_bytes();
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    if (inputs[2] != outputs[0]) copy_->Run(inputs + 2, outputs, workspace, stream);
    if (product_ != nullptr) product_->Run(inputs, outputs, workspace, stream);
  }

 private:
  const std::unique_ptr<Kernel> copy_, product_;
};

Prepared PrepareMatMulAdd(const GpuAccess& gpu, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 3, 1));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  const Operand& out = request.outputs[0];
  RETURN_IF_ERROR(cpu::ExpectShape(request.inputs[2], out.shape));
  ASSIGN_OR_RETURN(const cpu::ProductLayout layout, cpu::ProductLayoutOf(request));
  if (layout.m * layout.n == 0) return std::make_unique<NoProduct>();
  ASSIGN_OR_RETURN(auto copy, PrepareProgram(gpu.launcher, {request.inputs[2]}, out, "Copy i0"));
  if (layout.k == 0) return std::make_unique<AddedProduct>(std::move(copy), nullptr);
  ProductDescription description = DescriptionOf(layout, type, gpu.arithmetic);
  description.beta = 1;
  ASSIGN_OR_RETURN(auto product, MakeProduct(gpu, description, {{}}, {}, out));
  return std::make_unique<AddedProduct>(std::move(copy), std::move(product));
}

// The axes of a batch, starting with the outermost axis: their sizes and, for each operand in the
// library's order, the distances between matrices.
struct Batch {
  std::vector<int64_t> sizes;
  std::vector<Offsets3> steps;
};

// Joins neighbouring axes whose matrices are a constant distance apart, and omits axes of size 1.
Batch Joined(const cpu::BatchLayout& l) {
  Batch joined;
  for (size_t axis = 0; axis < l.batch.size(); ++axis) {
    const int64_t size = l.batch[axis];
    const Offsets3 step{l.y_steps[axis], l.x_steps[axis], l.z_steps[axis]};
    if (size == 1) continue;
    if (!joined.sizes.empty()) {
      const Offsets3& outer = joined.steps.back();
      if (outer.a == step.a * size && outer.b == step.b * size && outer.d == step.d * size) {
        joined.sizes.back() *= size;
        joined.steps.back() = step;
        continue;
      }
    }
    joined.sizes.push_back(size);
    joined.steps.push_back(step);
  }
  return joined;
}

// Returns the offsets of the calls. Each call covers the last axis.
std::vector<Offsets3> CallsOf(const Batch& batch) {
  std::vector<Offsets3> calls = {{}};
  for (size_t axis = 0; axis + 1 < batch.sizes.size(); ++axis) {
    std::vector<Offsets3> next;
    for (const Offsets3& call : calls) {
      for (int64_t i = 0; i < batch.sizes[axis]; ++i) {
        const Offsets3& step = batch.steps[axis];
        next.push_back({call.a + i * step.a, call.b + i * step.b, call.d + i * step.d});
      }
    }
    calls = std::move(next);
  }
  return calls;
}

Prepared PrepareBatchMatMul(const GpuAccess& gpu, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 2, 1));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  ASSIGN_OR_RETURN(const cpu::BatchLayout l, cpu::BatchLayoutOf(request));
  const Operand& out = request.outputs[0];
  if (out.shape.num_elements() == 0) return std::make_unique<NoProduct>();
  if (l.k == 0) return MakeEmptyProduct(gpu, {}, out);
  ProductDescription product = DescriptionOf(
      {l.m, l.n, l.k, l.adj_x, l.adj_y, l.x.row_stride, l.y.row_stride, l.z.row_stride}, type,
      gpu.arithmetic);
  const Batch batch = Joined(l);
  if (!batch.sizes.empty()) {
    if (batch.sizes.back() > INT32_MAX) return Unimplemented("a batch of ", batch.sizes.back());
    product.batch = static_cast<int32_t>(batch.sizes.back());
    product.a.batch_stride = batch.steps.back().a;
    product.b.batch_stride = batch.steps.back().b;
    product.batch_stride_d = batch.steps.back().d;
  }
  return MakeProduct(gpu, product, CallsOf(batch), {}, out);
}

}  // namespace

KernelTable::Entries MatMulKernels(const GpuAccess& gpu) {
  const auto with = [&gpu](auto prepare) {
    return [gpu, prepare](const KernelRequest& r) { return prepare(gpu, r); };
  };
  return {{"MatMul", {with(PrepareMatMul), {}}},
          {"FusedMatMul", {with(PrepareMatMul), {}}},
          {"MatMulAdd", {with(PrepareMatMulAdd), {{0, 2}}}},
          {"MatMulAccumulate", {with(PrepareMatMulAccumulate), {{0, 2, InPlace::kAlways}}}},
          {"BatchMatMulV2", {with(PrepareBatchMatMul), {}}}};
}

}  // namespace tfjob::kernels::cuda
