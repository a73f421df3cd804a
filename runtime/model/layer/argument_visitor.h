// Defines how a layer lists its arguments. A layer class has a single function, Arguments(visitor),
// which passes the name of each argument, the member that stores its value, and the rule for valid
// values to a visitor. There are visitors that read, write and document layers; because all of them
// use this function, they cannot disagree.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/tensor/dtype.h"

namespace tfjob {
class Shape;
}  // namespace tfjob
namespace tfjob::optimizer {
struct Constraint;
}  // namespace tfjob::optimizer

namespace tfjob::model {

enum class ActivationKind;
struct Initializer;
struct Layer;
struct Regularizer;
struct WeightRules;

struct IntegerRule {
  int64_t least = std::numeric_limits<int32_t>::min();
  int64_t most = std::numeric_limits<int32_t>::max();
  std::string_view expected = "an integer";  // for errors: "an integer of at least 1"
  bool required = false;
};
inline constexpr IntegerRule kPositive = {.least = 1, .expected = "an integer of at least 1"};

struct ListRule {
  bool (*valid)(std::span<const int64_t>) = nullptr;  // null: every list is valid
  std::string_view expected = "a list of integers";
  bool required = false;
};

struct NumberRule {
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
  bool below_most = false;                 // `most` itself is not valid
  std::string_view expected = "a number";  // for errors: "a number in [0, 1)"
  bool required = false;
};

// Visits the arguments of a layer class, one per call. The comments describe the form in files.
class ArgumentVisitor {
 public:
  virtual ~ArgumentVisitor() = default;

  virtual void Integer(std::string_view name, int64_t& value, const IntegerRule& rule) = 0;
  virtual void Number(std::string_view name, double& value, const NumberRule& rule) = 0;
  virtual void Flag(std::string_view name, bool& value) = 0;
  // A text. `value` is empty if the argument is absent.
  virtual void Text(std::string_view name, std::string& value, bool required) = 0;
  // A list of any length, or one number.
  virtual void Numbers(std::string_view name, std::vector<double>& value) = 0;
  virtual void Optional(std::string_view name, std::optional<int64_t>& value) = 0;
  virtual void Optional(std::string_view name, std::optional<double>& value,
                        const NumberRule& rule) = 0;
  // A list of any length.
  virtual void Integers(std::string_view name, std::vector<int64_t>& value,
                        const ListRule& rule) = 0;
  // A number or a list. If it is a list, `list` is not empty, and the rule is that of its elements.
  virtual void CountOrList(std::string_view name, int64_t& count, std::vector<int64_t>& list,
                           const IntegerRule& rule) = 0;
  // A list of the same length as `value`, or a single number for all elements.
  virtual void PerAxis(std::string_view name, std::vector<int64_t>& value,
                       const IntegerRule& rule) = 0;
  // Two nonnegative numbers per axis, such as the numbers of zeros to add at both ends of the axis.
  // `value` is [before, after, before, …]. In the file, a single number applies to all axes and
  // both ends. A list has one element per axis: a pair, or a number for both ends. If there is only
  // one axis, the list may be the pair itself.
  virtual void Margins(std::string_view name, std::vector<int64_t>& value) = 0;
  // A list of one or more pairs [before, after] of nonnegative numbers. `value` is [before, after,
  // before, …].
  virtual void Pairs(std::string_view name, std::vector<int64_t>& value) = 0;
  // A number, or a list that contains one number.
  virtual void Axis(std::string_view name, int64_t& value) = 0;
  // A list of any length, or one number.
  virtual void Axes(std::string_view name, std::vector<int64_t>& value) = 0;
  // Like Axes, but the argument may be absent; `value` is then empty.
  virtual void OptionalAxes(std::string_view name, std::vector<int64_t>& value) = 0;
  // A list of sizes, or a single size. In `value`, -1 represents null. If the argument is absent,
  // `value` is empty.
  virtual void Sizes(std::string_view name, std::vector<int64_t>& value) = 0;
  virtual void Activation(std::string_view name, ActivationKind& value, bool required) = 0;
  virtual void Initializer(std::string_view name, model::Initializer& value) = 0;
  virtual void Regularizer(std::string_view name, model::Regularizer& value) = 0;
  virtual void Constraint(std::string_view name, optimizer::Constraint& value) = 0;
  // The layer that this layer wraps, or null if there is none.
  virtual void Wrapped(std::string_view name, std::shared_ptr<const Layer>& value,
                       bool required) = 0;
  // A list of wrapped layers.
  virtual void WrappedList(std::string_view name,
                           std::vector<std::shared_ptr<const Layer>>& value) = 0;
  // The shape of one example of a model's input: `batch_shape`, or an older name of this argument.
  // The shape may contain kAnyLength (arguments.h).
  virtual void InputShape(Shape& value) = 0;
  virtual void Type(std::string_view name, DType& value) = 0;
  // One of `names`, where "null" represents the JSON value null. `value` is the index of the name.
  virtual void ChoiceIndex(std::string_view name, size_t& value,
                           std::span<const std::string_view> names) = 0;

  // An argument with only one supported value, given as JSON. The argument is written to files.
  virtual void Only(std::string_view name, std::string_view value) = 0;
  // Like Only, but the argument is not written, because only some versions of Keras have it.
  virtual void Retired(std::string_view name, std::string_view value) = 0;
  // An older name of a number that was listed before. The older name is not written.
  virtual void OldName(std::string_view name, double& value, const NumberRule& rule) = 0;
  // An argument whose value is ignored. The argument is not written.
  virtual void Ignored(std::string_view name) = 0;

  // The regularizer and the constraint of one of the layer's variables, such as "kernel".
  void Rules(const std::string& variable, WeightRules& rules);

  // One of `names`, which must be in the order of the enum.
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void Choice(std::string_view name, Enum& value, std::span<const std::string_view> names) {
    size_t index = static_cast<size_t>(value);
    ChoiceIndex(name, index, names);
    value = static_cast<Enum>(index);
  }
};

}  // namespace tfjob::model
