// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rnic::testbench {

/// A file (or, with make_directory(), a directory) of this process that goes with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name, const std::string& text = "")
      : path_((std::filesystem::temp_directory_path() /
               ("rnicsim_test_" + std::to_string(getpid()) + "_" + name))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace rnic::testbench
