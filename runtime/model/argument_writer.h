// Writes a layer's arguments into a Keras 3 config.
#pragma once

#include "runtime/base/json.h"
#include "runtime/model/layer/argument_visitor.h"
#include "runtime/model/layer/regularizer.h"
#include "runtime/optimizer/constraint.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model {

class ArgumentWriter : public ArgumentVisitor {
 public:
  // Adds the arguments to `config`, an object.
  explicit ArgumentWriter(Json& config) : config_(config) {}

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
  void OptionalAxes(std::string_view name, std::vector<int64_t>& value) override;
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
  void Retired(std::string_view, std::string_view) override {}
  void OldName(std::string_view, double&, const NumberRule&) override {}
  void Ignored(std::string_view) override {}

 private:
  Json& At(std::string_view name);
  Json& config_;
};

}  // namespace tfjob::model
