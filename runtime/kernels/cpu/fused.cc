// Implements FusedElementwise, which runs a short program of elementwise steps on one block of
// elements at a time. This keeps intermediate results in the first-level cache.
#include <array>
#include <charconv>
#include <sstream>
#include <vector>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/rows.h"

namespace tfjob::kernels::cpu {
namespace {

constexpr int64_t kBlock = 256;              // elements
constexpr int kMaxSteps = 24;                // as floats, their results use 24 KiB of stack
constexpr int kMaxLiterals = 2 * kMaxSteps;  // no step has more than two literals

struct Source {
  enum Kind { kInput, kStep, kLiteral } kind = kInput;
  int index = 0;
};

template <typename T>
using Loop = void (*)(int64_t count, T* out, const T* const* in);

template <typename T, typename F>
void One(int64_t count, T* out, const T* const* in) {
  Map(count, F(), out, in[0]);
}
template <typename T, typename F>
void Two(int64_t count, T* out, const T* const* in) {
  Map(count, F(), out, in[0], in[1]);
}
template <typename T, typename F>
void Three(int64_t count, T* out, const T* const* in) {
  Map(count, F(), out, in[0], in[1], in[2]);
}

template <typename T>
struct Op {
  const char* name;
  size_t operands;
  Loop<T> loop;
};

template <typename T>
constexpr Op<T> kOps[] = {
    {"Add", 2, Two<T, Add>},           {"Sub", 2, Two<T, Sub>},
    {"Mul", 2, Two<T, Mul>},           {"Div", 2, Two<T, Div>},
    {"Maximum", 2, Two<T, Maximum>},   {"Minimum", 2, Two<T, Minimum>},
    {"Pow", 2, Two<T, Pow>},           {"Neg", 1, One<T, Neg>},
    {"Abs", 1, One<T, Abs>},           {"Square", 1, One<T, Square>},
    {"Sqrt", 1, One<T, SquareRoot>},   {"Rsqrt", 1, One<T, Rsqrt>},
    {"Exp", 1, One<T, Exponential>},   {"Log", 1, One<T, Logarithm>},
    {"Erf", 1, One<T, ErrorFunction>}, {"Relu", 1, One<T, Relu>},
    {"Sigmoid", 1, One<T, SigmoidOf>}, {"Tanh", 1, One<T, TanhOf>},
    {"ReluGrad", 2, Two<T, ReluGrad>}, {"SigmoidGrad", 2, Two<T, SigmoidGrad>},
    {"TanhGrad", 2, Two<T, TanhGrad>}, {"ClipByValue", 3, Three<T, Clip>},
};

template <typename T>
struct Step {
  Loop<T> loop = nullptr;
  size_t operands = 0;
  std::array<Source, 3> sources;
};

template <typename T>
struct Program {
  std::vector<Step<T>> steps;
  std::vector<T> literals;

  StatusOr<Source> Parse(const std::string& word, size_t inputs);
  Status ParseStep(const std::string& text, size_t inputs);
};

template <typename T>
StatusOr<Source> Program<T>::Parse(const std::string& word, size_t inputs) {
  // A word that starts with i or t names an input or a step, except for "inf", which is a number.
  const bool named = (word[0] == 'i' || word[0] == 't') && word.substr(1, 1) != "n";
  const char *begin = word.data() + (named ? 1 : 0), *end = word.data() + word.size();
  double number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error == std::errc() && stop == end) {
    if (!named) {
      literals.push_back(static_cast<T>(number));
      return Source{Source::kLiteral, static_cast<int>(literals.size()) - 1};
    }
    const size_t known = word[0] == 'i' ? inputs : steps.size();
    if (number >= 0 && number < static_cast<double>(known)) {
      return Source{word[0] == 'i' ? Source::kInput : Source::kStep, static_cast<int>(number)};
    }
  }
  return InvalidArgument("\"", word,
                         "\" in the program is not an input, an earlier step or a number");
}

template <typename T>
Status Program<T>::ParseStep(const std::string& text, size_t inputs) {
  std::istringstream words(text);
  std::string name, word;
  words >> name;
  for (const Op<T>& op : kOps<T>) {
    if (name != op.name) continue;
    Step<T> step{op.loop, op.operands, {}};
    for (size_t i = 0; i < op.operands; ++i) {
      if (!(words >> word)) return InvalidArgument(name, " takes ", op.operands, " operands");
      ASSIGN_OR_RETURN(step.sources[i], Parse(word, inputs));
    }
    if (words >> word) return InvalidArgument(name, " takes ", op.operands, " operands");
    steps.push_back(step);
    return OkStatus();
  }
  return Unimplemented("there is no elementwise op \"", name, "\"");
}

template <typename T>
StatusOr<Program<T>> ParseProgram(const std::string& text, size_t inputs) {
  Program<T> program;
  std::istringstream steps(text);
  for (std::string step; std::getline(steps, step, ';');) {
    RETURN_IF_ERROR(program.ParseStep(step, inputs));
  }
  const size_t count = program.steps.size();
  if (count == 0 || count > kMaxSteps || program.literals.size() > kMaxLiterals) {
    return InvalidArgument("a program has 1 to ", kMaxSteps, " steps and up to ", kMaxLiterals,
                           " numbers");
  }
  return program;
}

// Describes how an input is read: as a tensor with the output's shape, as one row that is repeated
// for each row of the output, or as a single element.
struct Input {
  int64_t row_stride = 0;
  bool scalar = false;
};

template <typename T>
class Fused : public Kernel {
 public:
  Fused(Program<T> program, std::vector<Input> inputs, Rows rows, int64_t out_stride)
      : program_(std::move(program)),
        inputs_(std::move(inputs)),
        rows_(rows),
        out_stride_(out_stride),
        literals_(program_.literals.size()) {
    for (size_t i = 0; i < literals_.size(); ++i) literals_[i].fill(program_.literals[i]);
  }

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    for (size_t i = 0, scalar = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].scalar) continue;
      std::fill(scalars_[scalar], scalars_[scalar] + kBlock, *static_cast<const T*>(inputs[i]));
      ++scalar;
    }
    const auto weight = static_cast<int64_t>(program_.steps.size()) * 2;
    rows_.ForEach(
        stream,
        [&](int64_t row, int64_t begin, int64_t end) {
          auto* out = static_cast<T*>(outputs[0]) + row * out_stride_;
          for (int64_t at = begin; at < end; at += kBlock) {
            RunBlock(inputs, row, at, std::min(kBlock, end - at), out + at);
          }
        },
        weight);
  }

  static constexpr int kMaxScalars = 8;

 private:
  void RunBlock(const void* const* inputs, int64_t row, int64_t at, int64_t count, T* out) const {
    alignas(64) T results[kMaxSteps][kBlock];
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      const Step<T>& step = program_.steps[s];
      std::array<const T*, 3> from{};
      for (size_t i = 0; i < step.operands; ++i) {
        const Source& source = step.sources[i];
        from[i] = source.kind == Source::kStep ? results[source.index]
                  : source.kind == Source::kLiteral
                      ? literals_[static_cast<size_t>(source.index)].data()
                      : At(inputs, source.index, row, at);
      }
      step.loop(count, s + 1 == program_.steps.size() ? out : results[s], from.data());
    }
  }

  const T* At(const void* const* inputs, int index, int64_t row, int64_t at) const {
    const auto i = static_cast<size_t>(index);
    if (!inputs_[i].scalar) {
      return static_cast<const T*>(inputs[i]) + row * inputs_[i].row_stride + at;
    }
    const auto before = std::count_if(inputs_.begin(), inputs_.begin() + index,
                                      [](const Input& input) { return input.scalar; });
    return scalars_[before];
  }

  Program<T> program_;
  std::vector<Input> inputs_;
  Rows rows_;
  int64_t out_stride_;
  struct alignas(64) Block : std::array<T, kBlock> {};
  std::vector<Block> literals_;
  alignas(64) T scalars_[kMaxScalars][kBlock];
};

Prepared PrepareFused(const KernelRequest& request) {
  if (request.outputs.size() != 1) return InvalidArgument("expected one output");
  const Operand& out = request.outputs[0];
  std::vector<Input> inputs;
  Rows rows({&out});
  int scalars = 0;
  for (const Operand& input : request.inputs) {
    if (input.dtype != out.dtype) return InvalidArgument("the operands differ in dtype");
    const bool same = input.shape == out.shape, scalar = !same && input.shape.num_elements() == 1;
    if (!same && !scalar && input.shape != Shape({out.cols()})) {
      return InvalidArgument(input.ToString(), " has neither the output's shape nor its last",
                             " dimension nor one element");
    }
    scalars += scalar ? 1 : 0;
    inputs.push_back({same ? input.row_stride : 0, scalar});
    if (!scalar && (!same || !input.dense())) {
      rows.rows = out.rows();
      rows.cols = out.cols();
    }
  }
  if (scalars > Fused<float>::kMaxScalars) return InvalidArgument("too many scalars");
  const auto text = request.attributes.Get<std::string>("program", "");
  return ForFloat(out.dtype, [&]<typename T>(Type<T>) -> Prepared {
    ASSIGN_OR_RETURN(Program<T> program, ParseProgram<T>(text, inputs.size()));
    return Make<Fused<T>>(std::move(program), inputs, rows, out.row_stride);
  });
}

}  // namespace

KernelTable::Entries FusedElementwiseKernels() {
  return {{"FusedElementwise", {PrepareFused, {{0, 0}, {0, 1}, {0, 2}, {0, 3}}}}};
}

}  // namespace tfjob::kernels::cpu
