#include "runtime/kernels/cuda/general_update.h"

#include <algorithm>
#include <optional>

#include "runtime/optimizer/part.h"

namespace tfjob::kernels::cuda {
namespace {

using optimizer::Kind;
using optimizer::Optimizer;
using optimizer::Part;

// The number of workspace bytes that are reserved for a StepNumbers.
constexpr size_t kNumbersBytes = 64;
static_assert(sizeof(StepNumbers) <= kNumbersBytes);

// The kernels' enums must list their values in the same order as the optimizers' enums.
static_assert(static_cast<int>(UpdateKind::kSgd) == static_cast<int>(Kind::kSgd) &&
              static_cast<int>(UpdateKind::kAdamW) == static_cast<int>(Kind::kAdamW) &&
              static_cast<int>(UpdateKind::kLion) == static_cast<int>(Kind::kLion) &&
              static_cast<int>(UpdateKind::kLion) + 1 == optimizer::kKindCount);
static_assert(static_cast<int>(RateDecay::kNone) == static_cast<int>(optimizer::Decay::kNone) &&
              static_cast<int>(RateDecay::kCosine) == static_cast<int>(optimizer::Decay::kCosine) &&
              static_cast<int>(RateDecay::kPiecewiseConstant) ==
                  static_cast<int>(optimizer::Decay::kPiecewiseConstant));
static_assert(kUpdateSlots == optimizer::kMaxSlots);

// The indices of an op's inputs. The step is always the first input.
struct UpdateInputs {
  size_t rows = 0;  // 0: the gradient is not given by rows
  size_t values = 1, variable = 2;
};

UpdateInputs InputsOf(const KernelRequest& request) {
  if (request.op == "ApplyOptimizerRows") return {.rows = 1, .values = 2, .variable = 3};
  return {};
}

class GeneralUpdateKernel final : public Kernel {
 public:
  GeneralUpdateKernel(Launcher launcher, const UpdateNumbersParameter& numbers,
                      const GeneralUpdateParameter& update, const UpdateInputs& inputs, int slots,
                      std::optional<RowIndex> index)
      : launcher_(std::move(launcher)),
        numbers_(numbers),
        update_(update),
        inputs_(inputs),
        slots_(slots),
        index_(std::move(index)) {}

  size_t workspace_bytes() const override { return kNumbersBytes + (index_ ? index_->bytes() : 0); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    UpdateNumbersParameter numbers = numbers_;
    numbers.schedule.step = static_cast<const int64_t*>(inputs[0]);
    numbers.numbers = static_cast<StepNumbers*>(workspace);
    Submit(launcher_, "UpdateNumbers", {1}, {1}, numbers, stream);
    GeneralUpdateParameter p = update_;
    p.numbers = numbers.numbers;
    p.refusal = RefusalOf(stream);
    p.variable = static_cast<float*>(outputs[0]);
    for (int slot = 0; slot < slots_; ++slot)
      p.slots[slot] = static_cast<float*>(outputs[1 + slot]);
    p.values = inputs[inputs_.values];
    if (inputs_.rows > 0) p.rows = static_cast<const int64_t*>(inputs[inputs_.rows]);
    if (index_) {
      void* const space = static_cast<std::byte*>(workspace) + kNumbersBytes;
      p.index = index_->Submit(p.rows, space, stream);
    }
    Submit(launcher_, "GeneralUpdate", {Blocks(p.count, kUpdateThreads)}, {kUpdateThreads}, p,
           stream);
  }

 private:
  const Launcher launcher_;
  const UpdateNumbersParameter numbers_;
  const GeneralUpdateParameter update_;  // complete except for the pointers
  const UpdateInputs inputs_;
  const int slots_;
  const std::optional<RowIndex> index_;  // set if rows without a gradient change, too
};

// Returns the number of steps whose gradients an update combines.
int64_t StepsPerUpdate(const Optimizer& o) {
  return std::max<int64_t>(1, o.gradient_accumulation_steps);
}

StatusOr<UpdateNumbersParameter> NumbersOf(const Optimizer& o, Part part) {
  UpdateNumbersParameter p{};
  ASSIGN_OR_RETURN(p.schedule, ScheduleOf(o));
  p.kind = static_cast<UpdateKind>(o.kind);
  p.only_adds = part == Part::kAccumulate ? 1 : 0;
  p.beta_1 = o.beta_1;
  p.beta_2 = o.beta_2;
  p.beta = o.beta;
  p.l2 = o.l2_regularization_strength;
  p.weight_decay = o.weight_decay;
  p.ema_momentum = o.ema_momentum;
  p.every = StepsPerUpdate(o);
  p.overwrite_frequency = o.use_ema ? o.ema_overwrite_frequency : 0;
  return p;
}

// Sets the members that depend on the optimizer.
void SetOptions(const Optimizer& o, Part part, GeneralUpdateParameter& p) {
  const bool decays = o.kind == Kind::kRmsprop || o.kind == Kind::kAdadelta;
  const double keep_1 = decays ? o.rho : o.beta_1;
  const bool accumulates = StepsPerUpdate(o) > 1;
  p.kind = static_cast<UpdateKind>(o.kind);
  p.nesterov = o.nesterov ? 1 : 0;
  p.amsgrad = o.amsgrad ? 1 : 0;
  p.centered = o.centered ? 1 : 0;
  p.root = o.learning_rate_power == -0.5 ? 1 : 0;
  p.average = o.use_ema && part != Part::kAccumulate ? optimizer::AverageSlot(o) : -1;
  p.accumulator = accumulates ? optimizer::SlotCount(o) - 1 : -1;
  p.adds = part == Part::kUpdate ? 0 : 1;
  const bool takes_sum = accumulates && part != Part::kUpdate;
  p.scale = takes_sum ? 1 / static_cast<float>(StepsPerUpdate(o)) : 1;
  p.momentum = static_cast<float>(o.momentum);
  p.keep_1 = static_cast<float>(keep_1);
  p.take_1 = static_cast<float>(1 - keep_1);
  p.keep_2 = static_cast<float>(o.beta_2);
  p.take_2 = static_cast<float>(1 - o.beta_2);
  p.epsilon = static_cast<float>(o.epsilon);
  p.l1 = static_cast<float>(o.l1_regularization_strength);
  p.shrink = static_cast<float>(2 * o.l2_shrinkage_regularization_strength);
  p.power = static_cast<float>(-o.learning_rate_power);
}

// Sets the members that depend on the shapes. If `all` is set, every row of the variable is
// visited.
void SetLayout(const KernelRequest& request, const UpdateInputs& inputs, bool all,
               GeneralUpdateParameter& p) {
  const Operand &values = request.inputs[inputs.values],
                &variable = request.inputs[inputs.variable];
  p.variable_stride = variable.row_stride;
  for (size_t i = inputs.variable + 1; i < request.inputs.size(); ++i)
    p.slot_strides[i - inputs.variable - 1] = request.inputs[i].row_stride;
  p.values_stride = values.row_stride;
  p.variable_rows = variable.rows();
  p.count = static_cast<uint32_t>((all ? variable : values).shape.num_elements());
  p.cols = static_cast<uint32_t>(variable.cols());
}

}  // namespace

StatusOr<LearningRateParameter> ScheduleOf(const Optimizer& o) {
  const optimizer::Schedule& schedule = o.schedule;
  LearningRateParameter p{};
  if (schedule.boundaries.size() > std::size(p.boundaries) ||
      schedule.values.size() > std::size(p.values))
    return Unimplemented("a learning-rate schedule of more than ", kRatePieces, " boundaries");
  p.decay = static_cast<RateDecay>(schedule.decay);
  p.staircase = schedule.staircase ? 1 : 0;
  p.cycle = schedule.cycle ? 1 : 0;
  p.pieces = static_cast<int32_t>(schedule.boundaries.size());
  p.initial = o.learning_rate;
  p.decay_steps = static_cast<double>(schedule.decay_steps);
  p.decay_rate = schedule.decay_rate;
  p.end_learning_rate = schedule.end_learning_rate;
  p.power = schedule.power;
  p.alpha = schedule.alpha;
  p.t_mul = schedule.t_mul;
  p.m_mul = schedule.m_mul;
  p.warmup_target = schedule.warmup_target;
  p.warmup_steps = static_cast<double>(schedule.warmup_steps);
  std::ranges::copy(schedule.boundaries, p.boundaries);
  std::ranges::copy(schedule.values, p.values);
  return p;
}

StatusOr<RowIndex> RowIndex::Create(const Launcher& launcher, int64_t values, int64_t rows) {
  const Operand index = Operand::Dense(DType::kInt32, Shape({rows}));
  ASSIGN_OR_RETURN(auto clear, PrepareFill(launcher, index, -1));
  return RowIndex(launcher, std::move(clear), values, rows);
}

const int32_t* RowIndex::Submit(const int64_t* numbers, void* space, Stream& stream) const {
  clear_->Run(nullptr, &space, nullptr, stream);
  const IndexRowsParameter p{.rows = numbers,
                             .index = static_cast<int32_t*>(space),
                             .index_count = rows_,
                             .count = static_cast<uint32_t>(values_)};
  cuda::Submit(launcher_, "IndexRows", {Blocks(values_, kIndexThreads)}, {kIndexThreads}, p,
               stream);
  return p.index;
}

Prepared PrepareGeneralUpdate(const Launcher& launcher, const KernelRequest& request,
                              const Optimizer& o) {
  const Part part = optimizer::PartOf(request.attributes);
  const UpdateInputs inputs = InputsOf(request);
  ASSIGN_OR_RETURN(const UpdateNumbersParameter numbers, NumbersOf(o, part));
  const bool by_rows = inputs.rows > 0, all = !by_rows || !optimizer::KeepsRows(o);
  GeneralUpdateParameter update{};
  SetOptions(o, part, update);
  SetLayout(request, inputs, all, update);
  ASSIGN_OR_RETURN(update.values_type, FloatTypeOf(request.inputs[inputs.values].dtype));
  std::optional<RowIndex> index;
  if (by_rows && all) {
    ASSIGN_OR_RETURN(index, RowIndex::Create(launcher, request.inputs[inputs.values].shape.dim(0),
                                             request.inputs[inputs.variable].shape.dim(0)));
  }
  return std::make_unique<GeneralUpdateKernel>(launcher, numbers, update, inputs,
                                               optimizer::SlotCount(o), std::move(index));
}

}  // namespace tfjob::kernels::cuda
