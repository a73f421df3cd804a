// Reads a class name with arguments. Keras and the training file use this form for layers and
// initializers.
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

// Represents a length that a model does not state (model/any_length.h).
inline constexpr int64_t kAnyLength = -1;

// Contains a class name and its arguments, which may be written in any of these forms:
//   Dense
//   {Dense: {units: 10}}
//   {Dense: null}
//   {class_name: Dense, config: {units: 10}, …}
struct ClassForm {
  std::string class_name;
  JsonField arguments;  // may be absent
  JsonField stated;     // Keras 3's build_config.input_shape; may be absent
};
// Reads any of the forms of ClassForm. `what` is the kind of class for error messages, such as "a
// layer".
StatusOr<ClassForm> ReadClassForm(const JsonField& field, std::string_view what);

// Reads the arguments of one class. Finish rejects arguments that have not been read. Error
// messages contain the subject ("layer dense_1 (Dense)"), the path of the argument, the supported
// values and the value found.
class Arguments {
 public:
  Arguments(std::string subject, const JsonField& arguments)
      : subject_(std::move(subject)), arguments_(arguments) {}

  const std::string& subject() const { return subject_; }
  JsonField operator[](std::string_view name);
  // Returns whether the argument is present and null.
  bool IsNull(std::string_view name) const;

  // Read the argument into `into`, which stays unchanged if the argument is absent or null.
  Status Read(std::string_view name, int64_t& into);
  Status Read(std::string_view name, double& into);
  Status Read(std::string_view name, bool& into);
  Status Read(std::string_view name, std::optional<int64_t>& into);
  Status Read(std::string_view name, std::vector<int64_t>& into);
  // Reads a list whose first element, the batch size, is null. The remaining elements are the
  // shape, which may contain kAnyLength.
  Status ReadBatchShape(std::string_view name, std::optional<Shape>& into);
  Status ReadShape(std::string_view name, std::optional<Shape>& into);

  // Returns an error unless the argument is absent, null, or equal to the only supported value,
  // which `supported` contains as JSON.
  Status Only(std::string_view name, std::string_view supported);
  // Returns an error if any of these arguments is present and not null.
  Status OnlyNull(std::initializer_list<std::string_view> names);
  // Marks an argument that has no effect here as read, whatever its value.
  void Ignore(std::string_view name) { (*this)[name]; }

  // Returns InvalidArgument if the file contains an argument that none of the above functions has
  // read.
  Status Finish() const;
  // Prepends the subject to the error message.
  Status Named(const Status& error) const { return Annotate(error, subject_); }

 private:
  std::string subject_;
  JsonField arguments_;
  std::vector<std::string> known_;
};

}  // namespace tfjob::model
