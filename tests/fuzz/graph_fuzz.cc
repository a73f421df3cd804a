// Checks the reader of graphs (GraphDef) with arbitrary bytes. Reading never crashes, and a graph
// that is read, written and read again stays the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/graph/graph_def/graph_def.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tfjob;
  const auto read =
      graph::ReadGraphDef(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!read.ok()) return 0;
  const auto bytes = graph::WriteGraphDef(*read);
  ENFORCE(bytes.ok(), "what was read can be written");
  const auto again = graph::ReadGraphDef(*bytes);
  ENFORCE(again.ok(), "what is written is readable");
  ENFORCE(again->ToString() == read->ToString(), "what is written reads back equal");
  ENFORCE(*graph::WriteGraphDef(*again) == *bytes, "equal graphs are written as the same bytes");
  return 0;
}
