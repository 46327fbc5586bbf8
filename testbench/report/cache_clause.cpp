// SPDX-License-Identifier: Apache-2.0
#include "report/cache_clause.h"

#include "report/format.h"

namespace rnic::testbench {

std::string worst_cache(const Result& result, const std::string& host, const std::string& part) {
  const std::string prefix = host + ".";
  const CacheResult* worst = nullptr;
  double worst_rate = 1;
  for (const CacheResult& cache : result.caches) {
    if (cache.lookups() == 0 || cache.name.rfind(prefix, 0) != 0) continue;
    if (cache.name.find(part) == std::string::npos) continue;
    const double rate = cache.hit_rate();
    if (worst != nullptr && rate >= worst_rate) continue;
    worst = &cache;
    worst_rate = rate;
  }
  if (worst == nullptr) return {};
  const double joined = static_cast<double>(worst->joined) / static_cast<double>(worst->lookups());
  constexpr double kWorthTelling = 0.001;
  const std::string waited =
      joined < kWorthTelling
          ? ""
          : ", " + percent(joined) + " of all only when the line that was under way had come,";
  return " (" + percent(worst_rate) + " of look-ups hit" + waited + " in " + worst->name + ")";
}

}  // namespace rnic::testbench
