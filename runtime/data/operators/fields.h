// Compares and combines what sources say about their examples.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/source.h"

namespace tfjob::data {

using SourcePtr = std::shared_ptr<const Source>;

// Returns InvalidArgument, with a message that names the file and the field, unless the examples of
// both sources have the same fields, in any order, and a field the same shape. Types may differ:
// every batch has the types of its columns.
Status CheckSameFields(const Source& first, const Source& other);

// Returns a column of the field's own type and shape.
Column ColumnOf(const Field& field);
std::vector<Column> ColumnsOfFields(const Source& source);

// Returns what all sources leave out.
std::string LeftOutOf(std::span<const SourcePtr> sources);
// Indents the lines of a description after the first one.
std::string Indented(std::string text);
// Returns the text and, below it, what each source describes and its number of examples.
std::string DescribeAll(const std::string& text, std::span<const SourcePtr> sources);

}  // namespace tfjob::data
