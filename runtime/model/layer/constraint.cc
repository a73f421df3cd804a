#include "runtime/model/layer/constraint.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/layer/arguments.h"

namespace tfjob::model {
namespace {

using optimizer::Constraint;
using ConstraintKind = Constraint::Kind;

// Describes a Keras class and its short name.
struct ConstraintClass {
  ConstraintKind kind;
  std::string_view name;
  double max_value;  // the default of the argument max_value
};

constexpr ConstraintClass kConstraints[] = {{ConstraintKind::kNonNeg, "non_neg", 1},
                                            {ConstraintKind::kUnitNorm, "unit_norm", 1},
                                            {ConstraintKind::kMaxNorm, "max_norm", 2},
                                            {ConstraintKind::kMinMaxNorm, "min_max_norm", 1}};

// Reads an axis or a list of axes. The default is axis 0. Rejects null.
Status ReadAxes(Arguments& arguments, std::vector<int64_t>& axes) {
  const JsonField field = arguments["axis"];
  if (!field.present() && arguments.IsNull("axis"))
    return arguments.Named(field.Mismatch("one axis, or a list of axes"));
  if (field.present() && field.value()->is_array()) return arguments.Read("axis", axes);
  axes = {0};
  return arguments.Read("axis", axes[0]);
}

Status ReadBounds(Arguments& arguments, Constraint& constraint) {
  const ConstraintKind kind = constraint.kind;
  if (kind == ConstraintKind::kNonNeg) return OkStatus();
  RETURN_IF_ERROR(ReadAxes(arguments, constraint.axes));
  if (kind == ConstraintKind::kMaxNorm || kind == ConstraintKind::kMinMaxNorm)
    RETURN_IF_ERROR(arguments.Read("max_value", constraint.max_value));
  if (kind != ConstraintKind::kMinMaxNorm) return OkStatus();
  RETURN_IF_ERROR(arguments.Read("min_value", constraint.min_value));
  return arguments.Read("rate", constraint.rate);
}

Json BoundsOf(const Constraint& constraint) {
  const ConstraintKind kind = constraint.kind;
  Json bounds = Json::object();
  if (kind == ConstraintKind::kNonNeg) return bounds;
  bounds["axis"] = constraint.axes.size() == 1 ? Json(constraint.axes[0]) : Json(constraint.axes);
  if (kind != ConstraintKind::kUnitNorm) bounds["max_value"] = constraint.max_value;
  if (kind == ConstraintKind::kMinMaxNorm)
    bounds.update({{"min_value", constraint.min_value}, {"rate", constraint.rate}});
  return bounds;
}

}  // namespace

StatusOr<Constraint> ReadConstraint(const JsonField& field) {
  ASSIGN_OR_RETURN(ClassForm form, ReadClassForm(field, "a constraint"));
  std::vector<std::string> names;
  for (const ConstraintClass& known : kConstraints) {
    const std::string_view class_name = Name(known.kind);
    names.emplace_back(class_name);
    if (form.class_name != class_name && form.class_name != known.name) continue;
    Constraint constraint{.kind = known.kind, .max_value = known.max_value};
    Arguments arguments(StrCat("constraint ", class_name), form.arguments);
    RETURN_IF_ERROR(ReadBounds(arguments, constraint));
    RETURN_IF_ERROR(arguments.Finish());
    return constraint;
  }
  return InvalidArgument(field.path(), ": constraint ", form.class_name, " is not supported",
                         DidYouMean(form.class_name, names));
}

Json WriteConstraint(const Constraint& constraint) {
  if (!constraint.present()) return Json();
  return {{"module", "keras.constraints"},
          {"class_name", std::string(Name(constraint.kind))},
          {"config", BoundsOf(constraint)},
          {"registered_name", nullptr}};
}

}  // namespace tfjob::model
