// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/parameters.h"

/// Private to the parameter tables: how they are written. `RNIC_FIELD(nic.tx_slots)` binds a
/// Config field; a function rather than a member pointer, because fields are nested.
#define RNIC_FIELD(path) ([](Config & c) -> auto& { return c.path; })
/// As RNIC_FIELD for an enumeration, which the table sets by value.
#define RNIC_CHOICE(path) \
  [](Config& c, int value) { c.path = static_cast<std::decay_t<decltype(c.path)>>(value); }

namespace rnic::config {

/// The kinds of frames that faults can be meant for.
std::vector<Choice> frame_kind_choices();

/// Collects parameters; each call starts one and returns it for the chained setters. The reference
/// is valid until the next call.
class ParameterTable {
 public:
  Parameter& count(std::string key, Field field, std::string text) {
    return add(std::move(key), Kind::kCount, field, std::move(text), "");
  }
  Parameter& real(std::string key, Field field, std::string text) {
    return add(std::move(key), Kind::kReal, field, std::move(text), "");
  }
  Parameter& bytes(std::string key, Field field, std::string text) {
    return add(std::move(key), Kind::kBytes, field, std::move(text), "B");
  }
  Parameter& time(std::string key, Field field, std::string text) {
    return add(std::move(key), Kind::kTime, field, std::move(text), "ns");
  }
  Parameter& rate(std::string key, Field field, std::string text) {
    return add(std::move(key), Kind::kRate, field, std::move(text), "Gbps");
  }
  Parameter& frequency(std::string key, Field field, std::string text) {
    return add(std::move(key), Kind::kFrequency, field, std::move(text), "GHz");
  }
  Parameter& flag(std::string key, Field field, std::string text) {
    return add(std::move(key), Kind::kBool, field, std::move(text), "");
  }
  Parameter& text(std::string key, Field field, std::string value) {
    return add(std::move(key), Kind::kText, field, std::move(value), "");
  }
  /// Words separated by commas when `choices` is given, else numbers.
  Parameter& list(std::string key, Field field, std::string value,
                  std::vector<Choice> choices = {}) {
    Parameter& added = add(std::move(key), Kind::kList, field, std::move(value), "");
    added.choices = std::move(choices);
    return added;
  }
  /// Frames of a cable: NUMBER or KIND:NUMBER, separated by commas.
  Parameter& frames(std::string key, Field field, std::string value) {
    return add(std::move(key), Kind::kFrames, field, std::move(value), "");
  }
  template <typename Enum>
  Parameter& choice(std::string key, Field field, std::string text,
                    const std::vector<std::pair<const char*, Enum>>& names) {
    Parameter& added = add(std::move(key), Kind::kChoice, field, std::move(text), "");
    for (const auto& [name, value] : names)
      added.choices.push_back({name, static_cast<int>(value)});
    return added;
  }
  /// A choice among words whose field is the word itself.
  Parameter& word(std::string key, Field field, std::string text,
                  const std::vector<std::string>& names) {
    Parameter& added = add(std::move(key), Kind::kChoice, field, std::move(text), "");
    for (const std::string& name : names) added.choices.push_back({name, 0});
    return added;
  }

  std::vector<Parameter> take() { return std::move(parameters_); }

 private:
  Parameter& add(std::string key, Kind kind, Field field, std::string text, std::string unit) {
    Parameter& added = parameters_.emplace_back();
    added.key = std::move(key);
    added.kind = kind;
    added.field = field;
    added.default_text = std::move(text);
    added.unit = std::move(unit);
    return added;
  }

  std::vector<Parameter> parameters_;
};

void add_run_parameters(ParameterTable& table);        ///< sim, output, workload
void add_network_parameters(ParameterTable& table);    ///< fabric, link, switch
void add_transport_parameters(ParameterTable& table);  ///< transport, tcp
void add_host_parameters(ParameterTable& table);       ///< memory, iommu, cpu
void add_pcie_parameters(ParameterTable& table);       ///< pcie
void add_nic_parameters(ParameterTable& table);        ///< nic
void add_cache_parameters(ParameterTable& table);      ///< the caches among them

}  // namespace rnic::config
