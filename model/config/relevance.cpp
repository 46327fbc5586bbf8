// SPDX-License-Identifier: Apache-2.0
#include "config/relevance.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace rnic::config {
namespace {

/// When keys matter.
struct Condition {
  bool (*met)(const Config&);
  const char* needs;
};

bool is_dma_run(const Config& c) { return is_dma(c.workload.op); }
bool is_iwarp(const Config& c) { return c.transport.protocol == Protocol::kIwarp; }
bool is_ib(const Config& c) { return c.transport.protocol == Protocol::kIb; }
bool has_ip(const Config& c) { return c.transport.protocol == Protocol::kRoceV2 || is_iwarp(c); }
bool pauses(const Config& c) {
  return c.link.flow_control == FlowControl::kPfc || c.link.flow_control == FlowControl::kPause;
}
bool runs_program(const Config& c) { return c.workload.program != Program::kNone; }

const Condition kVerbs{[](const Config& c) { return !is_dma_run(c); },
                       "an operation of verbs (not workload.op=dma_*)"};
const Condition kSpotted{[](const Config& c) {
                           return c.workload.mistake != Mistake::kLkeyAsRkey ||
                                  c.nic.key_policy == KeyPolicy::kDistinct;
                         },
                         "nic.key_policy=distinct: where both keys of a region are one value, a "
                         "local key passes for a remote one; elsewhere it is a "
                         "remote_access_error"};
const Condition kMessages{[](const Config& c) { return !runs_program(c); },
                          "workload.program=none"};
const Condition kIwarpOnly{is_iwarp, "transport.protocol=iwarp"};
const Condition kIbOnly{is_ib, "transport.protocol=ib"};
const Condition kEthernet{[](const Config& c) { return !is_ib(c); },
                          "RoCE or iWARP (transport.protocol)"};
const Condition kIp{has_ip, "RoCEv2 or iWARP (transport.protocol)"};
const Condition kReliable{
    [](const Config& c) { return c.transport.type == TransportType::kRc && !is_iwarp(c); },
    "transport.type=rc of InfiniBand or RoCE"};
const Condition kSwitch{[](const Config& c) { return c.fabric.topology != "back_to_back"; },
                        "fabric.topology=single_switch"};
const Condition kPauses{pauses, "link.flow_control=pfc|pause"};
const Condition kDcqcn{
    [](const Config& c) { return c.transport.congestion_control == RoceCongestion::kDcqcn; },
    "transport.congestion_control=dcqcn"};
const Condition kTranslating{
    [](const Config& c) { return c.iommu.enabled && !c.iommu.passthrough; },
    "iommu.enabled=true without iommu.passthrough"};
const Condition kIommu{[](const Config& c) { return c.iommu.enabled; }, "iommu.enabled=true"};
const Condition kAts{[](const Config& c) { return c.pcie.atc.enabled; }, "pcie.ats=true"};
const Condition kPeer{[](const Config& c) {
                        return c.workload.local_memory == BufferMemory::kPeer ||
                               c.workload.remote_memory == BufferMemory::kPeer;
                      },
                      "workload.local_memory=peer or workload.remote_memory=peer"};
const Condition kNuma{[](const Config& c) { return c.memory.numa_remote; },
                      "memory.numa_remote=true"};
const Condition kDown{[](const Config& c) { return c.link.down_time > kTimeZero; },
                      "link.down_time"};
const Condition kSilent{[](const Config& c) { return c.fabric.silent_host != kNoHost; },
                        "fabric.silent_host"};
const Condition kMistake{[](const Config& c) { return c.workload.mistake != Mistake::kNone; },
                         "workload.mistake"};
const Condition kFunctions{[](const Config& c) { return c.nic.functions > 1; }, "nic.functions=2"};
const Condition kOneByOne{[](const Config& c) { return c.workload.pattern == Pattern::kLatency; },
                          "workload.pattern=latency"};
const Condition kPaged{[](const Config& c) { return c.workload.odp != OnDemand::kNone; },
                       "workload.odp=explicit|implicit"};
const Condition kRegisters{[](const Config& c) { return c.workload.reg_rate > 0; },
                           "workload.reg_rate"};
const Condition kVlan{[](const Config& c) { return c.transport.vlan; }, "transport.vlan=true"};
const Condition kRanked{[](const Config& c) { return c.nic.sq_scheduler != SqPolicy::kRoundRobin; },
                        "nic.sq_scheduler=weighted|strict"};
const Condition kStream{[](const Config& c) { return c.workload.pattern == Pattern::kBandwidth; },
                        "workload.pattern=bandwidth"};
const Condition kReordering{
    [](const Config& c) { return c.link.reorder_rate > 0 || !c.link.reorder_list.empty(); },
    "link.reorder_rate or link.reorder_list"};
const Condition kRates{[](const Config& c) {
                         const LinkConfig& link = c.link;
                         return link.loss_rate + link.corrupt_rate + link.duplicate_rate +
                                    link.reorder_rate + link.burst_rate >
                                0;
                       },
                       "a rate of faults (link.loss_rate, ...)"};
const Condition kFaults{[](const Config& c) {
                          const LinkConfig& link = c.link;
                          return kRates.met(c) || !link.drop_list.empty() ||
                                 !link.corrupt_list.empty() || !link.duplicate_list.empty() ||
                                 !link.reorder_list.empty();
                        },
                        "a fault (link.loss_rate, link.drop_list, ...)"};
const Condition kUnacknowledged{
    [](const Config& c) { return c.transport.type != TransportType::kRc; }, "transport.type=uc|ud"};
const Condition kProbe{[](const Config& c) { return c.workload.probe_size != kNoProbe; },
                       "workload.probe_size"};
const Condition kBursts{[](const Config& c) { return c.link.burst_rate > 0; }, "link.burst_rate"};

bool brings_recvs(const Config& c) { return takes_recv(c.workload.op) || runs_program(c); }

constexpr const char* kOpWithRecvs = "workload.op=send|send_imm|write_imm, which take RECVs";
const Condition kTakesRecvs{brings_recvs, kOpWithRecvs};
const Condition kSharesRecvs{[](const Config& c) { return brings_recvs(c) || !c.workload.srq; },
                             kOpWithRecvs};
const Condition kInlines{
    [](const Config& c) {
      return c.workload.inline_max == 0 || runs_program(c) || !returns_data(c.workload.op);
    },
    "workload.op=write|write_imm|send|send_imm: a READ or atomic sends no data"};
const Condition kFalls{
    [](const Config& c) { return kSilent.met(c) || c.fabric.silent_from == kTimeZero; },
    "fabric.silent_host: nobody falls silent"};
const Condition kFails{[](const Config& c) {
                         return c.fabric.fatal_host != kNoHost || c.fabric.fatal_at == kTimeZero;
                       },
                       "fabric.fatal_host: nobody's device fails"};
const Condition kSelective{
    [](const Config& c) { return c.transport.recovery == Recovery::kSelectiveRepeat; },
    "transport.recovery=selective_repeat"};
const Condition kSplitsReads{[](const Config& c) {
                               return kReliable.met(c) &&
                                      c.transport.recovery == Recovery::kGoBackN &&
                                      (runs_program(c) || c.workload.op == Op::kRead);
                             },
                             "READs of InfiniBand or RoCE with transport.recovery=go_back_n"};
const Condition kGathers{[](const Config& c) { return runs_program(c) || c.workload.sges > 1; },
                         "workload.sges of 2 or more: what is in one piece has no further ones"};
const Condition kPaths{[](const Config& c) { return c.link.paths > 1; }, "link.paths"};

const Condition kSwitched{[](const Config& c) { return c.pcie.switches > 0; }, "pcie.switches"};
const Condition kRetimed{[](const Config& c) { return c.pcie.retimers > 0; }, "pcie.retimers"};
const Condition kOrdered{[](const Config& c) { return c.pcie.ordering_time > kTimeZero; },
                         "pcie.ordering_time"};
const Condition kLinesLimited{[](const Config& c) { return c.cpu.wc_line_interval > kTimeZero; },
                              "cpu.wc_line_interval"};
const Condition kCacheTracked{[](const Config& c) { return c.memory.llc_size > 0; },
                              "memory.llc_size: without one all reads hit"};
/// Nothing comes to DRAM where reads are taken to hit and writes to stay in the cache.
const Condition kReachesDram{
    [](const Config& c) { return c.memory.llc_size > 0 || !c.memory.ddio; },
    "memory.llc_size or memory.ddio=false: nothing comes to DRAM"};
const Condition kDma{is_dma_run, "workload.op=dma_*"};

/// That nobody chooses a path for each packet is what all but RC's plain WRITEs are like.
const Condition kPathChosen{
    [](const Config& c) {
      return c.link.path_choice != PathChoice::kAdaptive ||
             (kReliable.met(c) && (runs_program(c) || c.workload.op == Op::kWrite));
    },
    "packets of RC WRITEs without immediate data, of InfiniBand or RoCE"};

/// `keys`: one key, or all that begin so when it ends with a dot or an underscore. A key may have
/// several conditions; the first that is not met is named.
struct Rule {
  std::string_view keys;
  const Condition& condition;
};

const Rule kRules[] = {
    {"transport.", kVerbs},
    {"tcp.", kVerbs},
    {"link.", kVerbs},
    {"switch.", kVerbs},
    {"fabric.", kVerbs},
    {"workload.qps", kVerbs},
    {"workload.threads", kVerbs},
    {"workload.bidirectional", kVerbs},
    {"workload.completion", kVerbs},
    {"workload.mrs", kVerbs},
    {"workload.mr_size", kVerbs},
    {"workload.signal_every", kVerbs},
    {"workload.post_batch", kVerbs},
    {"workload.srq", kVerbs},
    {"workload.registration", kVerbs},
    {"workload.reg_", kVerbs},
    {"workload.odp", kVerbs},
    {"workload.registration", kMessages},
    {"workload.reg_", kMessages},
    {"workload.odp", kMessages},
    {"workload.odp_prefetch", kPaged},
    {"workload.reg_size", kRegisters},
    {"workload.inline_max", kVerbs},
    {"workload.op", kMessages},
    {"workload.pattern", kMessages},
    {"workload.mrs", kMessages},
    {"workload.mr_size", kMessages},
    {"workload.access", kMessages},
    {"workload.local_memory", kMessages},
    {"workload.remote_memory", kMessages},
    {"workload.depth", kMessages},
    {"workload.signal_every", kMessages},
    {"workload.post_batch", kMessages},
    {"workload.bidirectional", kMessages},
    {"workload.traffic", kMessages},
    {"workload.depth", kStream},
    {"workload.outstanding", kStream},
    {"workload.post_batch", kStream},
    {"workload.signal_every", kStream},
    {"workload.gap", kOneByOne},
    {"workload.mistake_at", kMistake},
    {"workload.mistake", kSpotted},
    {"workload.threads", kMessages},
    {"workload.outstanding", kMessages},
    {"workload.qp_sharers", kMessages},
    {"workload.qp_order", kMessages},
    {"workload.batch_as_list", kMessages},
    {"workload.recv_", kMessages},
    {"workload.inline_max", kMessages},
    {"workload.solicited_every", kMessages},
    {"workload.start_gap", kMessages},
    {"workload.idle_qps", kMessages},
    {"workload.sges", kMessages},
    {"workload.alignment", kMessages},
    {"workload.offset", kMessages},
    {"workload.mr_per_qp", kMessages},
    {"workload.host_cache", kMessages},
    {"workload.window", kMessages},
    {"workload.long_gap", kOneByOne},
    {"tcp.", kIwarpOnly},
    {"link.vl_", kIbOnly},
    {"link.sl2vl", kIbOnly},
    {"link.data_vls", kIbOnly},
    {"link.credit_update", kIbOnly},
    {"link.pfc_", kPauses},
    {"switch.", kSwitch},
    {"switch.pfc_", kPauses},
    {"link.down_at", kDown},
    {"link.down_cable", kDown},
    {"transport.reorder_tolerance", kSelective},
    {"link.path_", kPaths},
    {"link.path_choice", kPathChosen},
    {"link.reorder_delay", kReordering},
    {"link.fault_frames", kRates},
    {"link.fault_", kFaults},
    {"workload.answer_timeout", kUnacknowledged},
    {"workload.answer_timeout", kOneByOne},
    {"workload.start_gap", kStream},
    {"workload.probe_interval", kProbe},
    {"workload.probe_service_level", kProbe},
    {"link.burst_length", kBursts},
    {"link.burst_loss", kBursts},
    {"transport.vlan", kEthernet},
    {"transport.vlan_id", kVlan},
    {"transport.dscp", kIp},
    {"transport.ecn", kIp},
    {"transport.ip_version", kIp},
    {"transport.grh", kIbOnly},
    {"transport.ack_timeout", kReliable},
    {"transport.retry_count", kReliable},
    {"transport.rnr_retry", kReliable},
    {"transport.min_rnr_timer", kReliable},
    {"transport.recovery", kReliable},
    {"transport.sequence_nak", kReliable},
    {"transport.end_to_end_credits", kReliable},
    {"transport.ack_every", kReliable},
    {"transport.ack_coalesce_time", kReliable},
    {"dcqcn.", kDcqcn},
    {"iommu.iotlb_entries", kIommu},
    {"iommu.walk_latency", kIommu},
    {"iommu.walkers", kIommu},
    {"iommu.page_size", kIommu},
    {"iommu.mapped_bytes", kTranslating},
    {"iommu.passthrough", kIommu},
    {"pcie.atc.", kAts},
    {"peer.", kPeer},
    {"memory.numa_latency", kNuma},
    {"memory.numa_bandwidth", kNuma},
    {"nic.second_function_lanes", kFunctions},
    {"nic.sq_weights", kRanked},
    {"nic.read_segment", kSplitsReads},
    {"nic.sge_time", kGathers},
    {"workload.srq", kSharesRecvs},
    {"workload.recv_depth", kTakesRecvs},
    {"workload.recv_batch", kTakesRecvs},
    {"workload.recv_cost", kTakesRecvs},
    {"workload.inline_max", kInlines},
    {"workload.window", kDma},
    {"dma_device.", kDma},
    {"pcie.switch_latency", kSwitched},
    {"pcie.retimer_latency", kRetimed},
    {"pcie.ordering_overlap", kOrdered},
    {"cpu.wc_buffers", kLinesLimited},
    {"memory.llc_ways", kCacheTracked},
    {"memory.ddio_ways", kCacheTracked},
    {"memory.dram_", kReachesDram},
    {"memory.cpu_traffic", kReachesDram},
};

/// Faults at a time, of nobody.
const Rule kRefused[] = {
    {"fabric.silent_from", kFalls},
    {"fabric.fatal_at", kFails},
};

bool covers(std::string_view keys, std::string_view key) {
  const bool prefix = keys.back() == '.' || keys.back() == '_';
  return prefix ? key.substr(0, keys.size()) == keys : key == keys;
}

}  // namespace

void refuse_without_effect(const std::vector<Setting>& settings, const Config& config) {
  for (const Setting& setting : settings) {
    if (setting.origin != "--") continue;
    for (const Rule& rule : kRefused) {
      if (!covers(rule.keys, setting.key) || rule.condition.met(config)) continue;
      throw ConfigError("--" + setting.key + "=" + setting.text + " has no effect without " +
                        rule.condition.needs + " (remedy: leave it out)");
    }
  }
}

std::vector<std::string> without_effect(const std::vector<Setting>& settings,
                                        const Config& config) {
  std::vector<std::string> found;
  for (const Setting& setting : settings) {
    if (setting.origin != "--") continue;
    const auto* const unmet =
        std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& rule) {
          return covers(rule.keys, setting.key) && !rule.condition.met(config);
        });
    if (unmet == std::end(kRules)) continue;
    std::string text = setting.key + " (needs " + unmet->condition.needs + ")";
    if (std::find(found.begin(), found.end(), text) == found.end()) {
      found.push_back(std::move(text));
    }
  }
  return found;
}

}  // namespace rnic::config
