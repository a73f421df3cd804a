// Implements the host's side of attention.cu and attention_gradient.cu.
#include <cmath>
#include <memory>
#include <string>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/layers/attention_parameters.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cuda {
namespace {

// The operands of both ops (ops.md, "Attention"), of which AttentionGrad has further ones.
struct AttentionOperands {
  const Operand *q, *k, *v, *y, *statistics;
  size_t first = 0;  // the position of the first input that may be absent
  bool masks = false, drops = false;
};

StatusOr<AttentionOperands> OperandsOf(const KernelRequest& request) {
  const bool gradient = request.op == "AttentionGrad";
  AttentionOperands o{};
  o.first = gradient ? 6 : 3;
  const size_t more = request.inputs.size() - std::min(request.inputs.size(), o.first);
  if (request.inputs.size() < o.first || more > 3 || request.outputs.size() != (gradient ? 3 : 2))
    return InvalidArgument("expected query, key, value and perhaps a mask, a step and a seed");
  o.masks = more % 2 == 1;
  o.drops = more >= 2;
  o.q = &request.inputs[0];
  o.k = &request.inputs[1];
  o.v = &request.inputs[2];
  o.y = gradient ? &request.inputs[3] : &request.outputs[0];
  o.statistics = gradient ? &request.inputs[4] : &request.outputs[1];
  return o;
}

Status ExpectHeads(const Operand& operand, DType dtype, const Shape& shape) {
  if (operand.dtype == dtype && operand.shape == shape) return OkStatus();
  return InvalidArgument("expected ", Operand::Dense(dtype, shape).ToString(), ", got ",
                         operand.ToString());
}

Status CheckHeads(const KernelRequest& request, const AttentionOperands& o) {
  const Shape &q = o.q->shape, &k = o.k->shape, &v = o.v->shape;
  const DType dtype = o.q->dtype;
  if (!IsHalf(dtype)) return cpu::NoKernelFor(dtype);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    return InvalidArgument("expected tensors [batch,positions,heads,size]");
  RETURN_IF_ERROR(ExpectHeads(*o.k, dtype, {q.dim(0), k.dim(1), q.dim(2), q.dim(3)}));
  RETURN_IF_ERROR(ExpectHeads(*o.v, dtype, {q.dim(0), k.dim(1), q.dim(2), v.dim(3)}));
  RETURN_IF_ERROR(ExpectHeads(*o.y, dtype, {q.dim(0), q.dim(1), q.dim(2), v.dim(3)}));
  RETURN_IF_ERROR(ExpectHeads(*o.statistics, DType::kFloat32, {2, q.dim(0), q.dim(2), q.dim(1)}));
  if (request.op == "AttentionGrad") {
    RETURN_IF_ERROR(ExpectHeads(request.inputs[5], dtype, o.y->shape));
    const Operand* const like[] = {o.q, o.k, o.v};
    for (size_t i = 0; i < 3; ++i)
      RETURN_IF_ERROR(ExpectHeads(request.outputs[i], dtype, like[i]->shape));
  }
  if (q.num_elements() == 0 || k.num_elements() == 0 || v.num_elements() == 0)
    return Unimplemented("an attention without elements");
  if (std::max(q.dim(3), v.dim(3)) > kAttentionDepth)
    return Unimplemented("heads of more than ", kAttentionDepth, " elements");
  for (const Operand* operand : {o.q, o.k, o.v, o.y}) RETURN_IF_ERROR(CheckCount(*operand));
  return OkStatus();
}

Status AddMask(const Operand& mask, const AttentionOperands& o, AttentionParameter& p) {
  const int64_t dims[] = {o.q->shape.dim(0), o.q->shape.dim(2), o.q->shape.dim(1),
                          o.k->shape.dim(1)};
  if (mask.dtype != DType::kBool) return cpu::NoKernelFor(mask.dtype);
  const int missing = 4 - mask.shape.rank();
  if (missing < 0) return InvalidArgument("expected a mask of at most 4 dimensions");
  int64_t strides[4] = {0, 0, 0, 0};
  int64_t rows = mask.row_stride;
  for (int axis = 3; axis >= missing; --axis) {
    const int64_t dim = mask.shape.dim(axis - missing);
    if (dim != 1 && dim != dims[axis])
      return InvalidArgument("the mask ", mask.ToString(), " does not fit the scores");
    if (dim != 1) strides[axis] = axis == 3 ? 1 : rows;
    if (axis != 3) rows *= dim;
  }
  p.mask_batch = strides[0];
  p.mask_head = strides[1];
  p.mask_query = strides[2];
  p.mask_key = strides[3];
  return OkStatus();
}

Status AddDropout(const KernelRequest& request, const AttentionOperands& o, AttentionParameter& p) {
  for (const size_t input : {request.inputs.size() - 2, request.inputs.size() - 1})
    RETURN_IF_ERROR(cpu::ExpectInt64Scalar(request.inputs[input]));
  const double rate = cpu::NumberOf(request.attributes, "rate", 0);
  if (!(rate >= 0 && rate < 1)) return InvalidArgument("the rate must be in [0, 1), not ", rate);
  const Shape &q = o.q->shape, &k = o.k->shape;
  RETURN_IF_ERROR(CheckCount(Operand::Dense(o.q->dtype, {q.dim(0), q.dim(2), q.dim(1), k.dim(1)})));
  p.words.op_id = static_cast<uint32_t>(request.attributes.Get<int64_t>("op_id", 0));
  p.words.replica = static_cast<uint16_t>(request.attributes.Get<int64_t>("replica", 0));
  p.threshold = static_cast<uint32_t>(rate * 4294967296.0);  // 2³², the number of words
  p.keep = static_cast<float>(1 / (1 - rate));
  p.drops = 1;
  return OkStatus();
}

StatusOr<AttentionParameter> ParameterOf(const KernelRequest& request, const AttentionOperands& o) {
  AttentionParameter p{};
  const auto tensor = [](const Operand& operand) {
    return HeadTensor{.data = nullptr, .stride = operand.row_stride};
  };
  p.q = tensor(*o.q);
  p.k = tensor(*o.k);
  p.v = tensor(*o.v);
  p.y = tensor(*o.y);
  if (request.op == "AttentionGrad") {
    p.dy = tensor(request.inputs[5]);
    p.dq = tensor(request.outputs[0]);
    p.dk = tensor(request.outputs[1]);
    p.dv = tensor(request.outputs[2]);
  }
  p.statistics_stride = o.statistics->row_stride;
  p.scale = static_cast<float>(cpu::NumberOf(request.attributes, "scale", 1));
  p.masked = static_cast<float>(cpu::NumberOf(request.attributes, "masked", 0));
  p.clears = request.attributes.Get("clears", false) ? 1 : 0;
  p.batch = static_cast<int32_t>(o.q->shape.dim(0));
  p.heads = static_cast<int32_t>(o.q->shape.dim(2));
  p.queries = static_cast<int32_t>(o.q->shape.dim(1));
  p.keys = static_cast<int32_t>(o.k->shape.dim(1));
  p.depth = static_cast<int32_t>(o.q->shape.dim(3));
  p.value_depth = static_cast<int32_t>(o.v->shape.dim(3));
  if (o.masks) RETURN_IF_ERROR(AddMask(request.inputs[o.first], o, p));
  if (o.drops) RETURN_IF_ERROR(AddDropout(request, o, p));
  return p;
}

// The name of a kernel for this type and these sizes, such as "AttentionKeysBFloat16_64". The names
// are constants, because launches keep pointers to them.
const char* KernelName(int kernel, DType dtype, const AttentionParameter& p) {
  static constexpr const char* kNames[3][2][2] = {
      {{"AttentionBFloat16_64", "AttentionBFloat16_128"},
       {"AttentionFloat16_64", "AttentionFloat16_128"}},
      {{"AttentionQueriesBFloat16_64", "AttentionQueriesBFloat16_128"},
       {"AttentionQueriesFloat16_64", "AttentionQueriesFloat16_128"}},
      {{"AttentionKeysBFloat16_64", "AttentionKeysBFloat16_128"},
       {"AttentionKeysFloat16_64", "AttentionKeysFloat16_128"}}};
  const bool longer = std::max(p.depth, p.value_depth) > kAttentionShort;
  return kNames[kernel][dtype == DType::kFloat16 ? 1 : 0][longer ? 1 : 0];
}

// Runs Attention or AttentionGrad.
class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(Launcher launcher, const AttentionParameter& parameter,
                  const AttentionOperands& operands)
      : launcher_(std::move(launcher)),
        parameter_(parameter),
        dtype_(operands.q->dtype),
        gradient_(operands.first == 6),
        masks_(operands.masks) {}

  size_t workspace_bytes() const override {
    if (!gradient_) return 0;
    return sizeof(float) * static_cast<size_t>(parameter_.batch) *
           static_cast<size_t>(parameter_.heads) * static_cast<size_t>(parameter_.queries);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    AttentionParameter p = parameter_;
    const auto in = [inputs](size_t i) { return const_cast<void*>(inputs[i]); };
    p.q.data = in(0);
    p.k.data = in(1);
    p.v.data = in(2);
    p.y.data = gradient_ ? in(3) : outputs[0];
    p.statistics = static_cast<float*>(gradient_ ? in(4) : outputs[1]);
    if (gradient_) {
      p.dy.data = in(5);
      p.dq.data = outputs[0];
      p.dk.data = outputs[1];
      p.dv.data = outputs[2];
      p.sums = static_cast<float*>(workspace);
    }
    size_t next = gradient_ ? 6 : 3;
    if (masks_) p.mask = static_cast<const uint8_t*>(inputs[next++]);
    if (p.drops != 0) {
      p.words.step = static_cast<const int64_t*>(inputs[next]);
      p.words.seed = static_cast<const int64_t*>(inputs[next + 1]);
    }
    if (!gradient_) return Launch(0, p.queries, p, stream);
    Launch(1, p.queries, p, stream);  // also computes the sums, which the next kernel reads
    Launch(2, p.keys, p, stream);
  }

 private:
  void Launch(int kernel, int64_t count, const AttentionParameter& p, Stream& stream) const {
    const int64_t blocks = int64_t{p.batch} * p.heads * Blocks(count, kAttentionTile);
    Submit(launcher_, KernelName(kernel, dtype_, p), {static_cast<unsigned>(blocks)},
           {kAttentionThreads}, p, stream);
  }

  const Launcher launcher_;
  const AttentionParameter parameter_;
  const DType dtype_;
  const bool gradient_, masks_;
};

Prepared PrepareAttention(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const AttentionOperands operands, OperandsOf(request));
  RETURN_IF_ERROR(CheckHeads(request, operands));
  ASSIGN_OR_RETURN(const AttentionParameter parameter, ParameterOf(request, operands));
  return std::make_unique<AttentionKernel>(launcher, parameter, operands);
}

}  // namespace

KernelTable::Entries AttentionKernels(const Launcher& launcher) {
  const auto prepare = [launcher](const KernelRequest& r) { return PrepareAttention(launcher, r); };
  return {{"Attention", {prepare, {}}}, {"AttentionGrad", {prepare, {}}}};
}

}  // namespace tfjob::kernels::cuda
