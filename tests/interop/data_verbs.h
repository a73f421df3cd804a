// Declares the verbs of interop_tool that read data (images, records, datasets, texts
// and terms), and the one that writes records.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob {

StatusOr<Json> ReadImages(const Json& request);
StatusOr<Json> ReadRecords(const Json& request);
StatusOr<Json> WriteRecords(const Json& request);
StatusOr<Json> ReadDataset(const Json& request);
StatusOr<Json> Tokenize(const Json& request);
StatusOr<Json> LookUp(const Json& request);

}  // namespace tfjob
