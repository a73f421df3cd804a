#include "runtime/model/layer/arguments.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/did_you_mean.h"

namespace tfjob::model {

StatusOr<ClassForm> ReadClassForm(const JsonField& field, std::string_view what) {
  const std::string expected = StrCat(what, ": a class, or {Class: {argument: value}}");
  const JsonField none = field["config"];
  if (!field.present()) return field.Mismatch(expected);
  if (field.value()->is_string()) {
    ASSIGN_OR_RETURN(std::string name, field.String());
    return ClassForm{std::move(name), none[0], none[0]};
  }
  if (!field.value()->is_object()) return field.Mismatch(expected);
  if (field.value()->contains("class_name")) {
    ASSIGN_OR_RETURN(std::string name, field["class_name"].String());
    return ClassForm{std::move(name), none, field["build_config"]["input_shape"]};
  }
  ASSIGN_OR_RETURN(auto members, field.Members());
  if (members.size() != 1) {
    return InvalidArgument(field.path(), ": expected ", expected, ", got a map of ", members.size(),
                           " keys");
  }
  return ClassForm{members[0].first, members[0].second, none[0]};
}

JsonField Arguments::operator[](std::string_view name) {
  known_.emplace_back(name);
  return arguments_[name];
}

bool Arguments::IsNull(std::string_view name) const {
  if (!arguments_.IsObject()) return false;
  const auto found = arguments_.value()->find(name);
  return found != arguments_.value()->end() && found->is_null();
}

namespace {

// Stores the value in `into`, unless the field is absent.
template <typename T>
Status Store(const Arguments& arguments, const JsonField& field, StatusOr<T> value, auto& into) {
  if (!field.present()) return OkStatus();
  if (!value.ok()) return arguments.Named(value.status());
  into = std::move(value).value();
  return OkStatus();
}

StatusOr<std::vector<int64_t>> Integers(const JsonField& field, size_t begin) {
  std::vector<int64_t> values;
  ASSIGN_OR_RETURN(std::vector<JsonField> elements, field.Elements());
  for (size_t i = begin; i < elements.size(); ++i) {
    ASSIGN_OR_RETURN(int64_t value, elements[i].Int());
    values.push_back(value);
  }
  return values;
}

// Converts the list's elements from index `begin` on to the shape of one example. Null becomes
// kAnyLength.
StatusOr<Shape> ExampleShape(const JsonField& field, size_t begin) {
  std::vector<int64_t> dims;
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
  for (size_t i = begin; i < elements.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t dim, elements[i].IntOr(kAnyLength));
    if (elements[i].present() && dim < 1)
      return field.Mismatch("dimensions of at least 1, or null for any length");
    dims.push_back(dim);
  }
  return Shape(std::move(dims));
}

}  // namespace

Status Arguments::Read(std::string_view name, int64_t& into) {
  const JsonField field = (*this)[name];
  return Store(*this, field, field.Int(), into);
}

Status Arguments::Read(std::string_view name, double& into) {
  const JsonField field = (*this)[name];
  return Store(*this, field, field.Double(), into);
}

Status Arguments::Read(std::string_view name, bool& into) {
  const JsonField field = (*this)[name];
  return Store(*this, field, field.Bool(), into);
}

Status Arguments::Read(std::string_view name, std::optional<int64_t>& into) {
  const JsonField field = (*this)[name];
  return Store(*this, field, field.Int(), into);
}

Status Arguments::Read(std::string_view name, std::vector<int64_t>& into) {
  const JsonField field = (*this)[name];
  return Store(*this, field, Integers(field, 0), into);
}

Status Arguments::ReadShape(std::string_view name, std::optional<Shape>& into) {
  const JsonField field = (*this)[name];
  return Store(*this, field, ExampleShape(field, 0), into);
}

Status Arguments::ReadBatchShape(std::string_view name, std::optional<Shape>& into) {
  const JsonField field = (*this)[name];
  if (!field.present()) return OkStatus();
  const bool list = field.value()->is_array() && !field.value()->empty();
  if (!list || !field.value()->front().is_null()) {
    return Named(field.Mismatch("a list whose first element, the batch, is null"));
  }
  return Store(*this, field, ExampleShape(field, 1), into);
}

Status Arguments::Only(std::string_view name, std::string_view supported) {
  const JsonField field = (*this)[name];
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(const Json value, ParseJson(supported, name));
  if (*field.value() == value) return OkStatus();
  const std::string got =
      field.value()->is_structured() ? PrintJson(*field.value()) : DescribeJson(*field.value());
  return InvalidArgument(subject_, ": ", field.path(), ": ", got.substr(0, 120),
                         " is not supported; only ", supported, " is");
}

Status Arguments::OnlyNull(std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) RETURN_IF_ERROR(Only(name, "null"));
  return OkStatus();
}

Status Arguments::Finish() const {
  StatusOr<std::vector<std::pair<std::string, JsonField>>> members = arguments_.Members();
  if (!members.ok()) return Named(members.status());
  for (const auto& [name, field] : *members) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    return InvalidArgument(subject_, ": ", field.path(), ": unknown argument",
                           DidYouMean(name, known_));
  }
  return OkStatus();
}

}  // namespace tfjob::model
