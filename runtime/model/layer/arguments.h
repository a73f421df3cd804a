// Reads a class name with its arguments, the form in which Keras and the training file write layers
// and initializers.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model {

// Stands for a length that a model does not state (model/any_length.h).
inline constexpr int64_t kAnyLength = -1;

// A class and its arguments, written in one of these forms:
//   Dense
//   {Dense: {units: 10}}
//   {Dense: null}
//   {class_name: Dense, config: {units: 10}, …}
struct ClassForm {
  std::string class_name;
  JsonField arguments;  // may be absent
  JsonField stated;     // Keras 3's build_config.input_shape; may be absent
};
// Reads any of these forms. `what` names the kind of class in error messages, such as "a layer".
StatusOr<ClassForm> ReadClassForm(const JsonField& field, std::string_view what);

// Reads the arguments of one class. Finish rejects arguments that have not been read. Error
// messages name the subject ("layer dense_1 (Dense)"), the path of the argument, what is supported
// and what was found.
class Arguments {
 public:
  Arguments(std::string subject, const JsonField& arguments)
      : subject_(std::move(subject)), arguments_(arguments) {}

  const std::string& subject() const { return subject_; }
  JsonField operator[](std::string_view name);
  // Returns whether the argument is given as null, rather than absent.
  bool IsNull(std::string_view name) const;

  // Store the argument's value in `into`. Leave `into` unchanged if the argument is absent or null.
  Status Read(std::string_view name, int64_t& into);
  Status Read(std::string_view name, double& into);
  Status Read(std::string_view name, bool& into);
  Status Read(std::string_view name, std::optional<int64_t>& into);
  Status Read(std::string_view name, std::vector<int64_t>& into);
  // Reads a list whose first element, the batch size, is null. Stores the other elements as the
  // shape, which may contain kAnyLength.
  Status ReadBatchShape(std::string_view name, std::optional<Shape>& into);
  Status ReadShape(std::string_view name, std::optional<Shape>& into);

  // Returns an error unless the argument is absent, null, or equal to the only supported value.
  // `supported` is that value as JSON.
  Status Only(std::string_view name, std::string_view supported);
  // Returns an error if any of these arguments is present and not null.
  Status OnlyNull(std::initializer_list<std::string_view> names);
  // Accepts any value of an argument that has no effect here.
  void Ignore(std::string_view name) { (*this)[name]; }

  // Returns InvalidArgument if the file gives an argument that none of the calls above has read.
  Status Finish() const;
  // Prepends the subject to the error message.
  Status Named(const Status& error) const { return Annotate(error, subject_); }

 private:
  std::string subject_;
  JsonField arguments_;
  std::vector<std::string> known_;
};

}  // namespace tfjob::model
