#include "runtime/model/layers/einsum_dense.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/einsum.h"

namespace tfjob::model::layers {
namespace {

constexpr std::string_view kDots = "...";

struct Equation {
  EinsumAxes axes;                   // without the dots
  bool left = false, right = false;  // where the dots are
};

bool IsLetters(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalpha(c); });
}

// Removes the dots from one end of the text. Returns whether there were any dots.
bool Strip(std::string& text, bool left) {
  if (text.size() < kDots.size()) return false;
  const size_t at = left ? 0 : text.size() - kDots.size();
  if (text.substr(at, kDots.size()) != kDots) return false;
  text.erase(at, kDots.size());
  return true;
}

StatusOr<Equation> Parse(const std::string& text) {
  const size_t comma = text.find(','), arrow = text.find("->");
  const Status bad = InvalidArgument("equation ", text,
                                     ": expected the form ab,bc->ac, ...b,bc->...c or "
                                     "ab...,bc->ac...");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma) return bad;
  Equation equation;
  EinsumAxes& axes = equation.axes;
  axes = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  equation.left = Strip(axes.x, true);
  equation.right = !equation.left && Strip(axes.x, false);
  if (Strip(axes.z, true) != equation.left || Strip(axes.z, false) != equation.right) return bad;
  if (!IsLetters(axes.x) || !IsLetters(axes.y) || !IsLetters(axes.z)) return bad;
  RETURN_IF_ERROR(CheckEinsum(axes));
  return equation;
}

// Determines the sizes that follow from the equation and the input.
struct Sizes {
  EinsumAxes axes;  // with a letter for each axis that the dots represent
  std::vector<int64_t> kernel;
  std::vector<int64_t> output;  // for one example
  std::vector<int64_t> bias;
  std::array<int64_t, 2> fans = {1, 1};
};

constexpr int64_t kUnknown = -1;  // the batch size, or a size that output_shape does not state

class Solver {
 public:
  Solver(const EinsumDense& layer, const Shape& in) : layer_(layer), in_(Batched(kUnknown, in)) {}

  StatusOr<Sizes> Run() {
    ASSIGN_OR_RETURN(equation_, Parse(layer_.equation));
    const int64_t elided = in_.rank() - static_cast<int64_t>(equation_.axes.x.size());
    const bool dots = equation_.left || equation_.right;
    if (elided < 0 || (elided > 0 && !dots) || (elided == 0 && equation_.left))
      return InvalidArgument("equation ", layer_.equation, " does not fit examples of shape ",
                             ExampleOf(in_).ToString());
    elided_ = static_cast<size_t>(elided);
    ASSIGN_OR_RETURN(sizes_.axes, WithoutDots());
    RETURN_IF_ERROR(SolveOutput());
    RETURN_IF_ERROR(SolveKernel());
    RETURN_IF_ERROR(SolveBias());
    return std::move(sizes_);
  }

 private:
  // Replaces the dots with letters that do not occur in the equation. Returns the resulting axes.
  StatusOr<EinsumAxes> WithoutDots() const {
    EinsumAxes axes = equation_.axes;
    std::string added;
    for (char letter = 'A'; letter <= 'z' && added.size() < elided_; ++letter) {
      const bool used = (axes.x + axes.y + axes.z).find(letter) != std::string::npos;
      if (std::isalpha(static_cast<unsigned char>(letter)) && !used) added += letter;
    }
    if (added.size() < elided_) return InvalidArgument("the input has too many axes");
    for (std::string* letters : {&axes.x, &axes.z})
      letters->insert(equation_.left ? 0 : letters->size(), added);
    return axes;
  }

  // Determines the sizes of the output's axes: the batch, the axes that the dots represent, and
  // output_shape.
  Status SolveOutput() {
    std::vector<int64_t> output = layer_.output_shape;
    const std::vector<int64_t>& in = in_.dims();
    output.insert(output.begin(), kUnknown);
    if (equation_.left) {
      output.insert(output.begin() + 1, in.begin() + 1, in.begin() + static_cast<int64_t>(elided_));
    } else {
      output.insert(output.end(), in.end() - static_cast<int64_t>(elided_), in.end());
    }
    if (output.size() != sizes_.axes.z.size() || sizes_.axes.z[0] != sizes_.axes.x[0])
      return InvalidArgument("output_shape does not fit the equation ", layer_.equation);
    for (size_t i = 0; i < output.size(); ++i) {
      const size_t at = sizes_.axes.x.find(sizes_.axes.z[i]);
      if (at != std::string::npos && output[i] == kUnknown) output[i] = in[at];
      if (at == std::string::npos && output[i] == kUnknown)
        return InvalidArgument("output_shape must state the size of axis ",
                               std::string(1, sizes_.axes.z[i]), ", which the input lacks");
      if (at != std::string::npos && in[at] != output[i])
        return InvalidArgument("axis ", std::string(1, sizes_.axes.z[i]), " has size ", in[at],
                               " in the input and ", output[i], " in output_shape");
    }
    sizes_.output.assign(output.begin() + 1, output.end());
    output_ = std::move(output);
    return OkStatus();
  }

  Status SolveKernel() {
    for (char letter : sizes_.axes.y) {
      const size_t in_z = sizes_.axes.z.find(letter), in_x = sizes_.axes.x.find(letter);
      const bool of_output = in_z != std::string::npos;
      if (!of_output && in_x == std::string::npos)
        return InvalidArgument("neither the input nor the output has the kernel's axis ",
                               std::string(1, letter));
      const int64_t size = of_output ? output_[in_z] : in_.dim(static_cast<int>(in_x));
      if (size == kUnknown) return InvalidArgument("the kernel may not have the batch's axis");
      sizes_.kernel.push_back(size);
      if (__builtin_mul_overflow(sizes_.fans[of_output], size, &sizes_.fans[of_output]))
        return InvalidArgument("the kernel is too large");
    }
    return OkStatus();
  }

  // Determines the shape of the bias, which has all output axes starting with the first one in
  // bias_axes.
  Status SolveBias() {
    const std::string& named = layer_.bias_axes;
    size_t first = sizes_.axes.z.size();
    for (char letter : named) {
      const size_t at = equation_.axes.z.find(letter);
      if (at == std::string::npos)
        return InvalidArgument("bias_axes: the output has no axis ", std::string(1, letter));
      first = std::min(first, sizes_.axes.z.find(letter));
    }
    for (size_t i = first; i < sizes_.axes.z.size(); ++i) {
      const bool has = named.find(sizes_.axes.z[i]) != std::string::npos;
      if (has && output_[i] == kUnknown)
        return InvalidArgument("the bias may not have the batch's axis");
      sizes_.bias.push_back(has ? output_[i] : 1);
    }
    return OkStatus();
  }

  const EinsumDense& layer_;
  const Shape in_;  // including the batch
  Equation equation_;
  size_t elided_ = 0;
  std::vector<int64_t> output_;  // including the batch
  Sizes sizes_;
};

}  // namespace

void EinsumDense::Arguments(ArgumentVisitor& visitor) {
  visitor.Text("equation", equation, /*required=*/true);
  visitor.Sizes("output_shape", output_shape);
  visitor.Activation("activation", activation, /*required=*/false);
  visitor.Text("bias_axes", bias_axes, /*required=*/false);
  visitor.Initializer("kernel_initializer", kernel_initializer);
  visitor.Initializer("bias_initializer", bias_initializer);
  visitor.Rules("kernel", kernel_rules);
  visitor.Rules("bias", bias_rules);
  for (const char* name :
       {"lora_rank", "lora_alpha", "gptq_unpacked_column_size", "quantization_config"})
    visitor.Retired(name, "null");
}

StatusOr<Shape> EinsumDense::OutputShape(const Shape& in) const {
  ASSIGN_OR_RETURN(const Sizes sizes, Solver(*this, in).Run());
  const Shape out(sizes.output);
  RETURN_IF_ERROR(CheckActivation(activation, out));
  return out;
}

std::vector<VariableSpec> EinsumDense::Variables(const Shape& in) const {
  const Sizes sizes = *Solver(*this, in).Run();
  Initializer kernel = kernel_initializer;
  kernel.fans = sizes.fans;
  std::vector<VariableSpec> variables = {{.name = "kernel",
                                          .shape = Shape(sizes.kernel),
                                          .initializer = kernel,
                                          .rules = kernel_rules}};
  if (!bias_axes.empty())
    variables.push_back({.name = "bias",
                         .shape = Shape(sizes.bias),
                         .initializer = bias_initializer,
                         .rules = bias_rules});
  return variables;
}

graph::Output EinsumDense::Apply(const LayerCall& call) const {
  const Sizes sizes = *Solver(*this, call.ExampleShape()).Run();
  graph::Output y = Einsum(call.b, call.x(), call.variables[0], sizes.axes);
  if (!bias_axes.empty()) y = graph::Add(call.b, y, call.variables[1]);
  return Activate(call.b, activation, y);
}

}  // namespace tfjob::model::layers
