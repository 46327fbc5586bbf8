// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace rnic::testbench {

/// Writes a whole file or nothing: the bytes go to a temporary file beside it, reach the disk, and
/// take the name in one step. Creates the directory. Throws OutputError, with no file left behind.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Writes to standard output and flushes it. Throws OutputError.
void write_stdout(std::string_view content);

}  // namespace rnic::testbench
