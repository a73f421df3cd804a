#include "runtime/inference/arrays.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/npy.h"
#include "runtime/io/npz.h"

namespace tfjob::inference {
namespace {

constexpr char kFormats[] = "a name that ends in .npy, .npz, .safetensors or .csv";

std::string_view TakeLine(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  if (text.starts_with("+") && !text.starts_with("+-")) text.remove_prefix(1);
  return text;
}

// Appends the numbers in a line to `values`. Returns false if a field is not a number.
bool AddNumbers(std::string_view line, std::vector<float>& values) {
  while (true) {
    const size_t comma = std::min(line.find(','), line.size());
    const std::string_view field = Trim(line.substr(0, comma));
    float value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size()) return false;
    values.push_back(value);
    if (comma == line.size()) return true;
    line.remove_prefix(comma + 1);
  }
}

StatusOr<Tensor> ReadCsv(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<float> values;
  size_t columns = 0;
  int64_t rows = 0, number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = TakeLine(rest);
    ++number;
    if (Trim(line).empty()) continue;
    const size_t before = values.size();
    if (!AddNumbers(line, values)) {
      if (number > 1) return InvalidArgument(path, ": line ", number, ": expected only numbers");
      values.resize(before);  // the line is a header
      continue;
    }
    const size_t count = values.size() - before;
    if (rows == 0) columns = count;
    if (count != columns) {
      return InvalidArgument(path, ": line ", number, ": expected ", columns, " numbers, got ",
                             count);
    }
    ++rows;
  }
  if (rows == 0) return InvalidArgument(path, ": there is no row of numbers");
  Tensor table(DType::kFloat32, Shape({rows, static_cast<int64_t>(columns)}));
  std::ranges::copy(values, table.data<float>().begin());
  return table;
}

template <typename T>
void AppendNumbers(std::span<const T> row, std::string& text) {
  for (size_t i = 0; i < row.size(); ++i) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), row[i]).ptr;
    text += i == 0 ? "" : ",";
    text.append(digits, end);
  }
  text += '\n';
}

template <typename T>
std::string CsvOf(const Tensor& array) {
  const auto values = array.data<T>();
  const size_t rows = array.shape().rank() == 0 ? 1 : static_cast<size_t>(array.shape().dim(0));
  std::string text;
  for (size_t i = 0; i < rows; ++i)
    AppendNumbers(values.subspan(i * (values.size() / rows), values.size() / rows), text);
  return text;
}

StatusOr<std::string> CsvText(const Tensor& array) {
  switch (array.dtype()) {
    case DType::kFloat32:
      return CsvOf<float>(array);
    case DType::kFloat64:
      return CsvOf<double>(array);
    case DType::kInt32:
      return CsvOf<int32_t>(array);
    case DType::kInt64:
      return CsvOf<int64_t>(array);
    case DType::kUInt8:
      return CsvOf<uint8_t>(array);
    case DType::kBool:
    case DType::kBFloat16:  // ReadArrays returns no half types, and predictions have none
    case DType::kFloat16:
      break;
  }
  return Unimplemented("a .csv file cannot hold ", Name(array.dtype()), "; use .npy");
}

}  // namespace

StatusOr<io::NamedTensors> ReadArrays(const std::string& path) {
  io::NamedTensors arrays;
  if (path.ends_with(".npy")) {
    ASSIGN_OR_RETURN(Tensor array, io::ReadNpy(path));
    arrays.emplace_back("", std::move(array));
  } else if (path.ends_with(".csv")) {
    ASSIGN_OR_RETURN(Tensor array, ReadCsv(path));
    arrays.emplace_back("", std::move(array));
  } else if (path.ends_with(".npz")) {
    ASSIGN_OR_RETURN(const io::NpzReader reader, io::NpzReader::Open(path));
    for (const std::string& name : reader.names()) {
      ASSIGN_OR_RETURN(Tensor array, reader.Read(name));
      arrays.emplace_back(name, std::move(array));
    }
  } else if (path.ends_with(".safetensors")) {
    ASSIGN_OR_RETURN(const auto reader, io::SafetensorsReader::Open(path));
    for (const auto& [name, entry] : reader->entries()) {
      ASSIGN_OR_RETURN(Tensor array, reader->Read(name));
      arrays.emplace_back(name, std::move(array));
    }
  } else {
    return InvalidArgument(path, ": expected ", kFormats);
  }
  return arrays;
}

Status CheckArraysPath(const std::string& path, size_t arrays) {
  const bool one = path.ends_with(".npy") || path.ends_with(".csv");
  if (!one && !path.ends_with(".npz") && !path.ends_with(".safetensors"))
    return InvalidArgument(path, ": expected ", kFormats);
  if (!one || arrays == 1) return OkStatus();
  return InvalidArgument(path, ": there are ", arrays,
                         " arrays, but a file of this format holds one; use .npz or .safetensors");
}

Status WriteArrays(const std::string& path, const io::NamedTensors& arrays, FileSystem& files) {
  RETURN_IF_ERROR(CheckArraysPath(path, arrays.size()));
  if (path.ends_with(".npy")) return io::WriteNpy(path, arrays[0].second, files);
  if (path.ends_with(".npz")) return io::WriteNpz(path, arrays, files);
  if (path.ends_with(".safetensors")) return io::WriteSafetensors(path, arrays, {}, files);
  StatusOr<std::string> text = CsvText(arrays[0].second);
  if (!text.ok()) return Annotate(text.status(), path);
  return WriteFileAtomically(path, *text, files);
}

}  // namespace tfjob::inference
