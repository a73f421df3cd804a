// Defines an owner of an HDF5 identifier, and converts the library's errors. Private to this
// package.
#pragma once

#include <hdf5/serial/hdf5.h>

#include <string>
#include <utility>

#include "runtime/base/status.h"

namespace tfjob::io {

class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle() {
    if (ok()) close_(id_);
  }
  bool ok() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// Returns DataLoss with a message that consists of `what` and the library's description of its last
// error.
Status Hdf5Error(const std::string& what);

}  // namespace tfjob::io
