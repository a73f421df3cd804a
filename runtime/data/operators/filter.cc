#include "runtime/data/operators/filter.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/data/operators/select.h"
#include "runtime/data/row_pool.h"

namespace tfjob::data {
namespace {

constexpr int64_t kExamplesPerRead = 256;

// Applies the function to the examples [begin, begin + kept.size()), and stores the results in
// `kept`.
Status Ask(const Source& source, const FilterFunction& function, RowReader& reader, RowPool& pool,
           int64_t begin, std::vector<char>& kept) {
  std::vector<int64_t> rows(kept.size());
  std::iota(rows.begin(), rows.end(), begin);
  std::vector<NamedTensor> read;
  for (const Field& field : source.fields())
    read.push_back({field.name, TensorFor(field, static_cast<int64_t>(rows.size()))});
  RETURN_IF_ERROR(reader.Read(rows, read));
  return pool.ForEach(rows.size(), [&](size_t, size_t i) {
    const StatusOr<bool> keep = function(RowOf(read, i));
    if (!keep.ok()) {
      return Annotate(keep.status(),
                      StrCat(source.fields()[0].file, ": filter of example ", rows[i]));
    }
    kept[i] = *keep ? 1 : 0;
    return OkStatus();
  });
}

}  // namespace

StatusOr<SourcePtr> Filter(SourcePtr source, const FilterFunction& function, int threads) {
  if (source->size() / 8 > AvailableMemory()) {
    return InvalidArgument(source->fields()[0].file, ": filter: expected fewer than ",
                           source->size(), " examples, since a bit for each does not fit into the ",
                           AvailableMemory(), " bytes of memory; filter before you repeat");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<RowReader> reader, source->Open(ColumnsOfFields(*source)));
  RowPool pool(threads);
  KeptRows rows(source->size());
  std::vector<char> kept;
  for (int64_t begin = 0; begin < source->size(); begin += kExamplesPerRead) {
    kept.assign(static_cast<size_t>(std::min(kExamplesPerRead, source->size() - begin)), 0);
    RETURN_IF_ERROR(Ask(*source, function, *reader, pool, begin, kept));
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] != 0) rows.Keep(begin + static_cast<int64_t>(i));
    }
  }
  rows.Index();
  return Keep(std::move(source), std::move(rows));
}

}  // namespace tfjob::data
