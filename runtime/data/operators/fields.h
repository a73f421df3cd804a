// Compares the fields of sources, and combines their descriptions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/source.h"

namespace tfjob::data {

using SourcePtr = std::shared_ptr<const Source>;

// Returns InvalidArgument, with a message that names the file and the field, unless both sources
// have the same fields with the same shapes, in any order. Types may differ, because the columns
// determine the types of batches.
Status CheckSameFields(const Source& first, const Source& other);

// Returns a column with the type and shape of the field.
Column ColumnOf(const Field& field);
std::vector<Column> ColumnsOfFields(const Source& source);

// Combines the results of Source::values_hash with `hash`, which must cover the settings of the
// operator. Returns nullopt if one of the sources has no hash.
std::optional<uint64_t> ValuesHashOf(std::span<const SourcePtr> sources, uint64_t hash);
// Combines the results of Source::LeftOut.
std::string LeftOutOf(std::span<const SourcePtr> sources);
// Indents all lines of a description except the first one.
std::string Indented(std::string text);
// Returns the text, followed by the indented size and description of each source.
std::string DescribeAll(const std::string& text, std::span<const SourcePtr> sources);

}  // namespace tfjob::data
