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
// have the same fields, in any order, with the same shapes. Types may differ, because batches have
// the types of their columns.
Status CheckSameFields(const Source& first, const Source& other);

// Returns a column of the field's own type and shape.
Column ColumnOf(const Field& field);
std::vector<Column> ColumnsOfFields(const Source& source);

// Combines the results of Source::values_hash with `hash`, which covers what an operator does with
// the sources. Returns nullopt if one of them has none.
std::optional<uint64_t> ValuesHashOf(std::span<const SourcePtr> sources, uint64_t hash);
// Combines the results of Source::LeftOut.
std::string LeftOutOf(std::span<const SourcePtr> sources);
// Indents the lines of a description after the first one.
std::string Indented(std::string text);
// Returns the text and, indented below it, the size and the description of each source.
std::string DescribeAll(const std::string& text, std::span<const SourcePtr> sources);

}  // namespace tfjob::data
