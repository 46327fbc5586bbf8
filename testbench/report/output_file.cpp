// SPDX-License-Identifier: Apache-2.0
#include "report/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "base/error.h"

namespace rnic::testbench {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw OutputError("cannot write " + what + ": " + std::generic_category().message(error));
}

}  // namespace

OutputFile::OutputFile(const std::filesystem::path& target)
    : target_(target),
      path_(target.parent_path() /
            ("." + target.filename().string() + "." + std::to_string(::getpid()))) {
  if (target.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(target.parent_path(), error);
    if (error) fail(target.string(), error.value());
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(target_.string(), errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!kept_) ::unlink(path_.c_str());
}

void OutputFile::write(std::string_view content) {
  while (!content.empty()) {
    const ::ssize_t written = ::write(descriptor_, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(target_.string(), errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::keep() {
  // Some file systems cannot sync and say EINVAL; what they store is as safe as it gets.
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail(target_.string(), errno);
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail(target_.string(), errno);
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail(target_.string(), errno);
  kept_ = true;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  file.keep();
}

void write_stdout(std::string_view content) {
  errno = 0;
  const bool written = std::fwrite(content.data(), 1, content.size(), stdout) == content.size();
  if (!written || std::fflush(stdout) != 0) fail("standard output", errno);
}

}  // namespace rnic::testbench
