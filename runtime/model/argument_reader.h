// Reads the arguments of a layer from the layer's config.
#pragma once

#include "runtime/model/layer/argument_visitor.h"
#include "runtime/model/layer/arguments.h"
#include "runtime/model/layer/regularizer.h"
#include "runtime/optimizer/constraint.h"

namespace tfjob::model {

// Reads each argument that it visits. Records the first error, and leaves the remaining arguments
// unchanged.
class ArgumentReader : public ArgumentVisitor {
 public:
  explicit ArgumentReader(Arguments& arguments) : arguments_(arguments) {}

  const Status& status() const { return status_; }

  void Integer(std::string_view name, int64_t& value, const IntegerRule& rule) override;
  void Number(std::string_view name, double& value, const NumberRule& rule) override;
  void Flag(std::string_view name, bool& value) override;
  void Text(std::string_view name, std::string& value, bool required) override;
  void Numbers(std::string_view name, std::vector<double>& value) override;
  void Optional(std::string_view name, std::optional<int64_t>& value) override;
  void Optional(std::string_view name, std::optional<double>& value,
                const NumberRule& rule) override;
  void Integers(std::string_view name, std::vector<int64_t>& value, const ListRule& rule) override;
  void CountOrList(std::string_view name, int64_t& count, std::vector<int64_t>& list,
                   const IntegerRule& rule) override;
  void PerAxis(std::string_view name, std::vector<int64_t>& value,
               const IntegerRule& rule) override;
  void Margins(std::string_view name, std::vector<int64_t>& value) override;
  void Pairs(std::string_view name, std::vector<int64_t>& value) override;
  void Axis(std::string_view name, int64_t& value) override;
  void Axes(std::string_view name, std::vector<int64_t>& value) override;
  void OptionalAxes(std::string_view name, std::vector<int64_t>& value) override {
    Axes(name, value);
  }
  void Sizes(std::string_view name, std::vector<int64_t>& value) override;
  void Activation(std::string_view name, ActivationKind& value, bool required) override;
  void Initializer(std::string_view name, model::Initializer& value) override;
  void Regularizer(std::string_view name, model::Regularizer& value) override;
  void Constraint(std::string_view name, optimizer::Constraint& value) override;
  void Wrapped(std::string_view name, std::shared_ptr<const Layer>& value, bool required) override;
  void WrappedList(std::string_view name,
                   std::vector<std::shared_ptr<const Layer>>& value) override;
  void InputShape(Shape& value) override;
  void Type(std::string_view name, DType& value) override;
  void ChoiceIndex(std::string_view name, size_t& value,
                   std::span<const std::string_view> names) override;
  void Only(std::string_view name, std::string_view value) override;
  void Retired(std::string_view name, std::string_view value) override { Only(name, value); }
  void OldName(std::string_view name, double& value, const NumberRule& rule) override {
    Number(name, value, rule);
  }
  void Ignored(std::string_view name) override { arguments_.Ignore(name); }

 private:
  void Keep(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  // Returns the argument, or nullopt if it is absent or an error has already been recorded. Records
  // an error if a required argument is absent.
  std::optional<JsonField> Given(std::string_view name, bool required, std::string_view expected);
  void CheckIntegers(const JsonField& field, const std::vector<int64_t>& values,
                     const IntegerRule& rule);

  Arguments& arguments_;
  Status status_;
};

}  // namespace tfjob::model
