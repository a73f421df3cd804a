#include "runtime/kernels/cuda/checks/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/checks/element.h"

namespace tfjob::kernels::cuda {
namespace {

using Doubles = std::vector<double>;

// Returns a buffer's elements, including the padding of rows.
Doubles ValuesOf(const Operand& operand, const void* data) {
  Doubles values(operand.bytes() / SizeOf(operand.dtype));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = NumberAt(operand, data, 0, static_cast<int64_t>(i));
  return values;
}

void Store(const Operand& operand, void* data, size_t at, double value) {
  SetNumber(operand, data, 0, static_cast<int64_t>(at), value);
}

// A tensor [batch,positions,heads,size].
struct Heads {
  const Operand* operand;
  Doubles values;

  size_t At(int64_t batch, int64_t position, int64_t head, int64_t i) const {
    const Shape& shape = operand->shape;
    const int64_t row = (batch * shape.dim(1) + position) * shape.dim(2) + head;
    return static_cast<size_t>(row * operand->row_stride + i);
  }
};

// One query of a head: its scores, and what becomes of its weights.
struct Query {
  int64_t batch, head, position;
};

class Reference final : public Kernel {
 public:
  explicit Reference(const KernelRequest& request)
      : request_(request),
        gradient_(request.op == "AttentionGrad"),
        optional_(gradient_ ? 6 : 3),
        masks_((request.inputs.size() - optional_) % 2 == 1),
        drops_(request.inputs.size() - optional_ >= 2),
        scale_(request.attributes.Get("scale", 1.0)),
        masked_(request.attributes.Get("masked", 0.0)),
        clears_(request.attributes.Get("clears", false)) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream&) override {
    inputs_ = inputs;
    q_ = Read(0), k_ = Read(1), v_ = Read(2);
    if (gradient_) {
      y_ = Read(3), dy_ = Read(5);
      statistics_ = ValuesOf(request_.inputs[4], inputs[4]);
    }
    results_.clear();
    for (const Operand& output : request_.outputs)
      results_.emplace_back(output.bytes() / SizeOf(output.dtype));
    const Shape& q = q_.operand->shape;
    for (int64_t batch = 0; batch < q.dim(0); ++batch)
      for (int64_t head = 0; head < q.dim(2); ++head)
        for (int64_t position = 0; position < q.dim(1); ++position)
          Compute({batch, head, position});
    for (size_t i = 0; i < results_.size(); ++i)
      for (size_t at = 0; at < results_[i].size(); ++at)
        tfjob::kernels::cuda::Store(request_.outputs[i], outputs[i], at, results_[i][at]);
  }

 private:
  int64_t keys() const { return k_.operand->shape.dim(1); }

  Heads Read(size_t input) const {
    const Operand& operand = request_.inputs[input];
    return {&operand, ValuesOf(operand, inputs_[input])};
  }

  static double Dot(const Heads& a, const Heads& b, const Query& query, int64_t key) {
    double sum = 0;
    for (int64_t i = 0; i < a.operand->shape.dim(3); ++i)
      sum += a.values[a.At(query.batch, query.position, query.head, i)] *
             b.values[b.At(query.batch, key, query.head, i)];
    return sum;
  }

  bool Masked(const Query& query, int64_t key) const {
    if (!masks_) return false;
    const Operand& mask = request_.inputs[optional_];
    const int64_t at[] = {query.batch, query.head, query.position, key};
    const int rank = mask.shape.rank();
    int64_t row = 0;
    for (int axis = 0; axis + 1 < rank; ++axis) {
      const int64_t dim = mask.shape.dim(axis);
      row = row * dim + (dim == 1 ? 0 : at[4 - rank + axis]);
    }
    const int64_t col = mask.cols() == 1 ? 0 : key;
    return static_cast<const uint8_t*>(inputs_[optional_])[row * mask.row_stride + col] == 0;
  }

  // Returns the factor by which dropout multiplies a weight.
  double Kept(const Query& query, int64_t key) const {
    if (!drops_) return 1;
    const size_t step = optional_ + (masks_ ? 1 : 0);
    const auto number = [&](size_t i) { return *static_cast<const int64_t*>(inputs_[i]); };
    const Shape& q = q_.operand->shape;
    const int64_t row = (query.batch * q.dim(2) + query.head) * q.dim(1) + query.position;
    const auto element = static_cast<uint32_t>(row * keys() + key);
    const auto words =
        Philox(static_cast<uint64_t>(number(step + 1)),
               {element / 4, static_cast<uint32_t>(request_.attributes.Get<int64_t>("op_id", 0)),
                static_cast<uint32_t>(request_.attributes.Get<int64_t>("replica", 0)),
                static_cast<uint32_t>(number(step))});
    const double rate = request_.attributes.Get("rate", 0.0);
    return words[element % 4] >= static_cast<uint32_t>(rate * 4294967296.0) ? 1 / (1 - rate) : 0;
  }

  static size_t StatisticAt(const Operand& statistics, const Query& query, int64_t plane) {
    const Shape& shape = statistics.shape;
    const int64_t row = (plane * shape.dim(1) + query.batch) * shape.dim(2) + query.head;
    return static_cast<size_t>(row * statistics.row_stride + query.position);
  }
  double Statistic(const Query& query, int64_t plane) const {
    return statistics_[StatisticAt(request_.inputs[4], query, plane)];
  }

  void Compute(const Query& query) {
    const auto count = static_cast<size_t>(keys());
    Doubles weights(count);
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (size_t s = 0; s < count; ++s) {
      const auto key = static_cast<int64_t>(s);
      weights[s] = Masked(query, key) ? masked_ : scale_ * Dot(q_, k_, query, key);
      most = std::fmax(most, weights[s]);  // ignores NaN
    }
    if (gradient_) {
      // The op is defined for any statistics.
      for (double& weight : weights)
        weight = std::exp(weight - Statistic(query, 0)) / Statistic(query, 1);
      return AddGradients(query, weights);
    }
    for (double& weight : weights) {
      weight = std::isinf(most) && weight == most && most < 0 ? 0 : std::exp(weight - most);
      sum += weight;
    }
    for (double& weight : weights) weight /= sum;
    results_[1][StatisticAt(request_.outputs[1], query, 0)] = most;
    results_[1][StatisticAt(request_.outputs[1], query, 1)] = sum;
    const Heads y{&request_.outputs[0], {}};
    for (size_t s = 0; s < count; ++s) {
      const auto key = static_cast<int64_t>(s);
      const double used = Used(query, key, weights[s]);
      for (int64_t i = 0; i < v_.operand->shape.dim(3); ++i)
        results_[0][y.At(query.batch, query.position, query.head, i)] +=
            used * v_.values[v_.At(query.batch, key, query.head, i)];
    }
  }

  // Returns the factor between a weight of the softmax and the weight that is used.
  double Factor(const Query& query, int64_t key) const {
    return clears_ && Masked(query, key) ? 0 : Kept(query, key);
  }

  // Returns the weight that is multiplied with the value. A masked weight of NaN becomes 0, too.
  double Used(const Query& query, int64_t key, double weight) const {
    return clears_ && Masked(query, key) ? 0 : weight * Kept(query, key);
  }

  void AddGradients(const Query& query, const Doubles& weights) {
    Doubles gradients(weights.size());
    const double sum = Dot(dy_, y_, query, query.position);
    for (size_t s = 0; s < weights.size(); ++s) {
      const auto key = static_cast<int64_t>(s);
      gradients[s] = Factor(query, key) * Dot(dy_, v_, query, key);
    }
    for (size_t s = 0; s < weights.size(); ++s) {
      const auto key = static_cast<int64_t>(s);
      const double used = Used(query, key, weights[s]);
      for (int64_t i = 0; i < v_.operand->shape.dim(3); ++i)
        results_[2][Heads{&request_.outputs[2], {}}.At(query.batch, key, query.head, i)] +=
            used * dy_.values[dy_.At(query.batch, query.position, query.head, i)];
      const double score = Masked(query, key) ? 0 : scale_ * weights[s] * (gradients[s] - sum);
      for (int64_t i = 0; i < q_.operand->shape.dim(3); ++i) {
        results_[0]
                [Heads{&request_.outputs[0], {}}.At(query.batch, query.position, query.head, i)] +=
            score * k_.values[k_.At(query.batch, key, query.head, i)];
        results_[1][Heads{&request_.outputs[1], {}}.At(query.batch, key, query.head, i)] +=
            score * q_.values[q_.At(query.batch, query.position, query.head, i)];
      }
    }
  }

  const KernelRequest request_;
  const bool gradient_;
  const size_t optional_;  // the position of the first input that may be absent
  const bool masks_, drops_;
  const double scale_, masked_;
  const bool clears_;
  const void* const* inputs_ = nullptr;
  Heads q_{}, k_{}, v_{}, y_{}, dy_{};
  Doubles statistics_;
  std::vector<Doubles> results_;
};

}  // namespace

KernelTable::Entries AttentionReference() {
  const PrepareFunction prepare =
      [](const KernelRequest& request) -> StatusOr<std::unique_ptr<Kernel>> {
    return std::make_unique<Reference>(request);
  };
  return {{"Attention", {prepare, {}}}, {"AttentionGrad", {prepare, {}}}};
}

}  // namespace tfjob::kernels::cuda
