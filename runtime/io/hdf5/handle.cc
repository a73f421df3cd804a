#include "runtime/io/hdf5/handle.h"

namespace tfjob::io {
namespace {

herr_t KeepFirst(unsigned, const H5E_error2_t* error, void* into) {
  auto* text = static_cast<std::string*>(into);
  if (text->empty() && error->desc != nullptr) *text = error->desc;
  return 0;
}

}  // namespace

Status Hdf5Error(const std::string& what) {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, KeepFirst, &text);
  return DataLoss(what, text.empty() ? "" : ": ", text);
}

}  // namespace tfjob::io
