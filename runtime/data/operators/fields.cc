#include "runtime/data/operators/fields.h"

#include "absl/strings/str_replace.h"
#include "runtime/base/fnv1a.h"

namespace tfjob::data {
namespace {

std::string NamesOf(const Source& source) {
  std::string names;
  for (const Field& field : source.fields()) names += (names.empty() ? "" : ", ") + field.name;
  return names;
}

}  // namespace

Status CheckSameFields(const Source& first, const Source& other) {
  for (const Field& field : first.fields()) {
    const Field* same = other.Find(field.name);
    if (same == nullptr) {
      return InvalidArgument(other.fields()[0].file, ": expected the same values in an example as ",
                             "in ", field.file, " (", NamesOf(first), "), got ", NamesOf(other));
    }
    if (same->shape == field.shape) continue;
    return InvalidArgument(same->file, ": expected ", field.name, " of the shape ",
                           field.shape.ToString(), ", as in ", field.file, ", got ",
                           same->shape.ToString());
  }
  if (first.fields().size() == other.fields().size()) return OkStatus();
  return InvalidArgument(other.fields()[0].file, ": expected the same values in an example as in ",
                         first.fields()[0].file, " (", NamesOf(first), "), got ", NamesOf(other));
}

Column ColumnOf(const Field& field) {
  return {.name = field.name, .array = field.name, .dtype = field.dtype, .shape = field.shape};
}

std::vector<Column> ColumnsOfFields(const Source& source) {
  std::vector<Column> columns;
  for (const Field& field : source.fields()) columns.push_back(ColumnOf(field));
  return columns;
}

std::optional<uint64_t> ValuesHashOf(std::span<const SourcePtr> sources, uint64_t hash) {
  Fnv1a all;
  all.AddWord(hash);
  for (const SourcePtr& source : sources) {
    const std::optional<uint64_t> values = source->values_hash();
    if (!values) return std::nullopt;
    all.AddWord(*values).AddWord(static_cast<uint64_t>(source->size()));
  }
  return all.hash();
}

std::string LeftOutOf(std::span<const SourcePtr> sources) {
  std::string all;
  for (const SourcePtr& source : sources) {
    const std::string left_out = source->LeftOut();
    if (!left_out.empty()) all += (all.empty() ? "" : "; ") + left_out;
  }
  return all;
}

std::string Indented(std::string text) {
  return absl::StrReplaceAll(text, {{"\n", "\n  "}});
}

std::string DescribeAll(const std::string& text, std::span<const SourcePtr> sources) {
  std::string all = text;
  for (const SourcePtr& source : sources)
    all += StrCat("\n  ", source->size(), " examples: ", Indented(source->Describe()));
  return all;
}

}  // namespace tfjob::data
