// Encodes tf.train.Example and tf.train.SequenceExample, for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tfjob::data::testing {

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}

// Returns a length-delimited field: a string, a message or a packed list.
inline std::string WireField(int number, std::string_view value) {
  return Varint(static_cast<uint64_t>(number << 3 | 2)) + Varint(value.size()) + std::string(value);
}

inline std::string BytesFeature(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += WireField(1, value);
  return WireField(1, list);
}

inline std::string FloatFeature(const std::vector<float>& values) {
  std::string packed(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(packed.data(), values.data(), packed.size());
  return WireField(2, WireField(1, packed));
}

inline std::string Int64Feature(const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values) packed += Varint(static_cast<uint64_t>(value));
  return WireField(3, WireField(1, packed));
}

inline std::string ExampleOf(const std::vector<std::pair<std::string, std::string>>& features) {
  std::string map;
  for (const auto& [name, feature] : features)
    map += WireField(1, WireField(1, name) + WireField(2, feature));
  return WireField(1, map);
}

// Returns a SequenceExample with these context features, and with lists of one feature per step.
inline std::string SequenceExampleOf(
    const std::vector<std::pair<std::string, std::string>>& context,
    const std::vector<std::pair<std::string, std::vector<std::string>>>& lists) {
  std::string map;
  for (const auto& [name, steps] : lists) {
    std::string list;
    for (const std::string& step : steps) list += WireField(1, step);
    map += WireField(1, WireField(1, name) + WireField(2, list));
  }
  return ExampleOf(context) + WireField(2, map);
}

}  // namespace tfjob::data::testing
