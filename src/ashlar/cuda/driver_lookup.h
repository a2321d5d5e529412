// DriverLookup: finds the CUDA driver's functions by name and version.
//
// Purpose: nothing is linked, so a program that uses the library starts where there is no driver.
// Thread safety: none. The library stays loaded, because the driver has threads of its own.
//
// Source: "CUDA Driver API", version 13.0, cuGetProcAddress, as CUDA 12.0 has it.
#pragma once

#include <cstring>

#include <ashlar/base/status.h>
#include <ashlar/cuda/driver_abi.h>

namespace ashlar::inline v0::cuda {

class DriverLookup {
 public:
  /// Loads that library; null: the program itself. kNotFound if there is none; kUnsupported if the driver is older than
  /// CUDA 12.0.
  Status open(const char* library) noexcept;

  // REQUIRES, of the others: it is open.
  /// The function `name` as the interface of `version` (11030 is CUDA 11.3) has it; null if there is none.
  void* find(const char* name, int version) noexcept;
  /// Stores it. False, and a null, if there is none.
  template <class Function>
  bool find(Function*& into, const char* name, int version) noexcept {
    into = reinterpret_cast<Function*>(find(name, version));
    return into != nullptr;
  }
  /// The same of a function without which nothing can be done. `lacks` is the error's text, and ends in the name.
  template <class Function>
  void need(Function*& into, int version, const char* lacks) noexcept {
    if (!find(into, std::strrchr(lacks, ' ') + 1, version) && status_.is_ok())
      status_ = {Code::kUnsupported, lacks};
  }
  /// kUnsupported, with the first of the needed functions that was not found.
  Status status() const noexcept { return status_; }

 private:
  using GetAddress = CallResult (*)(const char* name, void** found, int version,
                                    std::uint64_t flags, int* status);

  GetAddress get_address_ = nullptr;
  Status status_;
};

}  // namespace ashlar::inline v0::cuda
