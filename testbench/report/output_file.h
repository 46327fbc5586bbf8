// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace rnic::testbench {

/// A file that is written piece by piece under a temporary name beside its own, and takes its name
/// in one step when it is complete. Without keep() nothing is left behind. All calls throw
/// OutputError.
class OutputFile {
 public:
  /// Creates the directory and the file.
  explicit OutputFile(const std::filesystem::path& target);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::string_view content);
  /// The bytes reach the disk, and the file its name.
  void keep();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool kept_ = false;
};

/// Writes a whole file or nothing: the bytes go to a temporary file beside it, reach the disk, and
/// take the name in one step. Creates the directory. Throws OutputError, with no file left behind.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Writes to standard output and flushes it. Throws OutputError.
void write_stdout(std::string_view content);

}  // namespace rnic::testbench
